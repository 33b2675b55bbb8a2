"""The engine: everything shardscope knows how to do, with no terminal in sight.

The names are resolved on first use (PEP 562), so that `import shardscope.engine.model` pulls in nothing
else and `shardscope --version` starts in the time of an interpreter.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardscope.engine.capabilities.published import glossary, sources, support_matrix
    from shardscope.engine.capabilities.reading import read_capability
    from shardscope.engine.capabilities.validation import validate
    from shardscope.engine.inspection import Inspection, inspect, with_digests
    from shardscope.engine.previewing import Preview, preview

__all__ = [
    "Inspection",
    "Preview",
    "glossary",
    "inspect",
    "preview",
    "read_capability",
    "sources",
    "support_matrix",
    "validate",
    "with_digests",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    match name:
        case "Preview" | "preview":
            from shardscope.engine import previewing

            return getattr(previewing, name)
        case "glossary" | "sources" | "support_matrix":
            from shardscope.engine.capabilities import published

            return getattr(published, name)
        case "read_capability":
            from shardscope.engine.capabilities.reading import read_capability

            return read_capability
        case "validate":
            from shardscope.engine.capabilities.validation import validate

            return validate
    from shardscope.engine import inspection

    return getattr(inspection, name)

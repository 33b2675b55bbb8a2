"""The engine: everything shardscope knows how to do, with no terminal in sight.

The names are resolved on first use (PEP 562), so that `import shardscope.engine.model` pulls in nothing
else and `shardscope --version` starts in the time of an interpreter.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardscope.engine.inspection import Inspection, inspect, with_digests
    from shardscope.engine.previewing import Preview, preview

__all__ = ["Inspection", "Preview", "inspect", "preview", "with_digests"]

_PREVIEWING = {"Preview", "preview"}


def __getattr__(name: str) -> Any:
    if name in _PREVIEWING:
        from shardscope.engine import previewing

        return getattr(previewing, name)
    if name in __all__:
        from shardscope.engine import inspection

        return getattr(inspection, name)
    raise AttributeError(name)

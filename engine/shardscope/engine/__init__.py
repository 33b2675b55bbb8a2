"""The engine: everything shardscope knows how to do, with no terminal in sight.

The names are resolved on first use (PEP 562), so that `import shardscope.engine.model` pulls in nothing
else and `shardscope --version` starts in the time of an interpreter.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardscope.engine.inspect import Inspection, inspect

__all__ = ["Inspection", "inspect"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from shardscope.engine import inspect as module

        return getattr(module, name)
    raise AttributeError(name)

"""json: see the rows."""

from typing import Final

from shardscope.engine.model.blocker import Code

TABLE: Final[tuple[Code, ...]] = ()

"""The closed registry: the adapters that were qualified, each for one exact producer, version and family of models.

A row is added by hand, in a commit, together with the seven items that its qualification retained. There is no
discovery, no plug-in and no file that adds one. It is empty until the first adapter is qualified.
"""

from typing import Final

from shardscope.engine.model.capability import Row

REGISTRY: Final[tuple[Row, ...]] = ()
"""Every qualified capability."""

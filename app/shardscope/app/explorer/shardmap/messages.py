"""What is said about shard maps: by a panel that one is wanted, by workers to the screen."""

from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.shardmap.asking import Wish
from shardscope.engine.model.tensors import TensorSpec

if TYPE_CHECKING:
    from shardscope.engine.geometry.drawing.lanes import Lane
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.transfer import TransferPlan
    from shardscope.engine.peeking.tensormaps import Chart


class MapWanted(Message):
    """The person wants to see the map of a tensor."""

    def __init__(self, tensor: TensorSpec, whole: "LogicalTensor | None") -> None:
        super().__init__()
        self.tensor = tensor
        self.whole = whole
        """With its fragments, where it was decoded."""


class Charted(Message):
    """The map is ready to be looked at, or could not be made."""

    def __init__(self, chart: "Chart | Blocker") -> None:
        super().__init__()
        self.chart = chart


class Laned(Message):
    """The files are known in which the shards lie, with their neighbours."""

    def __init__(self, lanes: "tuple[Lane, ...]") -> None:
        super().__init__()
        self.lanes = lanes


class Aimed(Message):
    """A target is known, or could not be made."""

    def __init__(self, wish: Wish, made: "tuple[Chart, TransferPlan] | Blocker") -> None:
        super().__init__()
        self.wish = wish
        self.made = made

"""What the workers of the Compare screen tell it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from shardscope.app.explorer.offer import Offer
    from shardscope.engine.comparing.compared import Compared
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.difference import Fold, TensorDifference


class SidesSeen(Message):
    """Both sides were inspected."""

    def __init__(
        self,
        first: "Side",
        second: "Side",
        offers: "tuple[Offer | None, Offer | None]",
        adapters: "tuple[Side, ...]" = (),
    ) -> None:
        super().__init__()
        self.first = first
        self.second = second
        self.offers = offers
        """What decoding could read of each."""
        self.adapters = adapters
        """Those that are said to be merged into the second."""


class Folded(Message):
    """It is known what is different, and which rows it makes."""

    def __init__(
        self, compared: "Compared", different: "tuple[Fold, ...]", everything: "tuple[Fold, ...]"
    ) -> None:
        super().__init__()
        self.compared = compared
        self.different = different
        self.everything = everything
        """With the tensors that are the same."""


class NotCompared(Message):
    """The two cannot be compared, or their values could not be read."""

    def __init__(self, blocker: "Blocker") -> None:
        super().__init__()
        self.blocker = blocker


class ComparingStopped(Message):
    """The person stopped it."""


class ValuesCompared(Message):
    """The values of some tensors were compared. None of these messages may be lost."""

    def __init__(self, news: "Mapping[int, TensorDifference]") -> None:
        super().__init__()
        self.news = news
        """By number."""


class Completed(Message):
    """A path was completed."""

    def __init__(self, field: str, typed: str, path: str) -> None:
        """`field` is the identifier of the line that it was typed into."""
        super().__init__()
        self.field = field
        self.typed = typed
        self.path = path

"""What is said about looking at numbers: by a panel that somebody wants to, by workers to the screen."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from shardscope.app.explorer.peek.sight import Ask
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.gathered import Gathered
    from shardscope.engine.model.peek import PackedWeight
    from shardscope.engine.model.piece import Lowered
    from shardscope.engine.model.tensors import TensorSpec
    from shardscope.engine.model.window import Window


class PeekWanted(Message):
    """The person wants to see the numbers of a tensor."""

    def __init__(self, tensor: "TensorSpec", whole: "LogicalTensor | None") -> None:
        super().__init__()
        self.tensor = tensor
        self.whole = whole
        """With its fragments, where it was decoded."""


class TensorFound(Message):
    """The tensor is known with its fragments."""

    def __init__(
        self,
        side: "Side",
        tensor: "LogicalTensor",
        lowered: "Lowered | None",
        owners: dict[str, str],
        packing: "PackedWeight | None" = None,
    ) -> None:
        super().__init__()
        self.packing = packing
        """How its numbers are worked out, where they are not those that are stored."""
        self.side = side
        self.tensor = tensor
        self.lowered = lowered
        """Its map, to tell where an element is stored; None where that would take long."""
        self.owners = owners
        """By file, the rank whose it is."""


class NotFound(Message):
    """There is nothing to look at, and why."""

    def __init__(self, blocker: "Blocker") -> None:
        super().__init__()
        self.blocker = blocker


class WindowRead(Message):
    """Some numbers were read."""

    def __init__(self, ask: "Ask", window: "Window") -> None:
        super().__init__()
        self.ask = ask
        self.window = window


class WindowNotRead(Message):
    """Some numbers could not be read."""

    def __init__(self, ask: "Ask", blocker: "Blocker") -> None:
        super().__init__()
        self.ask = ask
        self.blocker = blocker


class GatheredSoFar(Message):
    """It is known what the first numbers come to. Newer figures replace older ones that nobody has seen yet."""

    def __init__(self, run: int, known: "Gathered") -> None:
        super().__init__()
        self.run = run
        """Which reading it is of."""
        self.known = known

    def can_replace(self, message: Message) -> bool:
        """Tell whether these figures make `message` needless."""
        return isinstance(message, GatheredSoFar) and message.run == self.run


class GatheringEnded(Message):
    """Reading ended: with figures of everything, by the person, or by a fault."""

    def __init__(self, run: int, known: "Gathered | None" = None, blocker: "Blocker | None" = None) -> None:
        super().__init__()
        self.run = run
        self.known = known
        """Of everything; None where it ended early."""
        self.blocker = blocker

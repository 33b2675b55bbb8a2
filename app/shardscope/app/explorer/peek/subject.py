"""What is looked at, and the commands that say the same without a screen."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.target import Asked, Target, peek_command

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.tensors import TensorSpec


@dataclass(frozen=True)
class Subject:
    """One tensor of one checkpoint, by its name."""

    target: Target
    inspection: "Inspection"
    name: str
    """Exact."""
    part_of: int | None = None
    """Of several tensors of this name, the one of this rank."""
    spec: "TensorSpec | None" = None
    """The row of the table, where it was chosen there."""
    side: "Side | None" = None
    """The checkpoint with its catalogue, where that is known."""
    at: tuple[int, ...] | None = None
    """The element to begin at; the first one where this is None."""
    logical: bool = False
    """Of a packed weight, the numbers that it stands for."""
    asked: Asked | None = None
    """What was decoded; None where nothing was."""
    offer: str = ""
    """What to press to decode; empty where there is nothing to decode, or it was done."""

    def command(self, *words: str) -> str:
        """Return the command that shows the same, with options of its own."""
        rank = () if self.part_of is None else ("--rank", str(self.part_of))
        logical = ("--logical",) if self.logical else ()
        given = (*rank, *logical, *words)
        return peek_command(self.target, self.name, given, decoded=self.asked is not None)

"""What the shard map is about, and the commands that say the same without a screen."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.shardmap.asking import Wish
from shardscope.app.explorer.target import Asked, Target, options, quoted, tensors_command

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.tensors import TensorSpec


@dataclass(frozen=True)
class Subject:
    """One tensor of one checkpoint."""

    target: Target
    inspection: "Inspection"
    tensor: "LogicalTensor"
    is_decoded: bool
    """Whether the catalogue has it: its fragments and its map are known."""
    asked: Asked | None = None
    """What was decoded; None where nothing was."""
    offer: str = ""
    """What to press to decode; empty where there is nothing to decode, or it was done."""
    spec: "TensorSpec | None" = None
    """The row of the table, where it was chosen there."""

    def command(self, rank: int | None = None) -> str:
        """Return the command that tells the map in words; `rank` has it draw that shard, too."""
        words = [tensors_command(self.target, asked=self.asked), "--map", quoted(self.tensor.name)]
        if rank is not None:
            words += ["--rank", str(rank)]
        return " ".join(words)

    def reshard_command(self, wish: Wish) -> str:
        """Return the command that lists every copy to a target."""
        words = ["shardscope", "reshard", quoted(self.target.path), *options(self.target)]
        if self.asked is not None:
            words.append("--decode")
        if self.tensor.component != "model":
            words += ["--component", self.tensor.component]
        return " ".join(
            [
                *words,
                "--include",
                quoted(_literally(self.tensor.name)),
                *wish.options,
                "--plan-only",
                "--json",
            ]
        )


def _literally(name: str) -> str:
    """Return a pattern that matches one name alone."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)

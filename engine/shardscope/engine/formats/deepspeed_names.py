"""The file names of DeepSpeed, and the numbers in them (deepspeed `runtime/engine.py`, `runtime/pipe/module.py`).

`mp` is the model-parallel index, pp_index * tp_degree + tp_index: `mp_rank_01` can be the second tensor-parallel rank as well
as the second pipeline stage. The names are all that is used here, so whatever follows from them is inferred.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.rank_grid import Coordinate
from shardscope.engine.model.source import Entry

ENDING: Final = "_states.pt"
"""What every name here ends in."""
_NUMBER: Final = r"(\d{1,6})"
_PATTERNS: Final = {
    field: re.compile(pattern.replace("#", _NUMBER), re.ASCII)
    for field, pattern in (
        ("model", r"mp_rank_#_model_states\.pt"),
        ("partitioned", r"zero_pp_rank_#_mp_rank_#_model_states\.pt"),
        ("optimizer", r"(bf16_|fp16_)?zero_pp_rank_#_mp_rank_#_optim_states\.pt"),
        ("layers", r"layer_#-model(?:_#-model)?_states\.pt"),
        ("experts", r"(?:layer_#_)?expert_#_mp_rank_#_model_states\.pt"),
        ("expert_optimizer", r"expp_rank_#_mp_rank_#_optim_states\.pt"),
    )
}


class Numbered(Struct, frozen=True):
    """One file with the numbers of its name."""

    entry: Entry
    at: Coordinate
    prefix: str = ""
    """`bf16_` or `fp16_` before the name of an optimizer partition."""


class DeepSpeedFiles(Struct, frozen=True):
    """The files of one tag folder, by what their names say they are; each in the order of the names."""

    model: tuple[Numbered, ...] = ()
    """Model states of stage 0 to 2, at (mp,)."""
    partitioned: tuple[Numbered, ...] = ()
    """Model states of stage 3, at (mp, dp)."""
    optimizer: tuple[Numbered, ...] = ()
    """ZeRO partitions, at (mp, dp)."""
    layers: tuple[Numbered, ...] = ()
    """Layers of a pipeline module, at (layer, tp)."""
    experts: tuple[Numbered, ...] = ()
    """Experts, at (layer among those with experts, global expert, mp)."""
    expert_optimizer: tuple[Numbered, ...] = ()
    """Optimizer states of expert ranks without ZeRO, at (ep, mp)."""

    @property
    def states(self) -> tuple[Numbered, ...]:
        """Every file of model states."""
        return (*self.model, *self.partitioned, *self.layers, *self.experts)

    @property
    def partitions(self) -> tuple[Numbered, ...]:
        """Every file of optimizer states."""
        return (*self.optimizer, *self.expert_optimizer)

    @property
    def mp(self) -> int:
        """The model-parallel degree that the names span."""
        indices = [
            *(file.at[0] for file in (*self.model, *self.partitioned, *self.optimizer)),
            *(file.at[-1] for file in (*self.experts, *self.expert_optimizer)),
        ]
        return 1 + max(indices, default=-1)


def deepspeed_files(folder: Folder) -> DeepSpeedFiles:
    """Sort the files of a folder by the names that DeepSpeed gives."""
    return sorted_files(folder.with_suffix("pt"))


def sorted_files(entries: Iterable[Entry]) -> DeepSpeedFiles:
    """Sort files by the names that DeepSpeed gives."""
    found: dict[str, list[Numbered]] = {field: [] for field in _PATTERNS}
    for entry in entries:
        name = entry.name
        if not name.endswith(ENDING):
            continue
        for field, pattern in _PATTERNS.items():
            if match := pattern.fullmatch(name):
                found[field].append(_numbered(entry, field, match))
                break
    return DeepSpeedFiles(**{field: tuple(files) for field, files in found.items()})


def _numbered(entry: Entry, field: str, match: re.Match[str]) -> Numbered:
    words = match.groups(default="0")
    prefix = ""
    if field == "optimizer":
        prefix = match[1] or ""
        words = words[1:]
    numbers = tuple(map(int, words))
    if field in ("partitioned", "optimizer"):  # the names give the data-parallel rank first
        numbers = numbers[::-1]
    return Numbered(entry, numbers, prefix)

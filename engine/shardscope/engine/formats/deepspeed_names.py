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

_FIELDS: Final = {
    field: pattern.replace("#", r"(\d{1,6})")
    for field, pattern in (
        ("model", r"mp_rank_#_model_states"),
        ("partitioned", r"zero_pp_rank_#_mp_rank_#_model_states"),
        ("optimizer", r"(bf16_|fp16_|)zero_pp_rank_#_mp_rank_#_optim_states"),
        ("layers", r"layer_#-model(?:_#-model)?_states"),
        ("experts", r"(?:layer_#_)?expert_#_mp_rank_#_model_states"),
        ("expert_optimizer", r"expp_rank_#_mp_rank_#_optim_states"),
    )
}
_NAME: Final = re.compile(
    "(?:" + "|".join(f"(?P<{field}>{pattern})" for field, pattern in _FIELDS.items()) + r")\.pt", re.ASCII
)
"""Every name; the field that it belongs to is the last group that closed."""
_GROUPS: Final = {
    field: slice(_NAME.groupindex[field], _NAME.groupindex[field] + re.compile(pattern).groups)
    for field, pattern in _FIELDS.items()
}
"""Where the groups of a field are among all groups: they follow the group of the field itself."""


STATES: Final = ("model", "partitioned", "layers", "experts")
"""The fields that hold model states."""


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


def named_files(folder: Folder) -> dict[str, list[Entry]]:
    """Return the files of a folder that have one of the names, by field of `DeepSpeedFiles`; no number is read."""
    found: dict[str, list[Entry]] = {}
    for name, entry in folder.named("pt").items():
        if (match := _NAME.fullmatch(name)) and match.lastgroup:
            found.setdefault(match.lastgroup, []).append(entry)
    return found


def sorted_files(entries: Iterable[Entry]) -> DeepSpeedFiles:
    """Sort files by the names that DeepSpeed gives, and read the numbers in them."""
    found: dict[str, list[Numbered]] = {field: [] for field in _FIELDS}
    for entry in entries:
        if (match := _NAME.fullmatch(entry.name)) and (field := match.lastgroup):
            found[field].append(_numbered(entry, field, match))
    return DeepSpeedFiles(**{field: tuple(files) for field, files in found.items()})


def _numbered(entry: Entry, field: str, match: re.Match[str]) -> Numbered:
    words = match.groups("0")[_GROUPS[field]]
    prefix = ""
    if field == "optimizer":
        prefix, words = words[0], words[1:]
    numbers = tuple(map(int, words))
    if field in ("partitioned", "optimizer"):  # the names give the data-parallel rank first
        numbers = numbers[::-1]
    return Numbered(entry, numbers, prefix)

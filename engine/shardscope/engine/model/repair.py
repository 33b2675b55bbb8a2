"""What a fix does to a checkpoint, as plans and manifests say it."""

from typing import Final, Literal, get_args

from msgspec import Struct

Repair = Literal["salvage", "index", "drop", "rename", "metadata", "split", "merge", "header"]
REPAIRS: Final[tuple[Repair, ...]] = get_args(Repair)
"""In the order in which they are applied."""
SAFE: Final[tuple[Repair, ...]] = ("index", "header")
"""Those that lose nothing and change no tensor: done without being named, where a checkpoint needs them."""
FIXED: Final = frozenset({"hf_safetensors", "peft_adapter"})
"""Formats that a fix takes: every tensor stands whole in a safetensors file."""
MENDED: Final = ("header.", "index.", "layout.shard_", "layout.totals_mixed", "layout.weight_sets")
"""Beginnings of the codes of inspection that a fix mends, at least by salvage of what is whole."""
Scalar = str | int | float | bool | None


class Lost(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor, or a whole file, of which nothing can be written."""

    name: str | None
    """Exact; null for a file of which not even the names of its tensors are known."""
    file: str
    """Where it was, or where it should be; neutralised."""
    bytes: int | None
    """That it should have."""
    present: int | None
    """Of those, the bytes that are there."""
    code: str
    """Of the finding that it comes from."""
    why: str
    """One clause."""


class PlannedFix(Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a plan that only a fix has."""

    what: tuple[Repair, ...]
    """In the order in which they are applied."""
    index: str | None
    """The name of the index that is written; null for none."""
    index_metadata: dict[str, Scalar]
    """What it says beside `total_size`."""
    lost: tuple[Lost, ...]

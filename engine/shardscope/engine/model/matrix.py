"""The support matrix: seven subjects, five capabilities, one word of a closed vocabulary in each cell.

The data file is the authority; every table that is printed or drawn is made from it.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, Struct

from shardscope.engine.model.qualification import Qualification
from shardscope.engine.model.sources import SourceId

Text = Annotated[str, Meta(min_length=1, max_length=600)]


class Word(StrEnum):
    """What a cell may say."""

    SUPPORTED = "supported"
    EXPERIMENTAL = "experimental"
    CONDITIONAL = "conditional"
    DEFERRED = "deferred"
    CANONICAL = "canonical"
    PREFLIGHT_ONLY = "preflight-only"
    OUT_OF_SCOPE = "out-of-scope"
    NOT_APPLICABLE = "not-applicable"
    NO = "no"


class Dependence(StrEnum):
    """What a conditional cell depends on."""

    ARCHITECTURE = "architecture"
    RUNTIME = "runtime"
    KERNELS = "kernels"
    DTYPE = "dtype/quantization"
    MEMORY = "memory"
    QUALITY = "quality gates"


Subject = Literal[
    "hf-safetensors",
    "accelerate-placement",
    "torch-dcp-fsdp",
    "megatron",
    "deepspeed",
    "peft-lora",
    "live-multi-node",
]
SUBJECTS: Final[tuple[str, ...]] = get_args(Subject)
"""The seven subjects, in order."""
CapabilityName = Literal[
    "load_or_surgery", "structural_inspect", "convert_to_hf", "exact_resume", "live_multi_node"
]


class Meaning(Struct, frozen=True, forbid_unknown_fields=True):
    """What one word of the vocabulary means here."""

    word: Word
    meaning: Text


class Column(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the five capabilities."""

    id: CapabilityName
    title: Text


class Cell(Struct, frozen=True, forbid_unknown_fields=True):
    """One word, what it means for this subject, and the sources that say so."""

    word: Word
    note: Text
    sources: Annotated[tuple[SourceId, ...], Meta(min_length=1)]
    depends_on: tuple[Dependence, ...]
    """Of a conditional cell all that it depends on; empty for the others."""


class Cells(Struct, frozen=True, forbid_unknown_fields=True):
    """The five cells of a subject."""

    load_or_surgery: Cell
    structural_inspect: Cell
    convert_to_hf: Cell
    exact_resume: Cell
    live_multi_node: Cell


class MatrixRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One subject."""

    id: Subject
    title: Text
    distributed: bool
    """Whether several ranks wrote it."""
    formats: tuple[str, ...]
    """The formats of the descriptor that this row speaks for."""
    cells: Cells
    qualification: Qualification | None
    """What was retained, where a cell says `supported`."""

    def each(self) -> Iterator[tuple[str, Cell]]:
        """Yield the name of each capability with its cell, in order."""
        for name in self.cells.__struct_fields__:
            yield name, getattr(self.cells, name)


class SupportMatrix(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole matrix."""

    schema: Literal["shardscope.matrix/1"]
    version: Text
    status: Text
    note: Text
    vocabulary: tuple[Meaning, ...]
    columns: tuple[Column, ...]
    rows: tuple[MatrixRow, ...]


COLUMNS: Final = Cells.__struct_fields__
"""The five capabilities, in order."""

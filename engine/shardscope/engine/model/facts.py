"""What parsers hand out: plain facts about one file, with the notes they made on the way.

A parser raises `Fault` where the file cannot be trusted to mean anything, and adds a `Finding` to `notes` where it can
be read but something about it deserves a word.
"""

from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct

from shardscope.engine.model.blocker import Finding


class Nature(StrEnum):
    """What a file is by its first bytes, whatever its name says."""

    EMPTY = "empty"
    SAFETENSORS = "safetensors"
    ZIP = "zip"
    PICKLE = "pickle"
    """A bare pickle stream: the legacy form of torch.save, or any other."""
    TORCH_LEGACY = "torch legacy stream"
    JSON = "json"
    LFS_POINTER = "git lfs pointer"
    HTML = "html"
    TEXT = "text"
    ZEROS = "zeros"
    """Every byte looked at is zero."""
    GZIP = "gzip"
    XZ = "xz"
    ZSTD = "zstd"
    BZIP2 = "bzip2"
    TAR = "tar"
    GGUF = "gguf"
    GGML = "ggml"
    """The formats that came before GGUF: GGML, GGMF, GGJT and GGLA."""
    NUMPY = "numpy"
    HDF5 = "hdf5"
    ONNX = "onnx"
    UNKNOWN = "unknown"


class LfsPointer(Struct, frozen=True):
    """A Git LFS pointer that stands where the real file should be."""

    oid: str
    size: int


class Sniff(Struct, frozen=True):
    """The nature of a file, with what its first bytes tell about it."""

    nature: Nature
    lfs: LfsPointer | None = None
    looked: int = 0
    """How many bytes were looked at."""


class JsonDocument(Struct, frozen=True):
    """A bounded JSON document: plain `dict`, `list`, `str`, `int`, `float`, `bool`, `None`."""

    value: Any
    bytes: int
    nodes: int
    notes: tuple[Finding, ...] = ()


class SafetensorsHeader(Struct, frozen=True, dict=True):
    """A safetensors header in columns, in file order of the data. Offsets are absolute in the file."""

    header_bytes: int
    """The length of the JSON header, without the eight bytes before it."""
    data_begin: int
    """Where the data buffer starts in the file."""
    data_end: int
    names: list[str]
    kinds: list[tuple[str, tuple[int, ...]]]
    """The distinct pairs of dtype and shape: a model repeats few of them."""
    kind_of: list[int]
    """For each tensor its place in `kinds`."""
    ends: list[int]
    """Where each tensor ends, and the next one begins."""
    metadata: dict[str, str]
    notes: tuple[Finding, ...] = ()

    @cached_property
    def begins(self) -> list[int]:
        """Where each tensor begins: where the one before it ends."""
        return [self.data_begin, *self.ends[:-1]] if self.ends else []

    @cached_property
    def dtypes(self) -> list[str]:
        """The dtype of each tensor."""
        dtypes = [dtype for dtype, _ in self.kinds]
        return list(map(dtypes.__getitem__, self.kind_of))

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each tensor."""
        shapes = [shape for _, shape in self.kinds]
        return list(map(shapes.__getitem__, self.kind_of))


class ZipEntry(Struct, frozen=True, gc=False):
    """One record of a zip central directory."""

    name: str
    method: int
    """0 stored, 8 deflated."""
    flags: int
    crc: int
    compressed: int
    size: int
    header_offset: int
    data_offset: int | None
    """Where the bytes start in the file; null where the local header was not read."""


class ZipDirectory(Struct, frozen=True):
    """The central directory of a zip, read without any of the entries' content."""

    entries: tuple[ZipEntry, ...]
    zip64: bool
    comment_bytes: int
    notes: tuple[Finding, ...] = ()


class TorchArchive(Struct, frozen=True):
    """A zip as `torch.save` writes it, by its record names (torch/csrc, `inline_container`)."""

    root: str
    """The folder that all records share: the file's stem, or `archive`."""
    pickle: ZipEntry
    storages: int
    storage_bytes: int
    byteorder: str | None
    """`little` or `big` where the record says so; absent means little."""
    stored: bool
    """Every storage is stored, not compressed."""
    torchscript: bool
    crc_recorded: bool
    """False where every CRC is zero: the writer did not record them."""
    notes: tuple[Finding, ...] = ()


class GgufHead(Struct, frozen=True):
    """The part of fixed size at the start of a GGUF file."""

    version: int
    big_endian: bool
    tensors: int
    pairs: int
    """Keys of metadata with their values."""
    notes: tuple[Finding, ...] = ()


class GgufArray(Struct, frozen=True):
    """A list in the metadata of a GGUF file: how long it is, not what is in it."""

    kind: str
    """`string`, `int32`, `array`, ..."""
    count: int


class GgufText(Struct, frozen=True):
    """A text of the metadata that is too long to keep."""

    bytes: int


GgufValue = bool | int | float | str | GgufArray | GgufText


class GgufHeader(Struct, frozen=True):
    """What stands before the data of a GGUF file, in columns, in the order of the file. Offsets are absolute."""

    head: GgufHead
    header_end: int
    """Where the descriptions end; padding follows."""
    alignment: int
    """Every tensor begins at a multiple of it, counted from the start of the data."""
    data_begin: int
    metadata: dict[str, GgufValue]
    names: list[str]
    dtypes: list[str]
    """Names of ggml; `ggml N` for a number that is not known."""
    shapes: list[tuple[int, ...]]
    """Row-major: the dimension that the file names first is the fastest, and stands last here."""
    begins: list[int]
    ends: list[int]
    notes: tuple[Finding, ...] = ()

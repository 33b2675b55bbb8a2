"""The parsers that are fuzzed, each with what has to hold of its answers.

A target takes bytes and returns what was read, or raises `Fault`. Anything else that comes out is a finding, and so is an answer that
breaks one of the assertions here: places outside of the file, numbers that refer to nothing, another answer than the exact way gives.
"""

import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import safetensors

from shardscope.engine.capabilities import reading as documents
from shardscope.engine.convert.disk.journal import read_journal
from shardscope.engine.convert.disk.names import JOURNAL
from shardscope.engine.geometry.interchange.universal import translate_all
from shardscope.engine.geometry.interchange.universal_info import read_universal
from shardscope.engine.geometry.language.document import read_document
from shardscope.engine.geometry.pieces.budget import Budgets
from shardscope.engine.isolation import frames
from shardscope.engine.isolation.process import Broken
from shardscope.engine.isolation.validation import accepted, validated
from shardscope.engine.mappings import read_table
from shardscope.engine.model.blocker import Fault, Finding, Severity, blocker
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.engine.model.pickled import Pickled
from shardscope.engine.model.text import UNSAFE, display_name
from shardscope.engine.parse import byte_ranges, gguf, npy, npz, sniff, tar, torch_archive, zarr
from shardscope.engine.parse import safetensors as headers
from shardscope.engine.parse import zip as zips
from shardscope.engine.parse.config import check_adapter_config, check_config, check_json
from shardscope.engine.parse.dcp_sharding import parse_sharding
from shardscope.engine.parse.json import parse_json
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.weight_index import read_weight_index
from shardscope.engine.report.reading import read as read_report
from shardscope.engine.shardmaps.reading import ShardMaps
from tests.parse.fixture_pickles import LEGACY
from tests.parse.readers import MemoryReader

SECONDS: Final = 2.0
"""Of processor time that one answer may take."""
LONGEST: Final = 1 << 15
"""Bytes of an input."""
LIMITS: Final = Limits(json_nodes=200_000, tensors=50_000, zip_entries=20_000)
DECODE: Final = DecodeLimits(
    pickle_opcodes=200_000, pickle_nodes=100_000, pickle_stack=100_000, pickle_built_bytes=64 << 20, pickle_seconds=5
)  # fmt: skip
BUDGETS: Final = Budgets(ranks=512, pieces=2_048, pair_checks=65_536, slices=512, segments=4_096, cells=65_536, explicit_bytes=65_536)  # fmt: skip
HIGHEST: Final = (1 << 63) - 1

Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Target:
    """One parser."""

    name: str
    read: Read
    """Bytes to what they say. Raises `Fault` where they are refused."""
    textual: bool = False
    """JSON, so that whole values are worth exchanging."""


def said(notes: Sequence[Finding]) -> bool:
    """Whether a note of these is an error; each of them can be put into words."""
    return any(blocker(note, "file").severity is Severity.ERROR for note in notes)


# --- containers


def safetensors_header(data: bytes) -> object:
    reader = MemoryReader(data)
    found = headers.read_header(reader, LIMITS)
    end = 8 + found.header_bytes
    assert all(at + length <= end for at, length in reader.reads), "a byte of the data was read"
    assert end <= found.data_begin <= found.data_end
    assert found.data_begin == end
    assert len(found.names) == len(found.kind_of) == len(found.ends) == len(set(found.names))
    assert found.ends == sorted(found.ends)
    assert all(0 <= kind < len(found.kinds) for kind in found.kind_of)
    for _, shape in found.kinds:
        assert all(type(extent) is int and 0 <= extent <= HIGHEST for extent in shape)
    if not said(found.notes):
        # What is read without an error, the reference library reads as well.
        tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
        assert {name for name, _ in tensors} == set(found.names)
    return found


def zip_directory(data: bytes) -> object:
    reader = MemoryReader(data)
    found = zips.read_directory(reader, LIMITS)
    said(found.notes)
    for entry in found.entries:
        assert 0 <= entry.header_offset < len(data)
        if entry.data_offset is not None:
            assert (
                entry.header_offset < entry.data_offset <= entry.data_offset + entry.compressed <= len(data)
            )
    spans = sorted(
        (each.data_offset, each.data_offset + each.compressed)
        for each in found.entries
        if each.data_offset is not None
    )
    assert all(one[1] <= other[0] for one, other in pairwise(spans)), "records share bytes"
    with suppress(zipfile.BadZipFile, NotImplementedError, OSError, ValueError, UnicodeDecodeError):
        theirs = {info.header_offset for info in zipfile.ZipFile(BytesIO(data)).infolist()}
        assert {entry.header_offset for entry in found.entries} == theirs, "another zip than Python's"
    with suppress(Fault):
        archive = torch_archive.describe(reader, found, LIMITS)
        assert archive.pickle in found.entries
    return found


def file_layout(data: bytes) -> object:
    reader = MemoryReader(data)
    archive = data[:2] == b"PK"
    ranges = (
        byte_ranges.zip_ranges(reader, LIMITS, {})[0]
        if archive
        else byte_ranges.safetensors_ranges(reader, LIMITS)[0]
    )
    at = 0
    for each in ranges:
        assert 0 <= each.begin <= each.end <= len(data), each
        assert each.begin <= at, f"nothing is said of the bytes before {each}"
        at = max(at, each.end)
    assert at == len(data), "nothing is said of the end"
    assert byte_ranges.with_holes(ranges, []) == list(ranges)
    return ranges


def numpy_header(data: bytes) -> object:
    try:
        any_kind = npy.read_array(MemoryReader(data))
        assert any_kind.begin > 0
        assert 0 <= any_kind.bytes <= HIGHEST
        assert all(0 <= extent <= HIGHEST for extent in any_kind.shape)
    except Fault as fault:
        blocker(fault.finding, "file")
    found = npy.read_npy(MemoryReader(data))
    assert 0 < found.begin <= len(data)
    assert found.end == len(data)
    assert all(0 <= extent <= HIGHEST for extent in found.shape)
    return found


def numpy_archive(data: bytes) -> object:
    reader = MemoryReader(data)
    found = list(npz.read_arrays(reader, zips.read_directory(reader, LIMITS)))
    assert all(array is None or 0 <= array.bytes <= HIGHEST for _, array in found)
    return found


def gguf_header(data: bytes) -> object:
    reader = MemoryReader(data)
    found = gguf.read_header(reader, LIMITS)
    said(found.notes)
    columns = (found.names, found.dtypes, found.shapes, found.begins, found.ends)
    assert len({len(column) for column in columns}) == 1
    assert len(set(found.names)) == len(found.names)
    for begin, end, shape in zip(found.begins, found.ends, found.shapes, strict=True):
        assert found.data_begin <= begin <= end
        assert all(0 <= extent <= HIGHEST for extent in shape)
    return found


def tar_members(data: bytes) -> object:
    found = tar.read_members(MemoryReader(data), 1_000)
    for member in found:
        assert member.begin > 0
        assert not member.file or member.begin + member.size <= len(data)
    return found


def first_bytes(data: bytes) -> object:
    found = sniff.sniff(data, len(data))
    for nature in Nature:
        finding = sniff.check_expected(found, nature, len(data))
        if finding is not None:
            blocker(finding, "file")
    sniff.ends_as_zip(data)
    return found


# --- JSON


def strict_json(data: bytes) -> object:
    found = parse_json(data, LIMITS)
    said(found.notes)
    if not found.notes:
        theirs = json.loads(data)
        assert same(found.value, theirs), "another value than Python's"
    check_json(found.value)
    return found


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and from true, as JSON does not but readers do."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def weight_index(data: bytes) -> object:
    found = read_weight_index(MemoryReader(data), LIMITS)
    said(found.notes)
    exact = parse_json(data, LIMITS)
    assert same(found.value, exact.value), "the typed way and the exact way differ"
    assert found.nodes == exact.nodes
    return found


def configuration(data: bytes) -> object:
    value = parse_json(data, LIMITS).value
    if not isinstance(value, dict):
        return None
    return check_config(value, LIMITS), check_adapter_config(value)


def zarr_array(data: bytes) -> object:
    value = parse_json(data, LIMITS).value
    newer = isinstance(value, dict) and value.get("zarr_format") == 3
    found = zarr.zarr3_array(value) if newer else zarr.zarr_array(value)
    if isinstance(found, zarr.ZarrArray):
        assert 0 <= found.bytes <= zarr.BYTES
        assert math.prod(found.grid) <= zarr.CHUNKS
    return found


def dcp_sharding(data: bytes) -> object:
    found = parse_sharding(data.decode("utf-8", "surrogatepass"), LIMITS) if decodes(data) else None
    if found is not None:
        for saved in found.saved.values():
            assert all(type(each) is int and 0 <= each <= HIGHEST for each in saved.offset)
    return found


def decodes(data: bytes) -> bool:
    """Whether bytes are text, halves of surrogate pairs allowed: metadata reaches the parser as a string."""
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def shard_map(data: bytes) -> object:
    maps = ShardMaps("file", read_document(parse_json(data, LIMITS).value, "file"), BUDGETS)
    for name in maps.names[:4]:
        with suppress(Fault):
            checked = maps.check(name)
            for finding in checked.findings:
                blocker(finding, "file")
            if checked.invertible:
                maps.plan(name, maps)  # to itself
            maps.explain(name)
    return maps.names


def deepspeed_maps(data: bytes) -> object:
    value = parse_json(data, LIMITS).value
    if not isinstance(value, dict):
        return None
    info = read_universal(value.get("info", value), BUDGETS)
    shapes = {"layers.0.weight": ((4, 6), (4, 6)), "embed.weight": ((5, 4), (5, 4)), "norm": ((6,), (6,))}
    known = {name: [shard.shape for shard in lowered.ranks] for name, lowered in info.affine.items()}
    found = translate_all(info, {**known, **shapes}, budgets=BUDGETS)
    for finding in found.findings:
        blocker(finding, "file")
    return found


def mapping_table(data: bytes) -> object:
    return read_table(data, LIMITS)


def any_document(data: bytes) -> object:
    name, document = documents.read_document(data, LIMITS)
    assert documents.read_document(msgspec.json.encode(document), LIMITS) == (name, document), (
        "it changes when written"
    )
    return document


# --- pickles, and what the worker says of them


def pickle_stream(data: bytes) -> object:
    pickles = 5 if data.startswith(LEGACY) else 1
    found = read_pickles(data, DECODE, pickles=pickles)
    wire = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Pickled)
    validated(wire, pickles, len(data))  # what the decoder says, the other side believes
    said(found.findings)
    return found


def worker_answer(data: bytes) -> object:
    try:
        answer = frames.answer_of(data)
        if isinstance(answer, frames.Read):
            return validated(answer.pickled, 1, 1 << 20)
        if isinstance(answer, frames.Refused):
            return accepted(answer.finding)
    except (msgspec.DecodeError, RecursionError, Broken):  # as `isolation.process` takes them
        return None
    return answer


# --- files of ours that somebody else may have written


def report_bundle(data: bytes) -> object:
    with placed("bundle.zip", data) as path:
        return read_report(path, LIMITS)


def journal(data: bytes) -> object:
    with placed(os.fsdecode(JOURNAL), data) as path:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return read_journal(folder)
        finally:
            os.close(folder)


@contextmanager
def placed(name: str, data: bytes) -> Iterator[Path]:
    """A file of this name in a folder of its own, in memory where the system has such a place."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


def shown_text(data: bytes) -> object:
    for text in (
        data.decode("utf-8", "surrogateescape"),
        data.decode("utf-16-le", "surrogatepass") if len(data) % 2 == 0 else "",
    ):
        shown = display_name(text)
        assert UNSAFE.search(shown) is None
        shown.encode()
        assert len(display_name(text, 40)) <= 40
    return None


TARGETS: Final = {
    target.name: target
    for target in (
        Target("safetensors", safetensors_header),
        Target("zip", zip_directory),
        Target("layout", file_layout),
        Target("pickle", pickle_stream),
        Target("dcp", pickle_stream),
        Target("answer", worker_answer),
        Target("json", strict_json, textual=True),
        Target("index", weight_index, textual=True),
        Target("config", configuration, textual=True),
        Target("map", shard_map, textual=True),
        Target("deepspeed", deepspeed_maps, textual=True),
        Target("table", mapping_table, textual=True),
        Target("document", any_document, textual=True),
        Target("report", report_bundle),
        Target("journal", journal),
        Target("sharding", dcp_sharding, textual=True),
        Target("zarr", zarr_array, textual=True),
        Target("npy", numpy_header),
        Target("npz", numpy_archive),
        Target("gguf", gguf_header),
        Target("tar", tar_members),
        Target("sniff", first_bytes),
        Target("text", shown_text),
    )
}
"""By name, the most exposed first."""

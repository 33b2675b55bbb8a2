"""Decode a checkpoint in this process and put its tensors together: for tests of families. No worker, no framework."""

import zlib
from pathlib import Path

import msgspec
import numpy as np

from shardscope.engine.formats.decode import decode_of
from shardscope.engine.formats.decoder import Decoder, PickleUse
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Facts
from shardscope.engine.geometry.execution.execute import assemble
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.inspecting.classify import format_named, weigh
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.engine.model.piece import Lowered, row_major
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.source.source import Source


class Found(msgspec.Struct):
    """What decoding a checkpoint found."""

    root: Path
    """The folder that files are relative to."""
    tensors: list[LogicalTensor]
    blockers: list[Blocker]
    facts: list[Facts]
    streams: list[PickleUse] = []
    """What was decoded for it."""

    @property
    def codes(self) -> set[str]:
        """The codes of all blockers."""
        return {item.code for item in self.blockers}

    @property
    def errors(self) -> set[str]:
        """The codes of the blockers that are errors."""
        return {item.code for item in self.blockers if item.severity == "error"}

    def named(self, name: str) -> LogicalTensor:
        """Return the tensor of that name."""
        (found,) = (tensor for tensor in self.tensors if tensor.name == name)
        return found


def decode(path: Path, limits: DecodeLimits | None = None, reading: Limits | None = None) -> Found:
    """Decode the checkpoint at `path` with every family that claims it."""
    limits, reading = limits or DecodeLimits(), reading or Limits()
    with Source(path, limits=reading, hf_cache=False) as source:
        probe = Probe(source, source.walk(), reading)
        verdict = weigh(probe)
        decoder = Decoder(probe, lambda data, pickles: read_pickles(data, limits, pickles=pickles), limits)
        facts = []
        for claim in verdict.claims:
            described = format_named(claim.format).describe(probe, claim)
            family = decode_of(claim.format)
            facts.append(family(decoder, claim, described) if family else described)
    root = path.parent if path.is_file() else path
    return Found(root, decoder.tensors, probe.blockers, facts, decoder.used)


def lowered(tensor: LogicalTensor) -> Lowered:
    """Return the normal form of a tensor's map."""
    if isinstance(tensor.map, Lowered):
        return tensor.map
    assert tensor.mesh is not None
    return lower(tensor.map, tensor.mesh)


def stored(root: Path, fragment: Fragment, dtype: str) -> np.ndarray:
    """Return the elements of a fragment as flat bytes, row-major and little-endian."""
    record = fragment.record
    with (root / record.file).open("rb") as file:
        file.seek(record.begin)
        data = file.read(record.length)
    if record.coding == "deflate":
        data = zlib.decompress(data, -zlib.MAX_WBITS)
    elif record.coding == "zstd":
        import zstandard

        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=record.size)
    assert len(data) == record.size
    width = DTYPES[fragment.dtype or dtype].bits // 8
    strides = fragment.strides or row_major(fragment.shape)
    flat = np.frombuffer(data, np.uint8)[fragment.offset :]
    view = np.lib.stride_tricks.as_strided(
        flat, (*fragment.shape, width), (*(stride * width for stride in strides), 1), writeable=False
    )
    if record.big_endian:
        view = view[..., ::-1]
    return np.ascontiguousarray(view).reshape(-1)


def value(found: Found, tensor: LogicalTensor) -> bytes:
    """Return the bytes of the whole tensor, every fragment put in its place, replicas compared."""
    shards = {item.label: stored(found.root, item, tensor.dtype) for item in tensor.fragments}
    for item in tensor.replicas:
        assert stored(found.root, item, tensor.dtype).tobytes() == shards[item.label].tobytes()
    return bytes(np.asarray(assemble(lowered(tensor), shards, dtype=tensor.dtype)).tobytes())


def expected(fixture: Path, name: str = "expected") -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return dtype, shape and bytes of every tensor of a fixture's `expected.safetensors`."""
    import json

    data = (fixture / f"{name}.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        key: (
            item["dtype"],
            tuple(item["shape"]),
            data[8 + length + item["data_offsets"][0] : 8 + length + item["data_offsets"][1]],
        )
        for key, item in header.items()
    }

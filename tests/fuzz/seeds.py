"""What fuzzing begins with: pieces of the fixtures, documents that commands print, the malformed corpus, and what was found earlier."""

import base64
import io
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from shardscope.engine.isolation import frames
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.staging import FileRecord, JournalHead, Seal
from shardscope.engine.parse.pickled import read_pickles
from tests.documents import desk
from tests.fuzz.targets import DECODE, LONGEST, TARGETS
from tests.parse.fixture_pickles import FIXTURES, fixture_pickles

CORPUS = Path(__file__).parent / "corpus"
"""One file for each target, a line of base64 for each input: what once opened a new way through the code, or was a finding."""


def kept(target: str) -> list[bytes]:
    """The stored regression corpus of a target."""
    path = CORPUS / f"{target}.txt"
    lines = path.read_text(encoding="ascii").splitlines() if path.is_file() else []
    return [base64.b64decode(line) for line in lines if line and not line.startswith("#")]


def seeds(target: str) -> list[bytes]:
    """What a target begins with, without the stored corpus: short inputs only."""
    return [data for data in dict.fromkeys(_SEEDS[target]()) if len(data) <= LONGEST]


def files(pattern: str) -> Iterator[bytes]:
    """Fixture files of a name."""
    for path in sorted(FIXTURES.rglob(pattern)):
        if path.is_file():
            yield path.read_bytes()


def headers() -> Iterator[bytes]:
    """Small safetensors files whole, and what stands before the data of large ones."""
    for data in files("*.safetensors"):
        end = 8 + int.from_bytes(data[:8], "little")
        yield data if len(data) <= 8_192 else data[: end + 64]


def zips() -> Iterator[bytes]:
    """Small archives."""
    for path in sorted(FIXTURES.rglob("*")):
        if path.is_file() and 0 < path.stat().st_size <= 16_384 and path.read_bytes()[:2] == b"PK":
            yield path.read_bytes()


def pickles() -> Iterator[bytes]:
    """Every pickle of every fixture."""
    yield from (found.data for found in fixture_pickles())


def metadata() -> Iterator[bytes]:
    """The metadata of distributed checkpoints."""
    yield from files(".metadata")


def answers() -> Iterator[bytes]:
    """What the worker says of short pickles."""
    yield frames.encode(frames.Refused("0", Finding("pickle.truncated", {"offset": 1})))
    yield frames.encode(frames.Failed("0", "MemoryError"))
    for found in fixture_pickles():
        if len(found.data) <= 2_048:
            try:
                yield frames.encode(frames.Read("0", read_pickles(found.data, DECODE, pickles=found.pickles)))
            except Fault as fault:
                yield frames.encode(frames.Refused("0", fault.finding))


@cache
def printed() -> dict[str, bytes]:
    """Everything on the desk of the documents that is short: what commands print and write, by path."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder, "desk")
        top.mkdir()
        desk.lay(top)
        return {
            path.relative_to(top).as_posix(): path.read_bytes()
            for path in sorted(top.rglob("*"))
            if path.is_file() and path.stat().st_size <= LONGEST
        }


def of_desk(*ends: str) -> Iterator[bytes]:
    """Files of the desk by the ends of their names."""
    yield from (data for name, data in printed().items() if name.endswith(ends))


def documents() -> Iterator[bytes]:
    """Every document with a schema that the product prints or ships."""
    yield from (
        data for name, data in printed().items() if name.endswith(".json") and b'"shardscope.' in data
    )
    yield from tables()
    for folder in ("capabilities", "mappings"):
        for path in sorted((FIXTURES.parents[1] / f"engine/shardscope/engine/{folder}/data").glob("*.json")):
            yield path.read_bytes()


def tables() -> Iterator[bytes]:
    """The mapping tables that ship."""
    for path in sorted((FIXTURES.parents[1] / "engine/shardscope/engine/mappings/data").glob("*.json")):
        yield path.read_bytes()


def journals() -> Iterator[bytes]:
    """The journal of a run that finished two files."""
    head = JournalHead("shardscope.journal/1", "0" * 64)
    records = [
        FileRecord(f"model-{n}.safetensors", 100, "0" * 64, "task", seal=Seal("boot", 1, 2, 3))
        for n in (1, 2)
    ]
    yield b"".join(msgspec.json.encode(each) + b"\n" for each in (head, *records))


def shardings() -> Iterator[bytes]:
    """What torch says of fragments."""
    yield b'{"w": {"saved_offsets": [0, 4]}, "b": {"saved_offsets": [], "global_shape": []}}'
    yield b'{"w": {"saved_offsets": [8, 0], "global_shape": [16, 8]}}'


def arrays() -> Iterator[bytes]:
    """Arrays of numpy."""
    for array in (
        np.zeros((2, 3), "<f4"),
        np.zeros((), ">i8"),
        np.zeros((3, 0), "?", order="F"),
        np.zeros(2, "<U3"),
    ):
        buffer = io.BytesIO()
        np.save(buffer, array)
        yield buffer.getvalue()
    yield from files("*.npy")


def ggufs() -> Iterator[bytes]:
    """Heads of GGUF files, of both byte orders, empty and of a model."""
    yield from (data[:16_384] for data in files("*.gguf"))
    for order in ("little", "big"):
        yield b"GGUF" + (3).to_bytes(4, order) + (2).to_bytes(8, order) + (5).to_bytes(8, order) + bytes(64)


def tars() -> Iterator[bytes]:
    """Tars of the three forms, with names that are too long for a header."""
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
            for name in ("a/weights.ckpt", "n" * 90, *(() if form == tarfile.USTAR_FORMAT else ("l" * 300,))):
                info = tarfile.TarInfo(name)
                info.size = 5
                file.addfile(info, io.BytesIO(b"bytes"))
        yield buffer.getvalue()


def firsts() -> Iterator[bytes]:
    """First bytes of every kind of file."""
    yield from (
        data[:512]
        for data in (*files("*.bin"), *files("*.pt"), *files("*.json"), *ggufs(), *arrays(), *tars())
    )
    yield b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
    yield b"<!DOCTYPE html><html>"


def texts() -> Iterator[bytes]:
    """Names that want to act on a terminal."""
    yield "w\x1b[2J\u202egnp.\u200b\x9b31m\U000e0041\n\t[red]".encode()
    yield "\u2028\ufeff\x00\ud7ff".encode("utf-16-le")


_SEEDS = {
    "safetensors": headers,
    "zip": lambda: [*zips(), *of_desk(".zip")],
    "layout": lambda: [*headers(), *zips()],
    "pickle": pickles,
    "dcp": metadata,
    "answer": answers,
    "json": lambda: [data for data in files("*.json") if len(data) <= 4_096],
    "index": lambda: files("*.index.json"),
    "config": lambda: [*files("config.json"), *files("adapter_config.json")],
    "map": lambda: [
        data
        for data in of_desk(".json")
        if b"shardscope.shardmap/1" in data or b"shardscope.lowered/1" in data
    ],
    "deepspeed": lambda: of_desk("info.json", "affine_map.json"),
    "table": tables,
    "document": documents,
    "report": lambda: of_desk(".zip"),
    "journal": journals,
    "sharding": shardings,
    "zarr": lambda: [*files(".zarray"), *files("zarr.json")],
    "npy": arrays,
    "npz": lambda: files("*.npz"),
    "gguf": ggufs,
    "tar": tars,
    "sniff": firsts,
    "text": texts,
}
assert _SEEDS.keys() == TARGETS.keys()

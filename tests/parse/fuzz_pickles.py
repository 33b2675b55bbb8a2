"""Mutations of every pickle of every fixture, through the decoder.

`python tests/parse/fuzz_pickles.py [MUTATIONS] [SEED]`; 2,000 of them are a test. A mutation is read, or ends in a `Fault` whose
code exists: nothing else comes out, nothing takes 2 seconds or much memory, the same bytes get the same answer, and what is read is
well-typed: it passes the wire, numbers of facts exist, and lengths and offsets are what a reader may rely on.
"""

import pickletools
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import msgspec

from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import (
    DcpChunks,
    Items,
    Named,
    Node,
    Pairs,
    Pickled,
    PickledTensor,
    Record,
)
from shardscope.engine.parse.pickled import read_pickles
from tests.memory import peak_bytes
from tests.parse.fixture_pickles import Found, fixture_pickles

SECONDS = 2.0
MEMORY = 512 << 20
"""Bytes beyond what the fixtures themselves take."""
LIMITS = DecodeLimits(
    pickle_opcodes=2_000_000, pickle_nodes=500_000, pickle_stack=500_000, pickle_built_bytes=200 << 20, pickle_seconds=5
)  # fmt: skip
HIGHEST = (1 << 63) - 1
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, HIGHEST, 1 << 63, (1 << 64) - 1)


# --- mutations

Mutation = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def flip_bits(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_bytes(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)


def set_number(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    at, value = rng.randrange(len(data)), rng.choice(NUMBERS)
    raw = struct.pack("<Q", value)[: rng.choice((1, 2, 4, 8))]
    data[at : at + len(raw)] = raw


def set_opcode(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] = ord(rng.choice(pickletools.opcodes).code)


def cut(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


def remove(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randint(1, 64)]


def repeat(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.randint(1, 64)] * rng.choice((1, 2, 500))


def splice(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    at, there = rng.randrange(len(data)), rng.randrange(len(other))
    data[at : at + rng.randint(0, 200)] = other[there : there + rng.randint(1, 200)]


def swap_opcodes(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Exchange, repeat or drop whole opcodes, so that the stream stays one of opcodes."""
    places = _opcodes(bytes(data))
    if len(places) < 4:
        return
    (a, a_end), (b, b_end) = sorted(rng.sample(places, 2))
    match rng.randrange(3):
        case 0:
            data[a:b_end] = data[b:b_end] + data[a_end:b] + data[a:a_end]
        case 1:
            data[a:a] = data[b:b_end] * rng.choice((1, 3, 1_000))
        case _:
            del data[a:a_end]


def swap_texts(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Put one word in another's place: names of classes and of fields are words."""
    words = [
        b"offsets",
        b"sizes",
        b"OrderedDict",
        b"Size",
        b"fqn",
        b"length",
        b"storage",
        b"FloatStorage",
        b"torch",
    ]
    old, new = rng.choice(words), rng.choice(words)
    at = data.find(old)
    if at > 0:
        data[at : at + len(old)] = new
        if data[at - 1] == len(old):
            data[at - 1] = len(new)


def _opcodes(data: bytes) -> list[tuple[int, int]]:
    found: list[int] = []
    with suppress(Exception):  # whatever it makes of a broken stream
        for _, _, at in pickletools.genops(data):
            found.append(at or 0)
    return list(pairwise(found))


MUTATIONS: Sequence[Mutation] = (
    flip_bits, set_bytes, set_number, set_opcode, cut, remove, repeat, splice, swap_opcodes, swap_opcodes, swap_texts,
)  # fmt: skip


def mutations(count: int, seed: int) -> Iterator[Found]:
    """Yield mutations of all fixtures in turn."""
    rng = random.Random(seed)
    found = list({each.data: each for each in fixture_pickles()}.values())
    others = [each.data for each in found]
    for number in range(count):
        each = found[number % len(found)] if number < len(found) else rng.choice(found)
        data = bytearray(each.data)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            if data:
                rng.choice(MUTATIONS)(rng, data, others)
        yield Found(each.file, bytes(data), each.pickles)


# --- what has to hold


def answer(found: Found) -> Pickled | Fault:
    """Return what is said of a stream."""
    try:
        return read_pickles(found.data, LIMITS, pickles=found.pickles)
    except Fault as fault:
        return fault


def spelled(said: Pickled | Fault) -> bytes:
    """Return an answer in bytes, after a look at whether each sentence can be said."""
    if isinstance(said, Fault):
        blocker(said.finding, "file")
        return msgspec.json.encode(said.finding)
    for finding in said.findings:
        blocker(finding, "file")
    return msgspec.msgpack.encode(said)


def check(said: Pickled) -> None:
    """Raise `AssertionError` where facts are not what a reader may rely on."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(said), type=Pickled).opcodes == said.opcodes
    count = len(said.nodes)
    for node in said.nodes:
        assert all(0 <= number < count for number in links(node)), node
        if isinstance(node, PickledTensor):
            check_tensor(node, said)
        elif isinstance(node, DcpChunks):
            check_chunks(node)
        elif isinstance(node, Pairs):
            assert len(node.keys) == len(node.values)
        elif isinstance(node, Record):
            assert len(node.names) == len(node.values)
    for storage in said.storages:
        assert 0 <= storage.elements <= HIGHEST


def links(node: Node) -> Iterator[int]:
    """Yield the facts that a fact holds."""
    match node:
        case Items(items=items):
            yield from items
        case Pairs(keys=keys, values=values):
            yield from keys
            yield from values
        case Record(values=values):
            yield from values
        case Named(state=state, items=items):
            yield from (each for each in (state, items) if each is not None)
        case PickledTensor(state=state, parts=parts):
            yield from parts.values()
            yield from () if state is None else (state,)
        case DcpChunks():
            yield from node.extra.values()
            yield from {each for each in node.properties if each is not None}
            yield from (each for each in (node.planner, node.storage_meta) if each is not None)


def check_tensor(node: PickledTensor, said: Pickled) -> None:
    """A tensor lies within its storage."""
    assert all(
        type(each) is int and 0 <= each <= HIGHEST for each in (*node.shape, *node.strides, node.offset)
    )
    if node.kind in ("strided", "quantized") and "data" not in node.parts:
        assert node.storage is not None
        assert 0 <= node.storage < len(said.storages)
        assert len(node.shape) == len(node.strides)


def check_chunks(node: DcpChunks) -> None:
    """Columns are of one length, and hold numbers that a range of bytes or a box can be made of."""
    tensors, chunks = len(node.names), sum(node.counts)
    for column in (node.dtypes, node.shapes, node.counts, node.properties):
        assert len(column) == tensors
    for rows in (node.offsets, node.sizes, node.file, node.begin, node.length, node.transforms):
        assert len(rows) == chunks
    assert len(set(node.names)) == tensors
    assert len(node.writer) in (0, chunks)
    row = 0
    for dtype, shape, count in zip(node.dtypes, node.shapes, node.counts, strict=True):
        for offsets, sizes in zip(
            node.offsets[row : row + count], node.sizes[row : row + count], strict=True
        ):
            assert len(offsets) == len(sizes) == (0 if dtype is None else len(shape))
            assert all(type(each) is int and 0 <= each <= HIGHEST for each in (*offsets, *sizes, *shape))
        row += count
    for file, begin, length, transform in zip(
        node.file, node.begin, node.length, node.transforms, strict=True
    ):
        assert -1 <= file < len(node.files)
        assert 0 <= begin <= HIGHEST
        assert 0 <= length <= HIGHEST
        assert 0 <= transform < len(node.transform_lists)


def fuzz(count: int, seed: int) -> Counter[str]:
    """Read mutations, check each, and return how they ended, by code."""
    ends: Counter[str] = Counter()
    before = 0
    for number, found in enumerate(mutations(count, seed)):
        began = time.process_time()
        try:
            said = answer(found)
            took = time.process_time() - began
            assert took < SECONDS, f"{took:.1f} s"
            assert spelled(said) == spelled(answer(found)), "another answer"
            if isinstance(said, Pickled):
                check(said)
        except Exception as error:
            raise AssertionError(f"mutation {number} of seed {seed}, of {found.file}: {error!r}") from error
        ends[said.finding.code if isinstance(said, Fault) else "read"] += 1
        before = before or peak_bytes()
        assert peak_bytes() - before < MEMORY, f"memory, at mutation {number} of seed {seed}, of {found.file}"
    return ends


if __name__ == "__main__":
    mutated, started = (int(sys.argv[1]) if len(sys.argv) > 1 else 100_000), time.monotonic()
    results = fuzz(mutated, int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32))
    for code, times in results.most_common():
        print(f"{times:8,}  {code}")
    print(f"{mutated:8,}  mutations in {time.monotonic() - started:.0f} s, peak {peak_bytes() >> 20} MiB")

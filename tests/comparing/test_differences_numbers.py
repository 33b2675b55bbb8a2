"""Every number that a comparison tells, worked out a second time with numpy, on checkpoints that producers wrote.

One side is the checkpoint as it is: ranks, chunks, pickles. The other is its export, with some elements changed: a little, to NaN, to an
infinity, to the other zero.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from shardscope.engine.comparing.compared import Compared, DiffOptions
from shardscope.engine.comparing.diff import diff
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.difference import ElementPlace, Figures, TensorDifference
from shardscope.engine.model.escalation import Intent

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
Array = NDArray[Any]
CODES = {"F32": "<u4", "BF16": "<u2", "F16": "<u2", "F64": "<u8"}
FLOATS = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


class Stored(NamedTuple):
    """A tensor of a safetensors file: its bits, and where they begin."""

    dtype: str
    codes: Array
    begin: int

    @property
    def numbers(self) -> Array:
        found: Array
        if self.dtype == "BF16":
            found = (self.codes.astype("<u4") << 16).view("<f4").astype("f8")
        else:
            found = self.codes.view(FLOATS[self.dtype]).astype("f8")
        return found


def read(path: Path) -> dict[str, Stored]:
    """Read the floats of a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    found = {}
    for name, row in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and row["dtype"] in CODES:
            low, high = (8 + length + at for at in row["data_offsets"])
            codes = np.frombuffer(data[low:high], CODES[row["dtype"]]).reshape(row["shape"])
            found[name] = Stored(row["dtype"], codes.copy(), low)
    return found


def damaged(path: Path, out: Path) -> Path:
    """Write a file with some elements of every other tensor changed."""
    random = np.random.default_rng(5)
    data = bytearray(path.read_bytes())
    for number, stored in enumerate(read(path).values()):
        codes = stored.codes.reshape(-1)
        if number % 2 or not len(codes):
            continue
        at = random.choice(len(codes), max(1, len(codes) // 50), replace=False)
        codes[at] ^= random.integers(1, 1 << 6, len(at)).astype(codes.dtype)
        if number % 4 == 0 and len(codes) > 8:
            bits = 8 * codes.dtype.itemsize
            nan, inf, minus = {"F32": (0x7FC00001, 0x7F800000, 0), "BF16": (0x7FC1, 0x7F80, 0)}.get(
                stored.dtype, (0x7E01, 0x7C00, 0)
            )
            codes[random.choice(len(codes), 3, replace=False)] = nan, inf, minus | (1 << (bits - 1))
        data[stored.begin : stored.begin + codes.nbytes] = codes.tobytes()
    out.write_bytes(data)
    return out


def held(found: Figures, one: Stored, other: Stored) -> int | None:
    """Hold figures against what numpy makes of both, and return the first element that is not the same."""
    x, y = (stored.numbers.reshape(-1) for stored in (one, other))
    alike = one.dtype == other.dtype
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        bits = one.codes.reshape(-1) == other.codes.reshape(-1) if alike else same
        finite = np.isfinite(x) & np.isfinite(y)
        apart = np.abs(x - y)[finite]
        size = np.maximum(np.abs(x), np.abs(y))[finite]
        relative = np.where(size > 0, apart / np.where(size > 0, size, 1), 0)
        cosine = np.dot(x[finite], y[finite]) / np.sqrt(
            np.dot(x[finite], x[finite]) * np.dot(y[finite], y[finite])
        )
    assert found.elements == len(x)
    assert found.differing == np.count_nonzero(~same)
    assert found.bits_only == np.count_nonzero(same & ~bits)
    assert found.not_finite == np.count_nonzero(~same & ~finite)
    verdict = "bits" if alike and bits.all() else "numbers" if same.all() else "differs"
    assert found.verdict == verdict
    if finite.any():
        assert found.max_abs == apart.max()
        assert found.max_rel == pytest.approx(relative.max(), rel=1e-15)
    if verdict == "bits":
        assert found.cosine == 1.0
    elif np.isfinite(cosine):
        assert found.cosine == pytest.approx(cosine, rel=1e-12)
    else:
        assert found.cosine is None
    off = ~bits
    return int(np.argmax(off)) if off.any() else None


def element(path: Path, place: ElementPlace | None, size: int) -> bytes | None:
    """Return the bytes at a place; null where the record is coded."""
    assert place is not None
    if place.offset is None:
        return None
    return (path / place.file if path.is_dir() else path).read_bytes()[place.offset : place.offset + size]


def check(item: TensorDifference, one: Stored, other: Stored, paths: tuple[Path, Path], *, swap: bool) -> int:
    """Hold a difference against both tensors; return how many first elements were read where they are said to be."""
    assert item.values is not None
    first = held(item.values, one, other)
    told = item.values.first
    assert (told is None) == (first is None)
    if told is None or first is None:
        return 0
    assert told.element == first
    assert told.index == np.unravel_index(first, one.codes.shape)
    found = 0
    for stored, said, place, path in (
        (one, told.a, told.place_a, paths[0]),
        (other, told.b, told.place_b, paths[1]),
    ):
        number = stored.numbers.reshape(-1)[first]
        assert float(said) == pytest.approx(number, rel=1e-8, nan_ok=True)
        code = stored.codes.reshape(-1)[first].tobytes()
        data = element(path, place, len(code))
        assert data is None or data == (code[::-1] if swap and path is paths[0] else code)
        found += data is not None
    return found


def differ(one: Path, other: Path, **options: Any) -> Compared:
    return diff(
        one,
        other,
        DiffOptions(**options),
        decoding=lambda: Decoding(Intent("verify", "command line"), "all"),
        values=True,
    )


@pytest.mark.parametrize("memory", [1, 64 << 20])
@pytest.mark.parametrize(
    "name",
    [
        "dcp/fsdp2_odd_world2",
        "dcp/dtensor_2d_dp2_tp2",
        "dcp/fsdp2_zstd_world2",
        "deepspeed/zero3-w3-fp32",
        "deepspeed/autotp2-llama-gqa3-dp2-zero2-fp32",
        "deepspeed/pipe2-zero1-fp32",
        "megatron/legacy_tp2_pp2",
        "torch/zip_big_endian",
    ],
)
def test_a_checkpoint_beside_its_damaged_export(name: str, memory: int, tmp_path: Path) -> None:
    folder = FIXTURES / name
    whole = folder / "expected_hf.safetensors"
    whole = whole if whole.exists() else folder / "expected.safetensors"
    other = damaged(whole, tmp_path / "other.safetensors")
    found = differ(folder / "checkpoint", other, memory_bytes=memory)
    here, there = read(whole), read(other)
    checked = placed = 0
    for item in found.document.tensors:
        key = item.name_b or item.name
        if item.values is None or key not in here:
            continue
        paths = (folder / "checkpoint", other)
        placed += check(item, here[key], there[key], paths, swap=name.endswith("big_endian"))
        checked += 1
        assert (item.state == "same") == (item.values.verdict == "bits")
    assert checked == len(here)
    assert placed > 0


def test_two_steps_of_other_world_sizes_and_stages() -> None:
    one, other = (FIXTURES / "deepspeed" / name for name in ("zero3-w3-fp32", "zero2-w4-fp32"))
    found = differ(one / "checkpoint", other / "checkpoint")
    here, there = (read(folder / "expected.safetensors") for folder in (one, other))
    ranks = set()
    checked = 0
    for item in found.document.tensors:
        if item.name not in here or item.values is None:
            continue
        check(item, here[item.name], there[item.name], (one / "checkpoint", other / "checkpoint"), swap=False)
        checked += 1
        if item.values.first is not None and item.values.first.place_b is not None:
            ranks.add(item.values.first.place_b.rank)
    assert checked == len(here)
    assert ranks == {f"tp 0 pp 0 dp {rank}" for rank in range(4)}


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F64"])
def test_a_cast_is_exact_or_told_element_by_element(dtype: str, tmp_path: Path) -> None:
    whole = FIXTURES / "dcp/fsdp2_odd_world2/expected.safetensors"
    here = {name: stored for name, stored in read(whole).items() if stored.dtype == "F32"}
    header, data, there = {}, b"", {}
    for number, (name, stored) in enumerate(here.items()):
        numbers = stored.numbers
        if dtype == "BF16":
            codes = (stored.codes >> 16).astype("<u2")  # towards zero: not what any cast does, and not exact
        else:
            codes = numbers.astype(FLOATS[dtype]).view(CODES[dtype])
        there[name] = Stored(dtype, codes, len(data))
        header[name] = {
            "dtype": dtype,
            "shape": list(codes.shape),
            "data_offsets": [len(data), len(data) + codes.nbytes],
        }
        data += codes.tobytes()
        assert number < 1000
    text = json.dumps(header).encode()
    other = tmp_path / "other.safetensors"
    other.write_bytes(len(text).to_bytes(8, "little") + text + data)
    found = differ(whole.parent / "checkpoint", other)
    verdicts = set()
    for item in found.document.tensors:
        if item.name in here and item.values is not None:
            check(item, here[item.name], there[item.name], (whole.parent / "checkpoint", other), swap=False)
            verdicts.add(item.values.verdict)
            assert item.state == "changed"
    assert verdicts == ({"numbers"} if dtype == "F64" else {"differs"} | (verdicts & {"numbers"}))

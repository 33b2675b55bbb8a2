"""Numbers of tensors of every type that torch writes, held against torch's own."""

import math
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.peek import PeekDocument, Statistics
from shardscope.engine.peeking.peek import PeekOptions, peek

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")  # fmt: skip
WHOLE = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool")
ALL = PeekOptions(statistics=True, histogram=True, heat=True, rows=64, columns=64)
ROWS, COLUMNS = 37, 48


def bits(dtype: str, rows: int = ROWS, columns: int = COLUMNS) -> Any:
    """Return a matrix of a type whose bits are random: NaN, infinite and subnormal numbers are among them."""
    kind = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(7)
    data = torch.randint(0, 256, (rows, columns * kind.itemsize), dtype=torch.uint8, generator=generator)
    return data.view(kind) if dtype != "bool" else (data & 1).view(torch.bool)


def write(tensor: Any, way: str, folder: Path) -> None:
    if way == "safetensors":
        from safetensors.torch import save_file

        save_file({"weight": tensor.contiguous()}, folder / "model.safetensors")
    elif way == "strided":
        torch.save({"weight": tensor.t().contiguous().t()}, folder / "pytorch_model.bin")
    else:
        torch.save({"weight": tensor}, folder / "pytorch_model.bin")


def look(folder: Path, options: PeekOptions = ALL) -> PeekDocument:
    return peek(folder, "weight", options, decoding=Decoding(Intent("verify", "command line"), "all"))


def exact(tensor: Any) -> list[int] | list[float]:
    """Return the numbers of a tensor as Python has them, which is exact."""
    if tensor.is_floating_point():
        return [float(value) for value in tensor.to(torch.float64).reshape(-1).tolist()]
    return [int(value) for value in tensor.reshape(-1).tolist()]


def hold(found: Statistics, numbers: list[int] | list[float]) -> None:
    """Hold statistics against sums that Python rounds once."""
    finite = [value for value in numbers if math.isfinite(value)]
    mean = math.fsum(finite) / len(finite)
    assert found.numbers == len(numbers)
    assert found.zeros == sum(value == 0 for value in numbers)
    assert found.nans == sum(math.isnan(value) for value in numbers)
    assert found.positive_infinite == sum(value == math.inf for value in numbers)
    assert found.negative_infinite == sum(value == -math.inf for value in numbers)
    assert (found.min, found.max) == (min(finite), max(finite))
    scale = max(abs(value) for value in finite)
    if scale * scale * len(finite) < math.inf:
        squares = math.fsum(value * value for value in finite)
        assert found.mean == pytest.approx(mean, rel=1e-12, abs=scale * 1e-15)
        assert found.l2 == pytest.approx(math.sqrt(squares), rel=1e-12)
        variance = math.fsum((value - mean) ** 2 for value in finite) / len(finite)
        assert found.std == pytest.approx(math.sqrt(variance), rel=1e-12)
    exponents = {(value < 0, math.frexp(value)[1] - 1) for value in finite if value}
    assert found.sign_exponents == len(exponents)
    assert (found.exponent_min, found.exponent_max) == (
        min(exponent for _, exponent in exponents),
        max(exponent for _, exponent in exponents),
    )
    assert found.histogram is not None
    assert {(each.negative, each.exponent) for each in found.histogram} == exponents
    assert sum(each.count for each in found.histogram) == sum(value != 0 for value in finite)


@pytest.mark.parametrize("way", ["safetensors", "torch.save", "strided"])
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_every_number_and_what_all_come_to_are_those_of_torch(dtype: str, way: str, tmp_path: Path) -> None:
    tensor = bits(dtype)
    write(tensor, way, tmp_path)
    found = look(tmp_path)
    numbers = exact(tensor)

    assert found.shape == (ROWS, COLUMNS)
    words = [word for row in found.grid.values for word in row]
    assert len(words) == len(numbers)
    if tensor.is_floating_point():
        back = torch.tensor([float(word) for word in words], dtype=torch.float64)
        assert torch.equal(back.nan_to_num(nan=1.5), nearest(tensor).nan_to_num(nan=1.5))
    else:
        assert [int(word) for word in words] == numbers
    assert found.statistics is not None
    hold(found.statistics, numbers)
    if tensor.element_size() == 1:
        assert found.statistics.distinct == len(set(tensor.view(torch.uint8).reshape(-1).tolist()))


def nearest(tensor: Any) -> Any:
    """Return the numbers of a tensor rounded to nine digits, as they are shown, or to seventeen in 64 bits."""
    digits = 17 if tensor.dtype is torch.float64 else 9
    return torch.tensor([float(f"{value:.{digits}g}") for value in exact(tensor)], dtype=torch.float64)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])  # fmt: skip
def test_the_words_of_a_number_lead_back_to_it(dtype: str, tmp_path: Path) -> None:
    tensor = bits(dtype)
    write(tensor, "safetensors", tmp_path)
    words = [float(word) for row in look(tmp_path).grid.values for word in row]
    back = torch.tensor(words, dtype=torch.float32).to(getattr(torch, dtype))
    numbers = tensor.reshape(-1)
    finite = torch.isfinite(numbers.float())
    view = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()]
    assert torch.equal(back.view(view)[finite], numbers.view(view)[finite])


@pytest.mark.parametrize("way", ["safetensors", "torch.save", "strided"])
def test_complex_numbers_are_two_each(way: str, tmp_path: Path) -> None:
    tensor = torch.complex(bits("float32"), bits("float32").flip(0))
    write(tensor, way, tmp_path)
    found = look(tmp_path)

    assert found.dtype == "C64"
    assert found.statistics is not None
    hold(found.statistics, exact(torch.view_as_real(tensor)))
    first = tensor[0, 1].item()
    if math.isfinite(first.real) and math.isfinite(first.imag):
        assert complex(found.grid.values[0][1]) == complex(
            float(f"{first.real:.9g}"), float(f"{first.imag:.9g}")
        )


def test_two_floats_of_four_bits_in_a_byte_are_two_numbers(tmp_path: Path) -> None:
    dtype = getattr(torch, "float4_e2m1fn_x2", None)
    if dtype is None:
        pytest.skip("this torch has no floats of four bits")
    sizes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    codes = [*sizes, *(-size for size in sizes)]
    pairs = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    write(pairs.view(dtype), "safetensors", tmp_path)
    found = look(tmp_path)

    assert (found.dtype, found.shape) == ("F4", (16, 32))
    wanted = [float(codes[nibble]) for byte in range(256) for nibble in (byte & 15, byte >> 4)]
    assert [float(word) for row in found.grid.values for word in row] == wanted
    assert found.statistics is not None
    hold(found.statistics, wanted)


@pytest.mark.parametrize("dtype", ["complex128", "complex32"])
def test_what_safetensors_has_no_name_for_is_refused(dtype: str, tmp_path: Path) -> None:
    write(torch.zeros(2, 2, dtype=getattr(torch, dtype)), "torch.save", tmp_path)
    with pytest.raises(Fault) as caught:
        look(tmp_path)
    assert caught.value.finding.code == "peek.unreadable"


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("3", (3,)),
        ("-1,::5", (-1, slice(None, None, 5))),
        ("4:20:3,7:", (slice(4, 20, 3), slice(7, None))),
        ("...,0", (..., 0)),
    ],
)
def test_a_slice_is_that_of_torch(text: str, index: tuple[Any, ...], tmp_path: Path) -> None:
    tensor = bits("bfloat16").nan_to_num(nan=1.0, posinf=2.0, neginf=3.0)
    write(tensor, "strided", tmp_path)
    found = look(tmp_path, PeekOptions(slice=text, statistics=True, histogram=True))
    assert found.statistics is not None
    hold(found.statistics, exact(tensor[index]))


def test_packed_numbers_are_those_that_shifts_give(tmp_path: Path) -> None:
    tensor = bits("int32")
    write(tensor, "safetensors", tmp_path)
    found = look(tmp_path, PeekOptions(statistics=True, histogram=True, bits=4))
    numbers = [(value >> shift) & 15 for value in exact(tensor) for shift in range(0, 32, 4)]  # type: ignore[operator]
    assert found.statistics is not None
    hold(found.statistics, numbers)

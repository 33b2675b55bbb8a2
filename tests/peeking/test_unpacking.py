"""Packed weights as the numbers that they stand for: small ones worked out by hand, and every way to cut a larger one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.convert.copies.work import Written
from shardscope.engine.inspecting.sides import side_of
from shardscope.engine.looking.packed.ggml import DECODERS
from shardscope.engine.looking.slices import layout, selection
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.model.limits import Limits
from shardscope.engine.peeking.peek import PeekOptions, peek, tensor_of
from shardscope.engine.peeking.unpacking import unpacked
from shardscope.engine.peeking.windows import opened, window
from tests.peeking.test_peeking import Counter

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NAME = "model.layers.0.mlp.up_proj"
SLICES = (None, "5", "3:9,::7", "-4:,10:45", "::5,-1", "1,2", "7:7", "::11,3::2")
chance = np.random.default_rng(12)


class Model:
    """A checkpoint of one packed module."""

    def __init__(self, folder: Path, tensors: dict[str, Any], **config: Any) -> None:
        self.folder = folder
        plain = {key: value for key, value in tensors.items() if not isinstance(value, tuple)}
        if len(plain) == len(tensors):
            save_file(
                {f"{NAME}.{key}": value for key, value in tensors.items()}, folder / "model.safetensors"
            )
        else:
            self._write(tensors)
        if config:
            (folder / "config.json").write_text(json.dumps({"quantization_config": config}))

    def _write(self, tensors: dict[str, Any]) -> None:
        """Write types that numpy has not, each given as bytes with its type."""
        kinds, data = {}, b""
        for key, value in tensors.items():
            array, dtype = (
                value if isinstance(value, tuple) else (value, {"f4": "F32", "u1": "U8"}[value.dtype.str[1:]])
            )
            begin = len(data)
            data += array.tobytes()
            kinds[f"{NAME}.{key}"] = {
                "dtype": dtype,
                "shape": array.shape,
                "data_offsets": [begin, len(data)],
            }
        header = json.dumps(kinds).encode()
        (self.folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)

    def numbers(self, part: str | None = None) -> np.ndarray:
        """Return what a part of the weight stands for."""
        side = side_of(self.folder, limits=Limits())
        tensor = unpacked(side, NAME)
        chosen = selection(part, tensor.shape, NAME)
        items = [Written(tensor, tensor.dtype, 0, layout(chosen))]
        with opened(side, tensor, chosen) as tiles:
            data = [stretch.data[0].copy() for stretch in tiles.stretches(items)] if chosen.elements else []
        return np.concatenate([np.empty(0, "u1"), *data]).view("<f4").reshape(chosen.shape)

    def check(self, expected: np.ndarray) -> None:
        """Hold every slice against the numbers."""
        for part in SLICES:
            index: Any = ... if part is None else index_of(part)
            assert np.array_equal(self.numbers(part), expected.astype("f4")[index]), part


def index_of(part: str) -> tuple[Any, ...]:
    """Return a slice as numpy takes it."""
    found: list[Any] = []
    for word in part.split(","):
        ends = [int(each) if each else None for each in word.split(":")]
        found.append(slice(*ends) if len(ends) > 1 else ends[0])
    return tuple(found)


def words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack the last dimension into 32-bit words, the lowest bits first."""
    single = (codes[..., None] >> np.arange(bits)) & 1
    stream = single.reshape(*codes.shape[:-1], -1)
    stream = np.pad(stream, [(0, 0)] * (codes.ndim - 1) + [(0, -stream.shape[-1] % 32)])
    return np.packbits(stream.astype("u1"), axis=-1, bitorder="little").view("<i4")


@pytest.mark.parametrize(("bits", "form"), [(4, None), (4, "gptq_v2"), (2, None), (3, None), (8, None)])
@pytest.mark.parametrize("ordered", [False, True])
def test_gptq(bits: int, form: str | None, ordered: bool, tmp_path: Path) -> None:
    outputs, inputs, groups = 64, 96, 3
    q = chance.integers(0, 1 << bits, (outputs, inputs))
    z = chance.integers(0, (1 << bits) - 1, (groups, outputs))
    scale = chance.normal(size=(groups, outputs)).astype("f2")
    order = (
        chance.integers(0, groups, inputs).astype("i4") if ordered else (np.arange(inputs) // 32).astype("i4")
    )
    tensors = {
        "qweight": words(q, bits).T.copy(),
        "qzeros": words(z, bits),
        "scales": scale,
        "g_idx": order,
    }
    config: dict[str, Any] = {"quant_method": "gptq", "bits": bits, "group_size": 32}
    model = Model(tmp_path, tensors, **config, **({"checkpoint_format": form} if form else {}))

    zero = z + (0 if form == "gptq_v2" else 1)
    model.check((q - zero[order].T).astype("f4") * scale.astype("f4")[order].T)


def test_what_is_read_ahead_is_what_was_asked_for(tmp_path: Path) -> None:
    outputs, inputs, groups = 1200, 256, 16
    q, z = chance.integers(0, 16, (outputs, inputs)), chance.integers(0, 15, (groups, outputs))
    scale, group = chance.normal(size=(groups, outputs)).astype("f2"), np.arange(inputs) // 16
    tensors = {"qweight": words(q, 4).T.copy(), "qzeros": words(z, 4), "scales": scale}
    model = Model(tmp_path, tensors, quant_method="gptq", bits=4)
    expected = (q - z[group].T - 1).astype("f4") * scale.astype("f4")[group].T

    for part in (None, "1:,:250", "::2"):
        assert np.array_equal(model.numbers(part), expected[... if part is None else index_of(part)])


def test_awq(tmp_path: Path) -> None:
    outputs, inputs, groups = 64, 48, 3
    q, z = chance.integers(0, 16, (inputs, outputs)), chance.integers(0, 16, (groups, outputs))
    scale = chance.normal(size=(groups, outputs)).astype("f2")

    def laced(codes: np.ndarray) -> np.ndarray:  # pack_intweight of AutoAWQ: its order_map
        found = np.zeros((len(codes), codes.shape[1] // 8), "u4")
        for at, output in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            found |= codes[:, output::8].astype("u4") << np.uint32(4 * at)
        return found.view("i4")

    tensors = {"qweight": laced(q), "qzeros": laced(z), "scales": scale}
    model = Model(tmp_path, tensors, quant_method="awq", bits=4, group_size=16)

    group = np.arange(inputs) // 16
    model.check(((q - z[group]).astype("f4") * scale.astype("f4")[group]).T)


@pytest.mark.parametrize(("bits", "zeros"), [(4, False), (4, True), (3, True), (8, False)])
def test_integers_of_compressed_tensors(bits: int, zeros: bool, tmp_path: Path) -> None:
    rows, inputs, groups = 33, 64, 4
    half = 1 << bits - 1
    q, z = chance.integers(-half, half, (rows, inputs)), chance.integers(-half, half, (rows, groups))
    scale = chance.normal(size=(rows, groups)).astype("f4")
    tensors = {
        "weight_packed": words(q + half, bits),
        "weight_scale": scale,
        "weight_shape": np.array([rows, inputs]),
    }
    if zeros:
        tensors["weight_zero_point"] = words((z + half).T, bits).T.copy()
    groups_of = {"group_0": {"weights": {"num_bits": bits, "group_size": 16}}}
    model = Model(tmp_path, tensors, quant_method="compressed-tensors", config_groups=groups_of)

    spread = np.repeat(z if zeros else np.zeros_like(z), 16, axis=1)
    model.check((q - spread).astype("f4") * np.repeat(scale, 16, axis=1))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], "f4")


@pytest.mark.parametrize("whole", ["weight_global_scale", "weight_scale_2"])
def test_four_bit_floats_of_nvidia(whole: str, tmp_path: Path) -> None:
    rows, inputs = 24, 64
    codes = chance.integers(0, 16, (rows, inputs)).astype("u1")
    scale = chance.integers(0x20, 0x40, (rows, inputs // 16)).astype("u1")  # exponents of 4 to 7, biased by 7
    weight = "weight_packed" if whole == "weight_global_scale" else "weight"
    tensors = {
        weight: codes[:, ::2] | (codes[:, 1::2] << 4),
        "weight_scale": (scale, "F8_E4M3"),
        whole: np.array([4], "f4"),
    }
    model = Model(tmp_path, tensors)

    numbers = 2.0 ** ((scale >> 3).astype("i4") - 7) * (1 + (scale & 7) / 8)
    every = np.repeat(numbers, 16, axis=1)
    model.check(E2M1[codes] * (every / 4 if whole == "weight_global_scale" else every * 4))


def test_experts_of_microscaled_floats(tmp_path: Path) -> None:
    codes = chance.integers(0, 16, (2, 5, 3, 32)).astype("u1")
    scales = chance.integers(120, 132, (2, 5, 3)).astype("u1")
    name = "model.layers.0.mlp.experts.down_proj"
    packed = codes[..., ::2] | (codes[..., 1::2] << 4)
    save_file({f"{name}_blocks": packed, f"{name}_scales": scales}, tmp_path / "model.safetensors")
    expected = (E2M1[codes] * 2.0 ** (scales[..., None].astype("i4") - 127)).reshape(2, 5, 96)

    found = peek(tmp_path, name, PeekOptions(logical=True, slice="1,::2,90:", statistics=True))

    assert found.shape == (2, 5, 96)
    assert [[float(word) for word in row] for row in found.grid.values] == expected[1, ::2, 90:].tolist()
    assert found.statistics is not None
    assert found.statistics.max == expected[1, ::2, 90:].max()
    assert found.packing is not None
    assert found.packing.companions == (f"{name}_scales",)


@pytest.mark.parametrize(
    ("shape", "group"),
    [
        ((3, 2), (16, 32)),
        ((40, 1), (1, 50)),
        ((40,), (1, 50)),
        ((1,), (40, 50)),
        ((), (40, 50)),
        ((40, 5), (1, 10)),
    ],
)
def test_eight_bit_floats_with_scales(shape: tuple[int, ...], group: tuple[int, int], tmp_path: Path) -> None:
    codes = chance.integers(0x30, 0x48, (40, 50)).astype("u1")
    scale = chance.normal(size=shape).astype("f4")
    tensors = {"weight": (codes, "F8_E4M3"), "weight_scale_inv": (np.asarray(scale), "F32")}
    model = Model(tmp_path, tensors, quant_method="fp8", weight_block_size=[16, 32])

    numbers = (2.0 ** ((codes >> 3).astype("i4") - 7) * (1 + (codes & 7) / 8)).astype("f4")
    down, across = group
    lines, cells = -(-40 // down), -(-50 // across)
    spread = scale.reshape(lines, cells)[np.arange(40)[:, None] // down, np.arange(50) // across]
    model.check(numbers * spread)


@pytest.mark.parametrize("part", [None, "-2", "5:7,::3"])
def test_a_row_of_a_hundred_gigabytes_costs_less_than_a_megabyte(
    part: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, blocks = 128 * 10**5, 10**5
    weight, scale = rows * 8192, blocks * 64 * 4
    kinds = {
        f"{NAME}.weight": {"dtype": "F8_E4M3", "shape": [rows, 8192], "data_offsets": [0, weight]},
        f"{NAME}.weight_scale_inv": {
            "dtype": "F32",
            "shape": [blocks, 64],
            "data_offsets": [weight, weight + scale],
        },
    }
    header = json.dumps(kinds).encode()
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        begin = file.tell()
        file.truncate(begin + weight + scale)
        file.seek(begin + (rows - 2) * 8192)
        file.write(bytes([0x38]) * 8192)
        file.seek(begin + weight + (blocks - 1) * 256)
        file.write(np.full(64, 2.5, "<f4").tobytes())
    counter = Counter(monkeypatch)

    found = peek(tmp_path, NAME, PeekOptions(slice=part, logical=True, statistics=part is not None))

    assert 0 < counter.bytes < 1_000_000
    if part == "-2":
        assert found.statistics is not None
        assert (found.statistics.min, found.statistics.max) == (2.5, 2.5)


@pytest.mark.parametrize("nested", [False, True])
def test_four_bits_of_bitsandbytes(nested: bool, tmp_path: Path) -> None:
    rows, inputs, block = 20, 48, 64
    codes = chance.integers(0, 16, rows * inputs).astype("u1")
    table, count = np.sort(chance.normal(size=16)).astype("f4"), rows * inputs // block
    state = {"shape": [rows, inputs], "blocksize": block, "quant_type": "nf4", "dtype": "float32"}
    sizes = chance.random(count).astype("f4")
    tensors = {
        "weight": ((codes[::2] << 4) | codes[1::2]).reshape(-1, 1),
        "weight.absmax": sizes,
        "weight.quant_map": table,
    }
    if nested:
        known, outer = chance.normal(size=256).astype("f4"), chance.random(2).astype("f4")
        packed = chance.integers(0, 256, count).astype("u1")
        state |= {"nested_blocksize": 8, "nested_offset": 0.25, "nested_dtype": "float32"}
        tensors |= {"weight.absmax": packed, "weight.nested_absmax": outer, "weight.nested_quant_map": known}
        sizes = known[packed] * outer[np.arange(count) // 8] + np.float32(0.25)
    tensors["weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), "u1")
    model = Model(tmp_path, tensors)

    model.check((table[codes] * sizes[np.arange(rows * inputs) // block]).reshape(rows, inputs))


def test_eight_bits_of_bitsandbytes(tmp_path: Path) -> None:
    codes, sizes = chance.integers(-127, 128, (30, 50)).astype("i1"), chance.random(30).astype("f4")
    model = Model(tmp_path, {"weight": codes, "SCB": sizes})

    model.check(codes.astype("f4") * sizes[:, None] * np.float32(7.874015718698502e-3))


def half(value: float) -> list[int]:
    return list(np.array([value], "<f2").view("u1"))


BLOCKS: dict[str, tuple[list[int], dict[int, float]]] = {
    "Q4_0": ([*half(0.5), 0x2F, *[0x88] * 15], {0: 3.5, 16: -3.0, 1: 0.0, 31: 0.0}),
    "Q4_1": ([*half(0.5), *half(-1), 0x2F, *[0] * 15], {0: 6.5, 16: 0.0, 1: -1.0}),
    "Q5_0": ([*half(2), 1, 0, 2, 0, 0x1F, *[0] * 15], {0: 30.0, 16: -30.0, 17: 0.0, 2: -32.0}),
    "Q5_1": ([*half(2), *half(1), 1, 0, 2, 0, 0x1F, *[0] * 15], {0: 63.0, 16: 3.0, 17: 33.0, 2: 1.0}),
    "Q8_0": ([*half(0.25), 0xFF, 0x7F, *[0] * 30], {0: -0.25, 1: 31.75, 2: 0.0}),
    "Q2_K": (
        [0x21, *[0] * 15, 0b11_10_01_00, *[0] * 63, *half(1), *half(0.5)],
        {0: -1.0, 1: -1.0, 32: 0.0, 16: 0.0},
    ),
    "Q6_K": (
        [0x21, *[0] * 127, 0b11_10_01_00, *[0] * 63, 2, *[0] * 7, 0xFF, *[0] * 7, *half(0.5)],
        {0: -31.0, 1: -32.0, 128: 16.0},
    ),
    "Q4_K": (
        [*half(1), *half(0.5), 3, 0, 0, 0, 2, 0, 0, 0, 0x1F, 0, 0, 0, 0x5F, *[0] * 127],
        {0: 44.0, 1: -1.0, 32: 0.0, 128: -0.5},
    ),
    "Q5_K": (
        [*half(1), *half(0.5), 3, 0, 0, 0, 2, *[0] * 7, 1, *[0] * 31, 0x5F, *[0] * 127],
        {0: 92.0, 1: -1.0},
    ),
    "Q3_K": (
        [1, *[0] * 31, 0b11, *[0] * 63, 0x01, *[0] * 7, 0b10, *[0] * 3, *half(2)],
        {0: 6.0, 1: -8.0, 16: 256.0},
    ),
    "IQ4_NL": ([*half(2), 0xF8, *[0] * 15], {0: 2.0, 16: 226.0, 1: -254.0}),
    "MXFP4": ([128, 0xA7, *[0] * 15], {0: 12.0, 16: -2.0, 1: 0.0}),
    "TQ1_0": ([86, *[0] * 51, *half(3)], {0: 0.0, 32: -3.0, 1: -3.0}),
    "NVFP4": ([0x38, 0x40, 0, 0, 0x72, *[0] * 7, 0x02, *[0] * 23], {0: 1.0, 8: 6.0, 16: 2.0, 1: 0.0}),
    "TQ2_0": ([0b10_01_00_10, *[0] * 63, *half(3)], {0: 3.0, 32: -3.0, 64: 0.0, 96: 3.0, 1: -3.0}),
}
"""Of each type a block, and some of its numbers, worked out by the comments of `ggml-common.h`."""


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_of_ggml(kind: str) -> None:
    data, known = BLOCKS[kind]
    assert len(data) == BLOCK_TYPES[kind].bytes
    found = DECODERS[kind](np.array([data], "u1"))

    assert found.shape == (1, BLOCK_TYPES[kind].block)
    assert {place: float(found[0, place]) for place in known} == known


def test_blocks_of_a_file_are_numbers_and_those_that_writers_disagree_about_are_not() -> None:
    little, big = (
        side_of(FIXTURES / "gguf" / name / "checkpoint", limits=Limits())
        for name in ("llama_mixed", "llama_mixed_be")
    )
    names = [tensor.name for tensor in little.catalogue.tensors if tensor.dtype in BLOCK_TYPES]
    assert len(names) == 13
    for name in names:
        tensor = tensor_of(little, name)
        words = window(little, tensor, selection("1::9,3:60:8", tensor.shape, name)).words
        assert len({word for row in words for word in row}) > 10
        assert tensor_of(big, name).dtype in BLOCK_TYPES
        with pytest.raises(Fault) as caught:
            unpacked(big, name)
        assert caught.value.finding.code == "peek.packing"


def refused(folder: Path, name: str = NAME) -> Fault:
    with pytest.raises(Fault) as caught:
        unpacked(side_of(folder, limits=Limits()), name)
    return caught.value


def test_what_is_not_packed_is_refused(tmp_path: Path) -> None:
    Model(tmp_path, {"weight": np.ones((4, 4), "f4")})

    assert refused(tmp_path).finding.code == "peek.not_packed"


BROKEN: Sequence[tuple[dict[str, Any], str]] = (
    ({"qweight": np.zeros((8, 64), "i4"), "scales": np.ones((2, 64), "f2")}, "how many bits"),
    ({"qweight": np.zeros((8, 64), "i4"), "qzeros": np.zeros((2, 8), "i4")}, "scales is not there"),
    ({"qweight": np.zeros((8, 64), "i4"), "qzeros": np.zeros((3, 8), "i4"), "scales": np.ones((2, 64), "f2")}, "elements"),
    ({"weight": np.zeros((4, 4), "i1"), "weight_scale": np.ones((3, 3, 3), "f4")}, "do not fit"),
    ({"weight": np.zeros((4, 4), "i1"), "SCB": np.ones(3, "f4")}, "elements"),
    ({"weight": np.zeros((8, 1), "u1"), "weight.absmax": np.ones(1, "f4"), "weight.quant_map": np.ones(16, "f4"),
      "weight.quant_state.bitsandbytes__nf4": np.frombuffer(b'{"shape": [-4, true], "blocksize": 64}', "u1")}, "no shape"),
    ({"weight": np.zeros((8, 1), "u1"), "weight.absmax": np.ones(1, "f4"), "weight.quant_map": np.ones(16, "f4"),
      "weight.quant_state.bitsandbytes__nf4": np.frombuffer(b'{"shape": [4, 4000], "blocksize": 64}', "u1")}, "elements"),
)  # fmt: skip


def test_groups_that_are_not_there_are_refused(tmp_path: Path) -> None:
    order = np.zeros(32, "i4")
    order[9] = 2**31 - 1
    tensors = {
        "qweight": np.zeros((4, 64), "i4"),
        "qzeros": np.zeros((2, 8), "i4"),
        "scales": np.ones((2, 64), "f2"),
        "g_idx": order,
    }
    model = Model(tmp_path, tensors)

    assert model.numbers(":,:9").shape == (64, 9)
    with pytest.raises(Fault) as caught:
        model.numbers()
    assert caught.value.finding.params["why"] == "g_idx has a group that is not there"


@pytest.mark.parametrize(("tensors", "why"), BROKEN)
def test_what_does_not_fit_together_is_refused(tensors: dict[str, Any], why: str, tmp_path: Path) -> None:
    Model(tmp_path, tensors)
    fault = refused(tmp_path)

    assert fault.finding.code == "peek.packing"
    assert why in str(fault.finding.params["why"])

"""The numbers of packed weights, against what the libraries that packed them make of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardscope.engine.inspecting.sides import side_of
from shardscope.engine.looking.slices import layout, selection
from shardscope.engine.model.limits import Limits
from shardscope.engine.peeking.peek import PeekOptions, look
from shardscope.engine.peeking.unpacking import described, unpacked
from shardscope.engine.peeking.windows import opened
from tests.peeking.test_unpacking import index_of

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

NAME = "model.layers.0.mlp.up_proj"
SLICES = (None, "5", "3:9,::7", "-4:,10:45", "::5,-1")


def numbers(path: Path, name: str, part: str | None = None) -> np.ndarray:
    """Return what a part of a packed weight stands for."""
    from shardscope.engine.convert.copies.work import Written

    side = side_of(path, limits=Limits())
    tensor = unpacked(side, name)
    chosen = selection(part, tensor.shape, name)
    with opened(side, tensor, chosen) as tiles:
        data = [
            stretch.data[0].copy()
            for stretch in tiles.stretches([Written(tensor, tensor.dtype, 0, layout(chosen))])
        ]
    return np.concatenate(data).view("<f4").reshape(chosen.shape)


def check(path: Path, name: str, expected: np.ndarray, *, exact: bool = True, tolerance: float = 0.0) -> None:
    """Hold every slice of a weight against the numbers of its producer."""
    for part in SLICES:
        found = numbers(path, name, part)
        index = index_of(part) if part is not None else ...
        wanted = expected[index]
        assert found.shape == wanted.shape
        if exact:
            assert np.array_equal(found, wanted, equal_nan=True), (name, part)
        else:
            assert np.allclose(found, wanted, rtol=tolerance, atol=0), (name, part)


KINDS = (
    "Q4_0",
    "Q4_1",
    "Q5_0",
    "Q5_1",
    "Q8_0",
    "Q2_K",
    "Q3_K",
    "Q4_K",
    "Q5_K",
    "Q6_K",
    "IQ4_NL",
    "IQ4_XS",
    "TQ2_0",
    "MXFP4",
    "NVFP4",
    "TQ1_0",
)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_ggml_are_what_gguf_makes_of_them(kind: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    from gguf.quants import dequantize

    qtype = gguf.GGMLQuantizationType[kind]
    block, size = gguf.GGML_QUANT_SIZES[qtype]
    chance = np.random.default_rng(4)
    rows, columns = 37, 512
    data = chance.integers(0, 256, (rows, columns // block, size)).astype("u1")
    for at in {
        "Q2_K": (80, 82),
        "Q3_K": (108,),
        "Q4_K": (0, 2),
        "Q5_K": (0, 2),
        "Q6_K": (208,),
        "TQ2_0": (64,),
        "MXFP4": (),
        "NVFP4": (),
        "TQ1_0": (52,),
    }.get(kind, (0, 2) if kind in ("Q4_1", "Q5_1") else (0,)):
        data[..., at : at + 2] = (
            chance.normal(size=(rows, columns // block, 1))
            .astype("<f2")
            .view("u1")
            .reshape(rows, columns // block, 2)
        )
    data = data.reshape(rows, -1)
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tensor("blk.0.w", data, raw_dtype=qtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    check(tmp_path, "blk.0.w", dequantize(data, qtype))


COMPRESSED = (
    ("W4A16", "pack-quantized", "group"),
    ("W4A16_ASYM", "pack-quantized", "group"),
    ("W3A16", "pack-quantized", "channel"),
    ("W8A16", "pack-quantized", "channel"),
    ("W8A8", "int-quantized", "channel"),
    ("FP8_DYNAMIC", "float-quantized", "channel"),
    ("FP8_BLOCK", "float-quantized", "block"),
    ("NVFP4A16", "nvfp4-pack-quantized", "group"),
    ("MXFP4A16", "mxfp4-pack-quantized", "group"),
    ("MXFP6A16", "mxfp6-pack-quantized", "group"),
    ("MXFP8A16", "mxfp8-quantized", "group"),
)


@pytest.mark.parametrize(("preset", "form", "sharing"), COMPRESSED)
def test_what_compressed_tensors_packs(preset: str, form: str, sharing: str, tmp_path: Path) -> None:
    compressors = pytest.importorskip("compressed_tensors.compressors")
    quantization = pytest.importorskip("compressed_tensors.quantization")
    from safetensors.torch import save_file

    torch.manual_seed(1)
    rows, columns = 96, 256
    try:
        how = quantization.preset_name_to_scheme(preset, ["Linear"])
    except KeyError:
        pytest.skip("this release has no such preset")
    group = how.weights.group_size or columns
    shape = {"group": (rows, columns // max(1, group)), "channel": (rows, 1), "block": (1, 2)}[sharing]
    state: dict[str, Any] = {"weight": torch.randn(rows, columns)}
    size = 6.0 if "FP4" in preset or "FP6" in preset else 100.0 if "8" in preset else 2.0
    state["weight_scale"] = torch.rand(shape) * 3 / size + 0.01
    if preset.startswith("MX"):
        state["weight_scale"] = 2.0 ** torch.randint(-4, 1, shape).float()
    if preset.startswith("NVFP4"):
        state["weight_global_scale"] = torch.tensor([3.5])
        state["weight_scale"] = (torch.rand(shape) + 0.5).to(torch.float8_e4m3fn).float()
    if not how.weights.symmetric:
        state["weight_zero_point"] = torch.randint(-7, 7, shape, dtype=torch.int8)
    compressor = compressors.BaseCompressor.get_value_from_registry(form)
    packed = compressor.compress(state, how)
    tensors = {f"{NAME}.{name}": tensor.contiguous() for name, tensor in packed.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    weights = {"num_bits": how.weights.num_bits, "group_size": how.weights.group_size}
    if sharing == "block":
        weights["block_structure"] = [128, 128]
    config = {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": config}))
    expected = compressor.decompress(dict(packed), how)["weight"]

    check(
        tmp_path,
        NAME,
        expected.float().numpy(),
        exact=False,
        tolerance=2e-2 if expected.dtype == torch.bfloat16 else 1e-6,
    )
    assert described(unpacked(side_of(tmp_path, limits=Limits()), NAME)) is not None


@pytest.mark.parametrize(("kind", "double"), [("nf4", False), ("nf4", True), ("fp4", False)])
def test_four_bits_of_bitsandbytes(kind: str, double: bool, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    import bitsandbytes.functional as functional
    from safetensors.torch import save_file

    torch.manual_seed(2)
    weight = torch.randn(90, 128)
    packed, state = functional.quantize_4bit(
        weight, blocksize=64, quant_type=kind, compress_statistics=double
    )
    tensors = {f"{NAME}.weight": packed}
    tensors |= {f"{NAME}.weight.{key}": value for key, value in state.as_dict(packed=True).items()}
    save_file(tensors, tmp_path / "model.safetensors")

    expected = functional.dequantize_4bit(packed, state)
    check(tmp_path, f"{NAME}.weight", expected.numpy(), exact=False, tolerance=1e-6)


def test_eight_bits_of_bitsandbytes(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    import bitsandbytes.functional as functional
    from safetensors.torch import save_file

    torch.manual_seed(3)
    codes, sizes, _ = functional.int8_vectorwise_quant(torch.randn(70, 64).half())
    save_file({f"{NAME}.weight": codes, f"{NAME}.SCB": sizes}, tmp_path / "model.safetensors")

    check(
        tmp_path, NAME, functional.int8_vectorwise_dequant(codes, sizes).numpy(), exact=False, tolerance=1e-6
    )


def test_experts_of_gpt_oss(tmp_path: Path) -> None:
    mxfp4 = pytest.importorskip("transformers.integrations.mxfp4")
    from safetensors.torch import save_file

    torch.manual_seed(4)
    blocks = torch.randint(0, 256, (3, 24, 4, 16), dtype=torch.uint8)
    scales = torch.randint(110, 130, (3, 24, 4), dtype=torch.uint8)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    save_file({f"{name}_blocks": blocks, f"{name}_scales": scales}, tmp_path / "model.safetensors")
    expected = mxfp4.convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).transpose(1, 2)

    found = numbers(tmp_path, name)
    assert np.array_equal(found, expected.numpy())
    assert np.array_equal(numbers(tmp_path, name, "1,::3,5:40:2"), expected.numpy()[1, ::3, 5:40:2])


def test_blocks_of_deepseek(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    torch.manual_seed(5)
    weight, scale = torch.randn(300, 200).to(torch.float8_e4m3fn), torch.rand(3, 2)
    save_file({f"{NAME}.weight": weight, f"{NAME}.weight_scale_inv": scale}, tmp_path / "model.safetensors")
    spread = scale.repeat_interleave(128, 0)[:300].repeat_interleave(128, 1)[:, :200]

    check(tmp_path, NAME, (weight.float() * spread).numpy())


def test_statistics_are_those_of_the_numbers(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    weight = torch.randn(256, 256).to(torch.float8_e4m3fn)
    save_file(
        {f"{NAME}.weight": weight, f"{NAME}.weight_scale": torch.tensor(0.5)}, tmp_path / "model.safetensors"
    )
    side = side_of(tmp_path, limits=Limits())
    found = look(side, unpacked(side, NAME), PeekOptions(statistics=True, heat=True))

    assert found.statistics is not None
    assert found.statistics.mean == pytest.approx(float((weight.double() * 0.5).mean()))
    assert found.packing is not None

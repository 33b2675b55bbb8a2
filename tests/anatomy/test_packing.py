"""Packed weights: the tensors that each library leaves behind, the weight that they stand for, and what is missing among them."""

from collections.abc import Iterable

import pytest

from shardscope.engine.anatomy import architecture, counting, packing
from shardscope.engine.anatomy.items import Item, use_of
from shardscope.engine.model.anatomy import PackedGroup, Packing
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.parse.model_sizes import read_packing, read_sizes
from tests.anatomy.models import item

M = "model.layers.0.mlp.down_proj"
OUT, IN = 4096, 14336
"""Outputs and inputs of the weight that each case stands for."""


def gptq(bits: int = 4, group: int = 128) -> list[Item]:
    return [
        item(f"{M}.qweight", IN * bits // 32, OUT, dtype="I32"),
        item(f"{M}.qzeros", IN // group, OUT * bits // 32, dtype="I32"),
        item(f"{M}.scales", IN // group, OUT, dtype="F16"),
        item(f"{M}.g_idx", IN, dtype="I32"),
    ]


def awq(group: int = 128) -> list[Item]:
    return [
        item(f"{M}.qweight", IN, OUT // 8, dtype="I32"),
        item(f"{M}.qzeros", IN // group, OUT // 8, dtype="I32"),
        item(f"{M}.scales", IN // group, OUT, dtype="F16"),
    ]


def mxfp6() -> list[Item]:
    return [
        item(f"{M}.weight_packed", OUT, IN * 3 // 4, dtype="U8"),
        item(f"{M}.weight_scale", OUT, IN // 32, dtype="U8"),
    ]


def mxfp8() -> list[Item]:
    return [
        item(f"{M}.weight", OUT, IN, dtype="F8_E4M3"),
        item(f"{M}.weight_scale", OUT, IN // 32, dtype="U8"),
    ]


def bnb4(kind: str = "nf4", nested: bool = True) -> list[Item]:
    found = [
        item(f"{M}.weight", OUT * IN // 2, 1, dtype="U8"),
        item(f"{M}.weight.absmax", OUT * IN // 64, dtype="U8" if nested else "F32"),
        item(f"{M}.weight.quant_map", 16, dtype="F32"),
        item(f"{M}.weight.quant_state.bitsandbytes__{kind}", 140, dtype="U8"),
    ]
    if nested:
        found.append(item(f"{M}.weight.nested_absmax", OUT * IN // 64 // 256, dtype="F32"))
        found.append(item(f"{M}.weight.nested_quant_map", 256, dtype="F32"))
    return found


def compressed(group: int | None = 128) -> list[Item]:
    return [
        item(f"{M}.weight_packed", OUT, IN // 8, dtype="I32"),
        item(f"{M}.weight_scale", OUT, IN // group if group else 1),
        item(f"{M}.weight_shape", 2, dtype="I64"),
    ]


def nvfp4() -> list[Item]:
    return [
        item(f"{M}.weight_packed", OUT, IN // 2, dtype="U8"),
        item(f"{M}.weight_scale", OUT, IN // 16, dtype="F8_E4M3"),
        item(f"{M}.weight_global_scale", 1, dtype="F32"),
    ]


def modelopt() -> list[Item]:
    return [
        item(f"{M}.weight", OUT, IN // 2, dtype="U8"),
        item(f"{M}.weight_scale", OUT, IN // 16, dtype="F8_E4M3"),
        item(f"{M}.weight_scale_2", dtype="F32"),
        item(f"{M}.input_scale", dtype="F32"),
    ]


def blocks() -> list[Item]:
    return [
        item(f"{M}.weight", OUT, IN, dtype="F8_E4M3"),
        item(f"{M}.weight_scale_inv", OUT // 128, IN // 128, dtype="F32"),
    ]


def rows(dtype: str = "F8_E4M3") -> list[Item]:
    return [item(f"{M}.weight", OUT, IN, dtype=dtype), item(f"{M}.weight_scale", OUT, 1)]


def whole() -> list[Item]:
    return [item(f"{M}.weight", OUT, IN, dtype="F8_E4M3"), item(f"{M}.weight_scale", dtype="F32")]


def int8() -> list[Item]:
    return [item(f"{M}.weight", OUT, IN, dtype="I8"), item(f"{M}.SCB", OUT, dtype="F32")]


def mxfp4() -> list[Item]:
    return [
        item(f"{M}_blocks", 8, OUT, IN // 32, 16, dtype="U8"),
        item(f"{M}_scales", 8, OUT, IN // 32, dtype="U8"),
    ]


def ggml(name: str = "Q4_K") -> list[Item]:
    kind = BLOCK_TYPES[name]
    return [
        Item(f"{M}.weight", name, (OUT, IN), OUT * IN // kind.block * kind.bytes, use_of(M, name, (OUT, IN)))
    ]


def only(items: Iterable[Item], declared: Packing | None = None) -> PackedGroup:
    (group,) = packing.find(items, declared).groups
    return group


@pytest.mark.parametrize(
    ("items", "scheme", "bits", "group", "shape"),
    [
        (gptq(), "GPTQ", 4, "128 inputs", (OUT, IN)),
        (gptq(8, 64), "GPTQ", 8, "64 inputs", (OUT, IN)),
        (gptq(3), "GPTQ", 3, "128 inputs", (OUT, IN)),
        (awq(), "AWQ", 4, "128 inputs", (OUT, IN)),
        (compressed(), "compressed-tensors integers", 4, "128 inputs", (OUT, IN)),
        (compressed(None), "compressed-tensors integers", 4, "a row", (OUT, IN)),
        (nvfp4(), "NVFP4", 4, "16 inputs", (OUT, IN)),
        (modelopt(), "NVFP4", 4, "16 inputs", (OUT, IN)),
        (mxfp6(), "MXFP6", 6, "32 inputs", (OUT, IN)),
        (mxfp8(), "MXFP8", 8, "32 inputs", (OUT, IN)),
        (bnb4(), "bitsandbytes nf4", 4, "64 weights", None),
        (bnb4("fp4", nested=False), "bitsandbytes fp4", 4, "64 weights", None),
        (int8(), "bitsandbytes int8", 8, "a row", (OUT, IN)),
        (blocks(), "fp8 blocks", 8, "128x128", (OUT, IN)),
        (rows(), "fp8", 8, "a row", (OUT, IN)),
        (rows("I8"), "int8", 8, "a row", (OUT, IN)),
        (whole(), "fp8", 8, "the tensor", (OUT, IN)),
        (mxfp4(), "MXFP4", 4, "32 inputs", (8, OUT, IN)),
        (ggml(), "GGUF Q4_K", 4, "256 weights", (OUT, IN)),
    ],
)
def test_each_library_is_known_by_what_it_leaves(
    items: list[Item], scheme: str, bits: int, group: str, shape: tuple[int, ...] | None
) -> None:
    declared = Packing(bits=4) if scheme.startswith("compressed") else None
    found = packing.find(items, declared)
    (packed,) = found.groups
    assert (packed.scheme, packed.bits, packed.group, packed.logical) == (scheme, bits, group, shape)
    assert packed.elements == OUT * IN * (8 if scheme == "MXFP4" else 1)
    assert packed.bytes == sum(each.bytes for each in items)
    assert {each.code for each in found.findings} <= {"model.packing_undeclared"}
    counts = counting.parameters(items, found.elements, found.companions, None)
    assert counts.total == packed.elements
    assert counts.buffers == 0


@pytest.mark.parametrize(
    ("items", "gone", "companion"),
    [
        (gptq(), ".scales", "scales"),
        (gptq(), ".qzeros", "qzeros"),
        (awq(), ".qzeros", "qzeros"),
        (compressed(), ".weight_shape", "weight_shape"),
        (compressed(), ".weight_scale", "weight_scale"),
        (nvfp4(), ".weight_global_scale", "weight_global_scale"),
        (modelopt(), ".weight_scale_2", "weight_scale_2"),
        (bnb4(), ".weight.quant_map", "weight.quant_map"),
        (bnb4(), ".weight.quant_state.bitsandbytes__nf4", "weight.quant_state"),
        (bnb4(), ".weight.nested_quant_map", "weight.nested_quant_map"),
        (mxfp4(), "_scales", "scales"),
    ],
)
def test_a_companion_that_is_missing_is_named(items: list[Item], gone: str, companion: str) -> None:
    left = [each for each in items if not each.name.endswith(gone)]
    found = [each for each in packing.find(left, None).findings if each.code == "model.companion_missing"]
    assert [each.params["companion"] for each in found] == [companion]
    assert found[0].params["tensor"] == M


def test_a_weight_of_eight_bits_without_its_scale_is_named() -> None:
    other = item("model.layers.1.mlp.down_proj.weight", OUT, IN, dtype="F8_E4M3")
    found = [
        each
        for each in packing.find([*blocks(), other], None).findings
        if each.code == "model.companion_missing"
    ]
    assert [(each.params["scheme"], each.params["tensor"]) for each in found] == [("fp8", other.name)]


@pytest.mark.parametrize(
    "items",
    [
        [*gptq()[:1], item(f"{M}.qzeros", 7, OUT // 8, dtype="I32"), *gptq()[2:]],
        [awq()[0], item(f"{M}.qzeros", 3, 3, dtype="I32"), awq()[2]],
        [nvfp4()[0], item(f"{M}.weight_scale", OUT, IN // 32, dtype="F8_E4M3"), nvfp4()[2]],
        [blocks()[0], item(f"{M}.weight_scale_inv", 3, 3, dtype="F32")],
        [int8()[0], item(f"{M}.SCB", OUT + 1, dtype="F32")],
        [mxfp4()[0], item(f"{M}_scales", 8, OUT, 5, dtype="U8")],
        [rows()[0], item(f"{M}.weight_scale", OUT - 1)],
    ],
)
def test_scales_that_do_not_fit_their_weight_are_an_error(items: list[Item]) -> None:
    assert "model.packing_shape" in {each.code for each in packing.find(items, None).findings}


@pytest.mark.parametrize(
    "config",
    [
        {"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 128}},
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64}},
        {"quant_method": "gptq", "bits": 3},
    ],
)
def test_another_declaration_is_a_warning(config: dict[str, object]) -> None:
    codes = [each.code for each in packing.find(gptq(), read_packing(config)).findings]
    assert codes == ["model.packing_declared"]


def test_what_is_declared_and_not_there_is_a_warning() -> None:
    declared = Packing(method="bitsandbytes", bits=4)
    codes = [each.code for each in packing.find([item("model.norm.weight", 8)], declared).findings]
    assert codes == ["model.packing_absent"]


@pytest.mark.parametrize(
    ("config", "packed"),
    [
        ({}, None),
        ({"quantization_config": None}, None),
        ({"quantization_config": []}, None),
        ({"quantization_config": {}}, Packing()),
        ({"quantization_config": {"quant_method": "awq", "w_bit": 4, "q_group_size": 64}}, Packing("awq", 4, 64)),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 64]}}, Packing("fp8", None, None, (128, 64))),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, "x"]}}, Packing("fp8")),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, Packing("bitsandbytes", 4)),
        ({"quantization_config": {"quant_method": "\x1b[31m", "bits": -4, "group_size": "128"}}, Packing()),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups":
             {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}}}},
            Packing("compressed-tensors", 4, 32, None, 1),
        ),
        ({"text_config": {"quantization_config": {"quant_method": "gptq", "bits": 4}}}, Packing("gptq", 4)),
    ],
)  # fmt: skip
def test_declarations_are_read_field_by_field(config: dict[str, object], packed: Packing | None) -> None:
    assert read_packing(config) == packed


def test_packed_weights_are_held_against_the_configuration_by_their_own_shape() -> None:
    items = gptq()
    found = packing.find(items, None)
    weights = architecture.weights(items, found.weights, found.elements.keys() | found.companions)
    right = read_sizes({"hidden_size": OUT, "intermediate_size": IN})
    wrong = read_sizes({"hidden_size": OUT, "intermediate_size": IN // 2})

    assert list(architecture.check_sizes(right, weights, None)) == []
    (finding,) = architecture.check_sizes(wrong, weights, None)
    assert finding.params["found"] == f"[{OUT}, {IN}]"


@pytest.mark.parametrize("scale", [(), (0,), (0, 0), (1,), (OUT,), (OUT, 0), (3, 3, 3)])
@pytest.mark.parametrize("weight", [(), (0, 0), (OUT,), (OUT, IN), (2, OUT, IN)])
def test_odd_shapes_break_nothing(weight: tuple[int, ...], scale: tuple[int, ...]) -> None:
    for ends in (("weight", "weight_scale"), ("weight", "weight_scale_inv"), ("qweight", "scales"),
                 ("weight_packed", "weight_scale"), ("weight", "SCB"), ("weight", "weight.absmax")):  # fmt: skip
        for dtype in ("U8", "F8_E4M3", "I32"):
            packing.find([item(f"{M}.{ends[0]}", *weight, dtype=dtype), item(f"{M}.{ends[1]}", *scale)], None)
    packing.find([item(f"{M}_blocks", *weight, dtype="U8"), item(f"{M}_scales", *scale, dtype="U8")], None)


def test_how_many_bits_are_packed_is_not_guessed() -> None:
    found = packing.find(compressed(), None)
    (group,) = found.groups
    assert (group.bits, group.logical, group.elements) == (None, None, None)
    assert counting.parameters(compressed(), found.elements, found.companions, None).unknown == 1

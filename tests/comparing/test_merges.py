"""Whether one checkpoint is another one with an adapter merged in: every way to store factors, every scale, and what is wrong with them.

What should come out is worked out here with numpy, by the formulas that peft documents.
"""

import json
from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shardscope.engine.comparing.compared import Compared, DiffOptions
from shardscope.engine.comparing.diff import diff
from shardscope.engine.diffing.merging import ROUNDING, _half_steps, blocks
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.difference import Merge, TensorDifference
from shardscope.widgets import compare_words
from tests.checkpoints import write_json

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures/peft/lora_llama"
Array = NDArray[Any]
CONFIG = {"peft_type": "LORA", "r": 4, "lora_alpha": 8}
PREFIX = "base_model.model."


def bf16(array: Array) -> Array:
    """Return numbers in 16 bits, rounded to the nearest, ties to even; kept in the type that holds such codes."""
    codes: Array = array.astype("<f4").view("<u4")
    rounded: Array = ((codes + 0x7FFF + ((codes >> 16) & 1)) >> 16).astype("<u2")
    return rounded


def wide(codes: Array) -> Array:
    found: Array = (codes.astype("<u4") << 16).view("<f4")
    return found


def write(path: Path, tensors: Mapping[str, Array]) -> Path:
    """Write a safetensors file; arrays of `<u2` are BF16."""
    names = {"<f4": "F32", "<f2": "F16", "<u2": "BF16", "<f8": "F64", "<i8": "I64"}
    header, data = {}, b""
    for name, array in tensors.items():
        begin = len(data)
        data += array.tobytes()
        dtype = names[array.dtype.newbyteorder("<").str]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def adapter(folder: Path, tensors: Mapping[str, Array], **config: Any) -> Path:
    write_json(folder / "adapter_config.json", {**CONFIG, **config})
    write(folder / "adapter_model.safetensors", {PREFIX + name: array for name, array in tensors.items()})
    return folder


def noise(*shape: int, seed: int = 0, scale: float = 0.1) -> Array:
    return (np.random.default_rng((seed, *shape)).standard_normal(shape) * scale).astype("<f4")


def merge(
    folder: Path,
    base: Mapping[str, Array],
    merged: Mapping[str, Array],
    factors: Mapping[str, Array],
    *,
    memory: int = 64 << 20,
    values: bool = True,
    **config: Any,
) -> Compared:
    """Write a base, what is said to be merged and an adapter, and hold them against each other."""
    one, other = (
        write(folder / name, tensors)
        for name, tensors in (("a.safetensors", base), ("b.safetensors", merged))
    )
    return diff(
        one,
        other,
        DiffOptions(memory_bytes=memory),
        adapters=[adapter(folder / "lora", factors, **config)],
        values=values,
    )


def of(found: Compared, name: str) -> tuple[TensorDifference, Merge]:
    (item,) = (item for item in found.document.tensors if item.name == name)
    assert item.merge is not None
    return item, item.merge


def test_what_peft_merged_is_merged_and_every_figure_is_that_of_numpy() -> None:
    from safetensors.numpy import load_file

    found = diff(
        FIXTURE / "base", FIXTURE / "merged.safetensors", adapters=[FIXTURE / "checkpoint"], values=True
    )
    document = found.document
    assert (document.kind, document.same, document.uncompared) == ("merge", True, 0)
    assert (document.counts.targets, document.counts.untouched) == (5, 16)
    base, merged, factors = (
        load_file(FIXTURE / name)
        for name in ("base/model.safetensors", "merged.safetensors", "checkpoint/adapter_model.safetensors")
    )
    for layer in range(2):
        for module in ("q_proj", "v_proj"):
            name = f"model.layers.{layer}.self_attn.{module}"
            a, b = (factors[f"{PREFIX}{name}.lora_{each}.weight"].astype("f8") for each in "AB")
            update = 8 / 4 * (b @ a)
            x, y = (each[f"{name}.weight"].astype("f8") for each in (base, merged))
            item, known = of(found, f"{name}.weight")
            assert (known.ranks, known.scales, known.verdict) == ((4,), (2.0,), "merged")
            assert known.update == pytest.approx(np.abs(update).max(), rel=1e-14)
            assert known.visible == update.size
            assert known.share == pytest.approx((update * (y - x)).sum() / (update**2).sum(), rel=1e-12)
            assert known.strain is not None
            assert 0 < known.strain < 1
            assert item.values is not None
            assert (item.values.differing, item.values.elements) == (0, x.size)
            assert item.values.max_abs == pytest.approx(np.abs(y - x - update).max(), rel=1e-6)
    item, known = of(found, "lm_head.weight")
    assert (known.ranks, known.whole, known.verdict, item.state) == ((), True, "merged", "same")


def test_a_base_is_not_its_merge_and_the_share_tells_how_much_of_the_update_is_there() -> None:
    found = diff(FIXTURE / "base", FIXTURE / "base", adapters=[FIXTURE / "checkpoint"], values=True)
    assert not found.document.same
    assert found.document.counts.changed == 5
    item, known = of(found, "model.layers.1.self_attn.v_proj.weight")
    assert (item.state, known.verdict, known.share) == ("changed", "unmerged", 0.0)
    assert known.beyond == 512


A, B = noise(4, 24, seed=1), noise(16, 4, seed=2)
"""Factors of a module with 24 inputs and 16 outputs."""


def linear(scale: float = 2.0) -> Array:
    return (scale * (B @ A)).astype("<f4")


SQUARE = noise(4, 16, seed=3), noise(16, 4, seed=4)
KERNEL = noise(4, 6, 3, 3, seed=5)


@pytest.mark.parametrize(
    ("factors", "update", "config"),
    [
        ({"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}, linear(), {}),
        ({"m.q.lora_A.default.weight": A, "m.q.lora_B.default.weight": B}, linear(), {}),
        ({"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}, linear(8 / sqrt(4)), {"use_rslora": True}),
        (
            {"m.q.lora_A.weight": A, "m.q.lora_B.weight": B},
            linear(3.0),
            {"alpha_pattern": {"m.k": 1, "q": 12}, "rank_pattern": {"^m.q": 4}, "r": 64},
        ),
        ({"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}, linear().T, {"fan_in_fan_out": True}),
        ({"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}, linear().T, {}),  # the shape tells
        (
            {"m.q.lora_A.weight": SQUARE[0], "m.q.lora_B.weight": SQUARE[1]},
            2 * (SQUARE[1] @ SQUARE[0]).T,
            {"fan_in_fan_out": True},
        ),
        (
            {"m.q.lora_A.weight": SQUARE[0], "m.q.lora_B.weight": SQUARE[1]},
            2 * (SQUARE[1] @ SQUARE[0]),
            {"fan_in_fan_out": False},
        ),
        ({"m.q.lora_embedding_A": A, "m.q.lora_embedding_B": B}, linear().T, {}),
        (
            {"m.q.lora_A.weight": KERNEL, "m.q.lora_B.weight": B[:, :, None, None]},
            2 * np.einsum("or,rikl->oikl", B, KERNEL),
            {},
        ),
    ],
    ids=[
        "linear",
        "with the name of the adapter",
        "rslora",
        "patterns",
        "transposed",
        "transposed and not said",
        "square transposed",
        "square",
        "embedding",
        "kernel",
    ],
)
def test_each_way_to_store_an_update(
    tmp_path: Path, factors: dict[str, Array], update: Array, config: dict[str, Any]
) -> None:
    base = noise(*update.shape, seed=9)
    right = (base + update).astype("<f4")
    found = merge(tmp_path, {"m.q.weight": base}, {"m.q.weight": right}, factors, **config)
    item, known = of(found, "m.q.weight")
    assert (item.state, known.verdict, found.document.same) == ("same", "merged", True)
    assert known.update == pytest.approx(np.abs(update.astype("f8")).max(), rel=1e-5)

    half = (base + update / 2).astype("<f4")
    found = merge(tmp_path, {"m.q.weight": base}, {"m.q.weight": half}, factors, **config)
    item, known = of(found, "m.q.weight")
    assert (item.state, known.verdict) == ("changed", "differs")
    assert known.share == pytest.approx(0.5, rel=1e-4)


def test_biases_whole_modules_and_tensors_that_nobody_changes(tmp_path: Path) -> None:
    base = {
        "m.q.weight": noise(16, 24),
        "m.q.bias": noise(16),
        "head.weight": noise(8, 16),
        "norm": noise(16),
    }
    trained, added = noise(8, 16, seed=7), noise(16, seed=8)
    factors = {
        "m.q.lora_A.weight": A,
        "m.q.lora_B.weight": B,
        "m.q.lora_B.bias": added,
        "head.weight": trained,
    }
    merged = {
        **base,
        "m.q.weight": base["m.q.weight"] + linear(),
        "m.q.bias": base["m.q.bias"] + 2 * added,
        "head.weight": trained,
    }
    found = merge(tmp_path, base, merged, factors)
    assert found.document.same
    assert found.document.counts.targets == 3
    assert of(found, "m.q.bias")[1].verdict == "merged"

    wrong = {**merged, "norm": base["norm"] + 1, "head.weight": base["head.weight"]}
    found = merge(tmp_path, base, wrong, factors)
    states = {item.name: item.state for item in found.document.tensors}
    assert states == {"m.q.weight": "same", "m.q.bias": "same", "head.weight": "changed", "norm": "changed"}
    item, known = of(found, "head.weight")
    assert item.values is not None
    assert item.values.first is not None
    assert item.values.first.place_a is not None
    assert item.values.first.place_a.file == "adapter_model.safetensors"
    assert known.beyond == trained.size


def test_an_update_that_goes_nowhere_is_told(tmp_path: Path) -> None:
    base = {"m.q.weight": noise(16, 24)}
    factors = {"m.q.lora_A.weight": A, "m.q.lora_B.weight": B, "m.experts.lora_A.weight": A}
    found = merge(tmp_path, base, {"m.q.weight": base["m.q.weight"] + linear()}, factors)
    assert not found.document.same
    (stray,) = (item for item in found.document.tensors if item.state == "missing")
    assert stray.name == f"{PREFIX}m.experts.lora_A.weight"
    assert stray.note == "the base has no such module"

    found = merge(tmp_path, base, base, {"m.q.lora_A.weight": A})
    item, _ = of(found, "m.q.weight")
    assert item.note == "values were not compared: the adapter has one factor of two for it"
    assert found.document.uncompared == 1


@pytest.mark.parametrize("rounded", ["once", "twice", "factors in 16 bits", "half"])
def test_rounding_is_allowed_what_each_library_does(tmp_path: Path, rounded: str) -> None:
    """Products in 32 bits are added to the weight as they are, or rounded first; and the sum is rounded."""
    a, b = noise(8, 96, seed=1), noise(64, 8, seed=2)
    base = noise(64, 96, seed=3, scale=1.0)
    if rounded == "half":
        update = (b.astype("<f2").astype("<f4") @ a.astype("<f2").astype("<f4")).astype("<f2") * np.float16(1)
        tensors = base.astype("<f2"), base.astype("<f2") + update, a.astype("<f2"), b.astype("<f2")
    elif rounded == "factors in 16 bits":
        update = wide(bf16(wide(bf16(b)) @ wide(bf16(a))))
        tensors = base, base + update, bf16(a), bf16(b)
    else:
        update = b @ a
        update = wide(bf16(update)) if rounded == "twice" else update
        tensors = bf16(base), bf16(wide(bf16(base)) + update), a, b
    one, two, a, b = tensors
    factors = {"q.lora_A.weight": a, "q.lora_B.weight": b}
    found = merge(tmp_path, {"q.weight": one}, {"q.weight": two}, factors, r=8, lora_alpha=8)
    item, known = of(found, "q.weight")
    assert known.verdict == "merged", known
    assert known.strain is not None
    assert 0.2 < known.strain <= 1
    assert known.visible is not None
    assert known.visible > 64 * 96 / 2

    broken = two.copy()
    broken[63, 95] = broken[0, 0]
    found = merge(tmp_path, {"q.weight": one}, {"q.weight": broken}, factors, r=8, lora_alpha=8)
    item, known = of(found, "q.weight")
    assert (known.verdict, known.beyond) == ("differs", 1)
    assert item.values is not None
    assert item.values.first is not None
    assert item.values.first.index == (63, 95)


def test_an_update_below_rounding_is_lost_and_told(tmp_path: Path) -> None:
    base = bf16(noise(16, 24, scale=1.0) + 4)
    factors = {"m.q.lora_A.weight": A * np.float32(1e-3), "m.q.lora_B.weight": B}
    found = merge(tmp_path, {"m.q.weight": base}, {"m.q.weight": base}, factors)
    item, known = of(found, "m.q.weight")
    assert (item.state, known.verdict, known.visible) == ("same", "lost", 0)


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    base = noise(16, 24).astype("<f2")
    base[0, :3] = np.nan, np.inf, 65504
    update = linear(2.0)
    update[0, 2] = 0
    merged = (base.astype("<f4") + update).astype("<f2")
    factors = {"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}
    found = merge(tmp_path, {"m.q.weight": base}, {"m.q.weight": merged}, factors)
    assert of(found, "m.q.weight")[1].verdict == "merged"
    merged[0, 0] = 1
    merged[5, 5] = np.inf
    item, known = of(merge(tmp_path, {"m.q.weight": base}, {"m.q.weight": merged}, factors), "m.q.weight")
    assert known.beyond == 2
    assert item.values is not None
    assert item.values.not_finite == 2
    assert item.values.max_abs is not None


def test_a_head_that_is_tied_gets_both_updates(tmp_path: Path) -> None:
    base = {"model.embed_tokens.weight": noise(16, 24)}
    write_json(tmp_path / "base/config.json", {"model_type": "llama", "tie_word_embeddings": True})
    a, b = noise(4, 16, seed=5), noise(24, 4, seed=6)
    factors = {
        "model.embed_tokens.lora_embedding_A": a,
        "model.embed_tokens.lora_embedding_B": b,
        "lm_head.lora_A.weight": A,
        "lm_head.lora_B.weight": B,
    }
    both = base["model.embed_tokens.weight"] + 2 * (b @ a).T + linear()
    write(tmp_path / "base/model.safetensors", base)
    other = write(tmp_path / "merged.safetensors", {"model.embed_tokens.weight": both.astype("<f4")})
    found = diff(tmp_path / "base", other, adapters=[adapter(tmp_path / "lora", factors)], values=True)
    _, known = of(found, "model.embed_tokens.weight")
    assert (known.ranks, known.verdict, found.document.same) == ((4, 4), "merged", True)
    structure = diff(adapter(tmp_path / "lora", factors), tmp_path / "base").document
    assert (structure.kind, structure.same) == ("adapter", True)


def test_several_adapters_are_added_up(tmp_path: Path) -> None:
    base = noise(16, 24)
    one = adapter(tmp_path / "one", {"q.lora_A.weight": A, "q.lora_B.weight": B})
    other = adapter(tmp_path / "two", {"q.lora_A.weight": A, "q.lora_B.weight": -B}, lora_alpha=4)
    a = write(tmp_path / "a.safetensors", {"q.weight": base})
    b = write(tmp_path / "b.safetensors", {"q.weight": base + linear() - linear(1.0)})
    found = diff(a, b, adapters=[one, other], values=True)
    _, known = of(found, "q.weight")
    assert (known.scales, known.verdict) == ((2.0, 1.0), "merged")


@pytest.mark.parametrize("budget", [1, 64 << 20])
def test_tiles_that_end_within_rows_change_nothing(tmp_path: Path, budget: int) -> None:
    a, b = noise(2, 701, seed=1), noise(1001, 2, seed=2)
    base = noise(1001, 701, seed=3)
    merged = base + 2 * (b @ a)
    merged[987, 654] += 1
    small = {"q.lora_A.weight": a, "q.lora_B.weight": b}
    found = merge(tmp_path, {"q.weight": base}, {"q.weight": merged}, small, memory=budget, r=2, lora_alpha=4)
    item, known = of(found, "q.weight")
    if budget == 1:
        assert item.note is not None
        assert item.note.startswith("values were not compared: its factors take 54,464 bytes")
        found = merge(
            tmp_path, {"q.weight": base}, {"q.weight": merged}, small, memory=1 << 20, r=2, lora_alpha=4
        )
        item, known = of(found, "q.weight")
    assert (known.verdict, known.beyond) == ("differs", 1)
    assert item.values is not None
    assert item.values.first is not None
    assert item.values.first.index == (987, 654)
    assert item.values.max_abs == pytest.approx(1, rel=1e-6)
    place = item.values.first.place_b
    assert place is not None
    assert place.offset is not None
    stored = (tmp_path / "b.safetensors").read_bytes()[place.offset : place.offset + 4]
    assert np.frombuffer(stored, "<f4")[0] == merged[987, 654]


@pytest.mark.parametrize(
    ("names", "config", "code"),
    [
        (("q.lora_A.weight",), {"use_dora": True}, "diff.adapter_kind"),
        (("q.lora_A.weight", "q.lora_magnitude_vector"), {}, "diff.adapter_kind"),
        (("q.lora_A.weight",), {"target_parameters": ["experts.w"]}, "diff.adapter_kind"),
        (("q.vera_lambda_b",), {"peft_type": "VERA"}, "diff.adapter_kind"),
        (("q.lora_A.weight",), {"lora_alpha": None}, "diff.adapter_scale"),
        (("q.lora_A.one.weight", "q.lora_A.two.weight"), {}, "diff.adapter_names"),
        (("q.lora_A.weight",), {"alpha_pattern": {"(a+)+$": 4}}, "diff.adapter_pattern"),
    ],
)
def test_what_is_no_plain_lora_is_refused(
    tmp_path: Path, names: tuple[str, ...], config: dict[str, Any], code: str
) -> None:
    base = {"q.weight": noise(16, 24)}
    with pytest.raises(Fault) as refused:
        merge(tmp_path, base, base, dict.fromkeys(names, A), **config)
    assert refused.value.finding.code == code


def test_a_folder_without_an_adapter_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"q.weight": noise(4, 4)})
    with pytest.raises(Fault) as refused:
        diff(path, path, adapters=[path])
    assert refused.value.finding.code == "diff.adapter_none"


def test_factors_that_took_something_off_the_base_are_told(tmp_path: Path) -> None:
    base = {"m.q.weight": noise(16, 24)}
    factors = {"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}
    found = merge(tmp_path, base, base, factors, init_lora_weights="pissa_niter_16", values=False)
    assert "pissa" in found.document.decisions[-1]
    assert of(found, "m.q.weight")[1] == Merge((4,), (2.0,))
    assert found.document.same


@pytest.mark.parametrize("wrong", [False, True])
def test_a_merge_that_was_saved_in_another_type(tmp_path: Path, wrong: bool) -> None:
    base = {"m.q.weight": noise(16, 24), "norm": noise(16), "head.weight": noise(8, 16)}
    merged = {**base, "m.q.weight": base["m.q.weight"] + linear()}
    if wrong:
        merged["norm"] = merged["norm"] * np.float32(1.1)
    factors = {"m.q.lora_A.weight": A, "m.q.lora_B.weight": B}
    found = merge(tmp_path, base, {name: bf16(array) for name, array in merged.items()}, factors).document
    assert not found.same
    assert found.counts.targets == 1
    assert found.counts.changed == 3  # their types are
    verdicts = {item.name: item.merge.verdict for item in found.tensors if item.merge is not None}
    assert verdicts == {
        "m.q.weight": "merged",
        "norm": "differs" if wrong else "merged",
        "head.weight": "merged",
    }
    assert compare_words.verdict(found) == (
        "B is not A with the adapter merged" if wrong else "B is A with the adapter merged, in other types"
    )


def test_hostile_factors_cost_nothing_and_say_so(tmp_path: Path) -> None:
    base = {"q.weight": noise(16, 24)}
    for factors, note in (
        (
            {"q.lora_A.weight": np.zeros((0, 24), "<f4"), "q.lora_B.weight": np.zeros((16, 0), "<f4")},
            "no elements",
        ),
        ({"q.lora_A.weight": np.zeros((4,), "<f4"), "q.lora_B.weight": B}, "two dimensions at least"),
        ({"q.lora_A.weight": A, "q.lora_B.weight": noise(16, 5)}, "other shapes"),
        ({"q.lora_A.weight": A, "q.lora_B.weight": np.zeros((16, 4), "<i8")}, "nothing is added up in I64"),
    ):
        found = merge(tmp_path, base, base, factors)
        assert note in str(of(found, "q.weight")[0].note)
        assert found.document.uncompared == 1
    huge = {"q.lora_A.weight": A * np.float32(3e38), "q.lora_B.weight": B * np.float32(3e38)}
    item, known = of(merge(tmp_path, base, base, huge), "q.weight")
    assert item.state == "changed"
    assert known.update is not None
    assert known.update > 1e70


def test_types_that_nothing_is_added_to_are_not_compared(tmp_path: Path) -> None:
    base = {"m.q.weight": np.zeros((16, 24), "<i8")}
    found = merge(tmp_path, base, base, {"m.q.lora_A.weight": A, "m.q.lora_B.weight": B})
    assert of(found, "m.q.weight")[0].note == "values were not compared: nothing is added up in I64"


def test_blocks_are_every_element_once_and_in_order() -> None:
    for width in (1, 3, 7, 50):
        for low, high in ((0, 100), (5, 6), (2, 99), (13, 77)):
            found = []
            for block in blocks(low, high, width, 10):
                rows = range(block.row, block.end_row)
                columns = range(block.column, block.end_column)
                assert len(rows) * len(columns) <= 10
                found += [row * width + column for row in rows for column in columns]
            assert found == list(range(low, high))


def test_roundings_are_those_of_numpy() -> None:
    for dtype, name in (("f2", "F16"), ("f4", "F32"), ("f8", "F64")):
        assert ROUNDING[name] == np.finfo(dtype).eps / 2


@pytest.mark.parametrize(("dtype", "name"), [("<f2", "F16"), ("<f4", "F32"), ("<f8", "F64")])
def test_half_steps_are_those_of_numpy(dtype: str, name: str) -> None:
    info = np.finfo(dtype)
    sizes = np.array(
        [1.0, 1.5, 2.0, 0.3, float(info.tiny), float(info.tiny) / 4, float(info.smallest_subnormal)]
    )
    expected = np.spacing(sizes.astype(dtype)).astype("f8") / 2
    assert np.array_equal(_half_steps(sizes, name), expected) or name == "F64"
    assert np.array_equal(_half_steps(sizes[:4], name), expected[:4])

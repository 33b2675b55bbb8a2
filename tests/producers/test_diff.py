"""Saves of torch, DeepSpeed and transformers of one model held against each other, whatever cut them, and against what the tools read back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.difference import TensorDifference
from shardscope.engine.model.plan import RenameRule
from tests.comparing.test_differences import differ, of, states
from tests.producers import peers
from tests.producers.saves import model, save

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

Maker = Callable[[str, int], Path]
BELOW = (RenameRule("", prefix="model."),)
"""What torch.distributed.checkpoint saves as `{"model": state}` has a key before each name."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """Return what makes a save of some ranks, each once: DeepSpeed takes seconds to start."""
    root, known = tmp_path_factory.mktemp("saves"), dict[tuple[str, int], Path]()

    def make(kind: str, world: int) -> Path:
        if kind.startswith("zero"):
            pytest.importorskip("deepspeed")
        key = (kind, world)
        if key not in known:
            known[key] = save(kind, root / str(len(known)), world)
        return known[key]

    return make


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as transformers saves it, in several files."""
    folder = tmp_path_factory.mktemp("exported")
    model().save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    return folder


def changed(folder: Path, name: str, index: tuple[int, ...], value: float, **options: Any) -> Path:
    """Save the model with one number changed, and return where."""
    other = model(options.get("dtype"))
    with torch.no_grad():
        other.state_dict()[name][index] = value
    other.save_pretrained(folder)
    return folder


def differing(found: list[TensorDifference]) -> list[str]:
    return [item.name for item in found if item.values is not None and item.values.differing]


def test_a_distributed_save_is_its_export(made: Maker, exported: Path) -> None:
    save = made("fsdp2", 2)
    plain = differ(save, exported).document
    assert (plain.counts.renamed, plain.counts.same, differing(list(plain.tensors))) == (21, 0, [])
    assert {item.by for item in plain.tensors} == {"ending"}

    ruled = differ(save, exported, renames=BELOW).document
    assert ruled.same
    assert ruled.counts.same == len(ruled.tensors) == 21


def test_one_number_of_an_export_is_found_on_the_rank_that_has_it(made: Maker, tmp_path: Path) -> None:
    name, index = "model.layers.1.mlp.up_proj.weight", (40, 5)
    other = changed(tmp_path / "other", name, index, 3.5)
    before = model().state_dict()[name][index].item()
    found = differ(made("fsdp2", 2), other, renames=BELOW)

    assert states(found) == {f"model.{name}": "changed"}
    values = of(found, f"model.{name}").values
    assert values is not None
    assert values.first is not None
    assert (values.differing, values.first.index, float(values.first.b)) == (1, index, 3.5)
    assert float(values.first.a) == pytest.approx(before, rel=1e-8)
    assert values.max_abs == pytest.approx(abs(3.5 - before), rel=1e-7)
    assert values.first.place_a is not None
    assert values.first.place_a.file.endswith("__1_0.distcp")  # 48 rows: the second half is that of rank 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_an_export_rounded_is_told_as_torch_finds_it(dtype: str, made: Maker, tmp_path: Path) -> None:
    kind = getattr(torch, dtype)
    model(kind).save_pretrained(tmp_path / "rounded")
    found = differ(made("fsdp2", 2), tmp_path / "rounded", renames=BELOW)

    exact, rounded = model().state_dict(), model(kind).state_dict()
    for item in found.document.tensors:
        assert item.name_b is not None
        one, other = exact[item.name_b].double(), rounded[item.name_b].double()
        values = item.values
        assert values is not None
        assert values.differing == int((one != other).sum())
        assert values.max_abs == (one - other).abs().max().item()
        cosine = (one * other).sum() / (one.norm() * other.norm())
        assert values.cosine == pytest.approx(cosine.item(), abs=1e-12)
        assert item.a is not None
        assert item.b is not None
        assert (item.a.dtype, item.b.dtype) == ("F32", {"bfloat16": "BF16", "float16": "F16"}[dtype])


def test_steps_of_other_stages_and_world_sizes_are_the_same(made: Maker, exported: Path) -> None:
    two, three = made("zero2", 2) / "before", made("zero3", 3) / "before"
    for one, other in ((two, three), (two, exported), (three, exported)):
        found = differ(one, other).document
        assert found.same, [item.name for item in found.tensors if item.state != "same"]
        assert found.counts.same == 21


def test_what_a_step_changed_is_told_as_zero_to_fp32_reads_it(made: Maker) -> None:
    before, after = made("zero2", 2) / "before", made("zero3", 3) / "after"
    found = differ(before, after)
    one, other = peers.zero_to_fp32(before), peers.zero_to_fp32(after)

    assert {item.name for item in found.document.tensors} == one.keys() == other.keys()
    for item in found.document.tensors:
        a, b, values = one[item.name].double(), other[item.name].double(), item.values
        assert values is not None
        assert values.differing == int((a != b).sum())
        assert values.max_abs == (a - b).abs().max().item()
        first = int((a != b).reshape(-1).nonzero()[0])
        assert values.first is not None
        assert values.first.element == first
        assert values.first.place_b is not None
        assert float(values.first.b) == pytest.approx(b.reshape(-1)[first].item(), rel=1e-8)


def test_moments_of_two_world_sizes_belong_together(made: Maker) -> None:
    found = differ(
        made("zero2", 2) / "before", made("zero3", 3) / "before", component="optimizer", values=False
    ).document
    assert found.counts.same == len(found.tensors) >= 42

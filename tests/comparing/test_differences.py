"""Any two checkpoints: each family beside what it holds, other topologies, renamed and damaged ones, adapters, and huge ones."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardscope import engine
from shardscope.engine.comparing.compared import Compared, DiffOptions, filtered
from shardscope.engine.comparing.diff import diff
from shardscope.engine.comparing.valuing import with_values
from shardscope.engine.diffing.folding import folded
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.difference import TensorDifference
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.plan import PlanOptions, RenameRule
from shardscope.engine.model.progress import Cancelled, Progress
from tests.checkpoints import LLAMA, safetensors_bytes, write_safetensors

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ZERO = FIXTURES / "deepspeed/zero3-w3-fp32"


def decoding() -> Decoding:
    return Decoding(Intent("verify", "command line"), "all")


def differ(one: Path, other: Path, *, values: bool = True, **options: Any) -> Compared:
    return diff(one, other, DiffOptions(**options), decoding=decoding, values=values)


def states(found: Compared) -> dict[str, str]:
    return {item.name: item.state for item in found.document.tensors if item.state != "same"}


def of(found: Compared, name: str) -> TensorDifference:
    (item,) = (item for item in found.document.tensors if item.name == name)
    return item


def changed(path: Path, name: str, element: int, width: int = 4) -> int:
    """Change one element of a tensor of a safetensors file, and return where it is."""
    data = bytearray(path.read_bytes())
    length = int.from_bytes(data[:8], "little")
    begin = json.loads(data[8 : 8 + length])[name]["data_offsets"][0]
    at = 8 + length + int(begin) + element * width
    data[at + width - 1] ^= 0x01
    path.write_bytes(data)
    return at


@pytest.mark.parametrize(
    "name",
    [
        "accelerate/fsdp2_sharded_world2",
        "accelerate/offload_folder",
        "dcp/dtensor_2d_dp2_tp2",
        "dcp/fsdp2_zstd_world2",
        "dcp/hf_writer_sharded_world2",
        "deepspeed/autotp2-llama-gqa3-dp2-zero2-fp32",
        "deepspeed/moe-ep2-zero2-bf16",
        "deepspeed/pipe2-zero1-fp32",
        "deepspeed/uc-from-zero3-w3-fp32",
        "deepspeed/zero3-w3-fp32",
        "hf/bin_sharded",
        "hf/mixtral_moe_sharded",
        "megatron/legacy_tp2_pp2",
        "megatron/torch_dist_tp2_pp2",
        "torch/fsdp2_tp_dtensor_torch_save_dp2_tp2",
        "torch/zip_big_endian",
    ],
)
def test_each_family_is_the_same_as_what_it_holds(name: str) -> None:
    folder = FIXTURES / name
    whole = folder / "expected_hf.safetensors"
    whole = whole if whole.exists() else folder / "expected.safetensors"
    found = differ(folder / "checkpoint", whole).document

    assert found.same
    assert found.counts.same == len(found.tensors) > 0
    assert (
        found.compared_bytes == found.a.bytes or found.a.bytes is None or found.a.bytes < found.compared_bytes
    )


def test_one_changed_element_is_found_with_its_rank_and_file_on_both_sides(tmp_path: Path) -> None:
    whole = tmp_path / "whole.safetensors"
    shutil.copy(ZERO / "expected.safetensors", whole)
    at = changed(whole, "blocks.1.qkv.weight", 500)
    found = differ(ZERO / "checkpoint", whole)

    assert states(found) == {"blocks.1.qkv.weight": "changed"}
    values = of(found, "blocks.1.qkv.weight").values
    assert values is not None
    assert (values.differing, values.elements) == (1, 972)
    assert values.first is not None
    assert values.first.index == (27, 14)
    assert values.first.place_b is not None
    assert (values.first.place_b.file, values.first.place_b.offset) == ("whole.safetensors", at)
    here = values.first.place_a
    assert here is not None
    assert here.rank == "tp 0 pp 0 dp 1"
    assert "zero_pp_rank_1_mp_rank_00_optim_states.pt" in here.file
    stored = (ZERO / "checkpoint" / here.file).read_bytes()[here.offset : (here.offset or 0) + 4]
    assert stored[:3] == whole.read_bytes()[at : at + 3]


def test_two_world_sizes_of_one_step_are_the_same_in_structure() -> None:
    one, other = (FIXTURES / f"deepspeed/{name}/checkpoint" for name in ("zero3-w2-bf16", "zero2-w4-bf16"))
    found = differ(one, other, component="optimizer", values=False)
    assert found.document.same
    assert found.document.counts.same == 56
    both = differ(one, other, component="optimizer").document
    assert both.counts.changed == 56
    assert all(item.values is not None and item.values.first is not None for item in both.tensors)


@pytest.mark.parametrize("budget", [1, 64 << 20])
def test_the_budget_changes_nothing_that_is_found(budget: int) -> None:
    folder = FIXTURES / "deepspeed/uc-from-zero2-w4-bf16-roundrobin"
    found = differ(folder / "checkpoint", folder / "expected.safetensors", memory_bytes=budget)
    assert found.document.counts.changed == 27
    assert (
        of(found, "embed.weight").values
        == of(differ(folder / "checkpoint", folder / "expected.safetensors"), "embed.weight").values
    )


def test_names_that_differ_are_suggested_and_rules_settle_them(tmp_path: Path) -> None:
    one = write_safetensors(tmp_path / "one.safetensors", LLAMA)
    other = write_safetensors(
        tmp_path / "other.safetensors", {name.removeprefix("model."): kind for name, kind in LLAMA.items()}
    )
    found = differ(one, other)
    assert found.document.counts.renamed == len(LLAMA)
    assert not found.document.same
    assert all(item.suggested and item.values is not None for item in found.document.tensors)

    ruled = differ(one, other, renames=(RenameRule("", prefix="model."),)).document
    assert ruled.same
    assert {item.by for item in ruled.tensors} == {"rules"}
    assert ruled.decisions == ("1 rule of renaming",)


def test_an_export_is_matched_by_the_manifest_that_its_conversion_left(tmp_path: Path) -> None:
    source = FIXTURES / "dcp/fsdp2_odd_world2/checkpoint"
    prepared = engine.prepare(
        source,
        PlanOptions(renames=(RenameRule("net.", prefix="model."), RenameRule("x", name="nothing"))),
        decoding=decoding(),
    )
    engine.materialize(source, tmp_path / "out", prepared, confirm=lambda _: True)
    for one, other in ((source, tmp_path / "out"), (tmp_path / "out", source)):
        found = differ(one, other).document
        assert found.same, states(differ(one, other))
        assert "manifest" in found.decisions[0]


def test_an_adapter_is_held_against_its_base(tmp_path: Path) -> None:
    folder = FIXTURES / "peft/lora_llama"
    for one, other in ((folder / "checkpoint", folder / "base"), (folder / "base", folder / "checkpoint")):
        found = differ(one, other)
        assert (found.document.kind, found.document.same) == ("adapter", True)
        assert (found.document.counts.same, found.document.counts.untouched) == (9, 16)
        compared = [item for item in found.document.tensors if item.values is not None]
        assert [item.note for item in compared] == ["saved whole, in place of the base's"]
    wrong = write_safetensors(tmp_path / "base/model.safetensors", {"other.weight": ("F32", (4, 4))})
    found = differ(folder / "checkpoint", wrong)
    assert (found.document.same, found.document.counts.missing) == (False, 9)
    assert differ(folder / "checkpoint", folder / "expected.safetensors").document.kind == "checkpoints"


def test_what_needs_decoding_and_what_has_no_tensor_is_refused(tmp_path: Path) -> None:
    whole = ZERO / "expected.safetensors"
    with pytest.raises(Fault) as refused:
        diff(ZERO / "checkpoint", whole)
    assert refused.value.finding.code == "diff.opaque"
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(Fault) as refused:
        diff(whole, tmp_path)
    assert refused.value.finding.code == "diff.nothing"
    assert refused.value.finding.params["side"] == "B"


def test_a_damaged_side_without_tensors_is_refused_for_its_damage(tmp_path: Path) -> None:
    whole = ZERO / "expected.safetensors"
    cut = tmp_path / "run" / "model.safetensors"
    cut.parent.mkdir()
    cut.write_bytes(whole.read_bytes()[:100])
    for path, file in ((cut.parent, "run/model.safetensors"), (cut, "model.safetensors")):
        for sides in ((path, whole), (whole, path)):
            with pytest.raises(Fault) as refused:
                diff(*sides)
            assert refused.value.finding.code == "header.past_eof"
            assert refused.value.finding.params["file"] == file


def test_values_can_be_asked_for_later_and_of_some(tmp_path: Path) -> None:
    one = write_safetensors(tmp_path / "one.safetensors", LLAMA)
    other = write_safetensors(tmp_path / "other.safetensors", LLAMA)
    changed(other, "model.norm.weight", 2)
    before = differ(one, other, values=False)
    assert before.document.same
    seen: list[int] = []
    number = next(n for n, item in enumerate(before.document.tensors) if item.name == "model.norm.weight")
    after = with_values(before, {number}, on_difference=lambda n, _: seen.append(n))
    assert seen == [number]
    assert states(after) == {"model.norm.weight": "changed"}
    assert after.document.compared_bytes == 16
    assert len(filtered(after.document, {"changed"}).tensors) == 1


def test_it_is_cancelled_between_tensors_and_says_how_far_it_is(tmp_path: Path) -> None:
    one = write_safetensors(tmp_path / "one.safetensors", LLAMA)
    before = differ(one, one, values=False)
    cancel = threading.Event()
    seen: list[int] = []

    def stop(number: int, _: TensorDifference) -> None:
        seen.append(number)
        cancel.set()

    with pytest.raises(Cancelled):
        with_values(before, on_difference=stop, cancel=cancel)
    assert len(seen) == 1
    reports: list[Progress] = []
    with_values(before, progress=reports.append)
    assert reports[-1].done == reports[-1].total == before.document.a.bytes


def test_twelve_thousand_tensors(tmp_path: Path) -> None:
    kinds = {
        f"model.layers.{n}.experts.{m}.w{k}.weight": ("BF16", (2, 2))
        for n in range(100)
        for m in range(40)
        for k in range(3)
    }
    one = write_safetensors(tmp_path / "one.safetensors", kinds)
    renamed = {name.replace("model.", "net.", 1): kind for name, kind in kinds.items()}
    other = write_safetensors(tmp_path / "other.safetensors", renamed)
    found = diff(one, other)
    assert found.document.counts.renamed == len(kinds) == 12_000
    assert [fold.name for fold in folded(found.document.tensors)] == [
        f"model.layers.{{0-99}}.experts.{{0-39}}.w{k}.weight" for k in range(3)
    ]


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    one = write_safetensors(tmp_path / "one.safetensors", LLAMA)
    other = write_safetensors(tmp_path / "other.safetensors", LLAMA)
    before = differ(one, other, values=False)
    other.write_bytes(safetensors_bytes(LLAMA)[:-4])
    with pytest.raises(Fault) as refused:
        with_values(before)
    assert refused.value.finding.code == "source.changed"


def test_what_a_file_that_was_cut_short_lacks_is_told_and_the_rest_compared(tmp_path: Path) -> None:
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    written = safetensors_bytes({"a.weight": ("F32", (2, 8)), "b.weight": ("F32", (2, 8))})
    one.write_bytes(written)
    other.write_bytes(written[:-16])
    heard: list[Progress] = []
    found = with_values(differ(one, other, values=False), progress=heard.append)
    lost = of(found, "b.weight")
    assert of(found, "a.weight").values is not None
    assert lost.values is None
    assert lost.note is not None
    assert lost.note.startswith("values were not compared: in B, other.safetensors has 272 bytes")
    assert found.document.uncompared == 1
    assert (heard[-1].done, heard[-1].total) == (128, 128)


def test_it_is_a_part_of_the_interface() -> None:
    assert engine.diff is diff
    made: Callable[..., Any] = engine.DiffOptions
    assert made is DiffOptions

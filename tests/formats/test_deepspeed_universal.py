"""DeepSpeed Universal checkpoints: the tree of parameters, what each needs, and how it is told apart from ZeRO."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.engine.model.descriptor import to_json
from shardscope.engine.model.evidence import Confidence
from tests.checkpoints import write_torch_zip
from tests.formats.looking import FIXTURES, codes, copied, errors, look, the

SAVES = sorted(
    folder.name for folder in (FIXTURES / "deepspeed").iterdir() if folder.name.startswith("uc-from-")
)
TREE = "global_step3_universal/zero"


@pytest.mark.parametrize("name", SAVES)
def test_every_universal_save_is_told_apart_from_zero(name: str) -> None:  # R010 collision 3
    descriptor = look(FIXTURES / "deepspeed" / name / "checkpoint")

    assert descriptor.classification.format == "deepspeed_universal"
    assert descriptor.classification.confidence is Confidence.LOW
    assert errors(descriptor) == set()
    (alternative,) = [a for a in descriptor.classification.alternatives if a.format == "deepspeed_zero"]
    assert "copies" in alternative.reason
    assert descriptor.topology.meshes == ()
    assert "Free of ranks" in (descriptor.topology.note or "")


@pytest.mark.parametrize("name", SAVES)
def test_universal_is_never_called_hugging_face_or_generic(name: str) -> None:  # R137
    descriptor = look(FIXTURES / "deepspeed" / name / "checkpoint")

    said = json.loads(to_json(descriptor))
    for part in ("workflow", "planes", "limits", "source"):  # what every descriptor says
        said.pop(part, None)
    text = json.dumps(said).casefold()
    assert "hugging" not in text
    assert "generic" not in text


def test_names_without_moments_are_counted_and_not_called_lost() -> None:
    descriptor = look(FIXTURES / "deepspeed" / "uc-from-zero2-w4-bf16-roundrobin" / "checkpoint")

    found = the(descriptor, "deepspeed.universal_moments_absent")
    assert (found.params["count"], found.params["total"], found.severity) == (5, 33, "warning")


def remove(name: str) -> Callable[[Path], None]:
    return lambda tree: (tree / name).unlink()


def empty(tree: Path) -> None:
    for file in (tree / "norm.bias").iterdir():
        file.unlink()


def empty_tree(tree: Path) -> None:
    shutil.rmtree(tree)
    tree.mkdir()


def cut(tree: Path) -> None:
    file = tree / "norm.bias" / "fp32.pt"
    file.write_bytes(file.read_bytes()[:-80])


def lose_copies(tree: Path) -> None:
    for file in tree.parent.glob("*_model_states.pt"):
        file.unlink()


def lose_one_copy(tree: Path) -> None:
    (tree.parent / "zero_pp_rank_1_mp_rank_00_model_states.pt").unlink()


def lose_tracker(tree: Path) -> None:
    (tree.parent.parent / "latest_universal").unlink()


@pytest.mark.parametrize(
    ("damage", "code", "first"),
    [
        (remove("norm.bias/fp32.pt"), "deepspeed.universal_weights_missing", "norm.bias"),
        (remove("norm.bias/exp_avg.pt"), "deepspeed.universal_states_missing", "norm.bias"),
        (remove("optimizer_state.pt"), "deepspeed.universal_optimizer_missing", None),
        (empty, "deepspeed.universal_empty", "norm.bias"),
        (empty_tree, "deepspeed.universal_no_parameters", None),
        (cut, "zip.no_end_record", None),
        (lose_copies, "deepspeed.universal_model_states_missing", None),
        (lose_one_copy, "deepspeed.rank_missing", None),
        (lose_tracker, "deepspeed.no_latest", None),
    ],
)
def test_damage_is_named(
    tmp_path: Path, damage: Callable[[Path], None], code: str, first: str | None
) -> None:
    root = copied("deepspeed/uc-from-zero3-w3-fp32", tmp_path)
    damage(root / TREE)

    descriptor = look(root)
    assert descriptor.classification.format == "deepspeed_universal"
    found = the(descriptor, code)
    if first is not None:
        assert found.params["first"] == first


def test_a_state_that_most_parameters_lost_is_missing_all_the_same(tmp_path: Path) -> None:
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    trained = sorted((root / TREE).glob("*/exp_avg_sq.pt"))
    for file in trained[:-2]:
        file.unlink()

    found = the(look(root), "deepspeed.universal_states_missing")
    assert (found.params["count"], found.params["state"]) == (len(trained) - 2, "exp_avg_sq.pt")


def test_a_foreign_state_under_one_parameter_makes_no_other_incomplete(tmp_path: Path) -> None:
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    write_torch_zip(root / TREE / "norm.bias" / "momentum.pt")

    assert errors(look(root)) == set()


def test_what_fits_no_parameter_is_pointed_out(tmp_path: Path) -> None:
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    write_torch_zip(root / TREE / "norm.bias" / "deeper" / "fp32.pt")
    (root / TREE / "notes.txt").write_text("kept")

    assert the(look(root), "deepspeed.universal_unexpected").params["count"] == 2


def test_partitions_beside_the_tree_leave_both_readings_open(tmp_path: Path) -> None:  # collision 3
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    source = FIXTURES / "deepspeed" / "zero1-w2-bf16" / "checkpoint" / "global_step3"
    for file in source.glob("*_optim_states.pt"):
        shutil.copy(file, root / "global_step3_universal")

    descriptor = look(root)
    assert descriptor.classification.format == "ambiguous"
    assert the(descriptor, "layout.ambiguous").params["formats"] == "deepspeed_universal and deepspeed_zero"


def test_source_and_converted_tag_side_by_side_are_candidates(tmp_path: Path) -> None:  # collision 14
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    copied("deepspeed/zero1-w2-bf16", root)

    descriptor = look(root)
    assert descriptor.classification.format == "ambiguous"
    formats = {item.name: item.format for item in descriptor.components if item.kind == "candidate"}
    assert formats == {
        "global_step3": "deepspeed_zero",
        "global_step3_universal": "deepspeed_universal",
    }


def test_a_stale_universal_tracker_is_named(tmp_path: Path) -> None:  # collision 9
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    (root / "latest_universal").write_text("global_step9_universal")

    assert "tracker.stale" in errors(look(root))


def test_a_folder_named_zero_without_parameters_is_nothing(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "zero" / "run" / "model.pt")

    descriptor = look(tmp_path)
    assert descriptor.classification.format == "torch_save"
    assert not any(code.startswith("deepspeed.") for code in codes(descriptor))


def test_a_hostile_parameter_name_is_shown_harmless(tmp_path: Path) -> None:
    root = copied("deepspeed/uc-from-zero1-w2-bf16", tmp_path)
    (root / TREE / "evil\x1b[2J").mkdir()

    assert the(look(root), "deepspeed.universal_empty").params["first"] == "evil␛[2J"

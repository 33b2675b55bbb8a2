"""Six steps in one order, honest about what this release does not do."""

import json
import shutil
from pathlib import Path

import pytest

from shardscope.app.cli.root import COMMANDS
from shardscope.engine import inspect
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.workflow import StepName, StepState
from tests.checkpoints import write_config, write_sharded

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CHECKPOINTS = sorted(FIXTURES.glob("*/*/checkpoint"))
CURRENT, STOPPED = StepState.CURRENT, StepState.STOPPED
NOT_NEEDED, NOT_AVAILABLE = StepState.NOT_NEEDED, StepState.NOT_AVAILABLE
ON_REQUEST, EXPERIMENTAL = StepState.ON_REQUEST, StepState.EXPERIMENTAL


def described(path: Path) -> Descriptor:
    return inspect(path, digest="none").descriptor


def states(descriptor: Descriptor) -> dict[StepName, StepState]:
    return {step.name: step.state for step in descriptor.workflow.steps}


def stops(descriptor: Descriptor) -> dict[StepName, str | None]:
    return {step.name: step.stopped_by for step in descriptor.workflow.steps}


# R063
@pytest.mark.parametrize(
    "path", CHECKPOINTS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}"
)
def test_every_checkpoint_has_the_six_steps_in_order(path: Path) -> None:
    descriptor = described(path)
    workflow = descriptor.workflow
    open_ = (CURRENT, NOT_NEEDED, EXPERIMENTAL)
    first = next((step.name for step in workflow.steps if step.state not in open_), None)
    found = {item.code for item in descriptor.blockers}

    assert [step.name.value for step in workflow.steps] == [
        "inspect",
        "escalate",
        "adapt",
        "validate",
        "materialize",
        "load",
    ]
    assert workflow.stops_at == first
    assert {step.stopped_by for step in workflow.steps} - {None} <= found
    assert all(step.stopped_by for step in workflow.steps if step.state is STOPPED)


def test_canonical_weights_are_open_up_to_the_loader(tmp_path: Path) -> None:
    descriptor = described(write_sharded(tmp_path))

    assert list(states(descriptor).values()) == [
        CURRENT,
        NOT_NEEDED,
        NOT_NEEDED,
        CURRENT,
        NOT_NEEDED,
        CURRENT,
    ]
    assert descriptor.workflow.stops_at is None
    assert descriptor.workflow.note.startswith("None of the steps promises")


# R064 R066 R074
@pytest.mark.parametrize("family", ["torch/zip_views", "hf/bin_sharded"])
def test_what_is_opaque_stops_and_says_so(family: str) -> None:
    descriptor = described(FIXTURES / family / "checkpoint")
    found = states(descriptor)

    assert found[StepName.INSPECT] is CURRENT
    assert found[StepName.ESCALATE] is ON_REQUEST
    assert found[StepName.ADAPT] is ON_REQUEST
    assert found[StepName.VALIDATE] is STOPPED
    assert found[StepName.MATERIALIZE] is ON_REQUEST
    assert found[StepName.LOAD] is STOPPED
    assert stops(descriptor)[StepName.ESCALATE] == "trust.opaque_pickle"
    assert descriptor.workflow.stops_at is StepName.ESCALATE


# R064
@pytest.mark.parametrize("family", ["torch/zip_views", "dcp/fsdp2_odd_world2", "deepspeed/zero3-w3-fp32"])
def test_what_was_decoded_can_be_adapted_and_materialized_as_an_experiment(family: str) -> None:
    wish = Decoding(Intent("inspect", "command line"))
    found = states(inspect(FIXTURES / family / "checkpoint", digest="none", decoding=wish).descriptor)

    assert found[StepName.ESCALATE] is CURRENT
    assert found[StepName.ADAPT] is EXPERIMENTAL
    assert found[StepName.VALIDATE] is CURRENT
    assert found[StepName.MATERIALIZE] is EXPERIMENTAL


def test_no_pickle_is_said_to_be_read_where_there_is_none(tmp_path: Path) -> None:
    wish = Decoding(Intent("inspect", "command line"))
    descriptor = inspect(write_sharded(tmp_path), digest="none", decoding=wish).descriptor

    escalate = descriptor.workflow.steps[1]
    assert (escalate.state, escalate.says) == (NOT_NEEDED, "nothing here is opaque")


def test_what_is_broken_is_not_materialized() -> None:
    wish = Decoding(Intent("inspect", "command line"))
    descriptor = inspect(FIXTURES / "dcp/bad_hole/checkpoint", digest="none", decoding=wish).descriptor

    assert states(descriptor)[StepName.MATERIALIZE] is STOPPED
    assert stops(descriptor)[StepName.MATERIALIZE] == "dcp.hole"


def test_opaque_files_beside_readable_weights_need_no_escalation(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path)
    (folder / "training_args.bin").write_bytes(b"\x80\x02}q\x00.")
    descriptor = described(folder)

    assert descriptor.trust.opaque_files
    assert states(descriptor)[StepName.ESCALATE] is NOT_NEEDED


def test_a_missing_shard_stops_validation_and_loading(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path)
    (folder / "model-00002-of-00002.safetensors").unlink()
    descriptor = described(folder)

    for name in (StepName.VALIDATE, StepName.LOAD):
        assert states(descriptor)[name] is STOPPED
        assert "LOAD" in {block.name for block in CODES[stops(descriptor)[name] or ""].blocks}
    assert descriptor.workflow.stops_at is StepName.VALIDATE


def test_a_refused_folder_goes_no_further(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "ckpt")
    (folder / "link").symlink_to("/etc/hostname")
    descriptor = described(folder)

    assert set(states(descriptor).values()) == {STOPPED}
    assert len(set(stops(descriptor).values())) == 1
    assert descriptor.workflow.stops_at is StepName.INSPECT


@pytest.mark.parametrize(("name", "code"), [("notes.txt", "layout.unknown"), (None, "layout.empty")])
def test_a_folder_that_is_no_checkpoint_stops_after_inspection(
    tmp_path: Path, name: str | None, code: str
) -> None:
    if name is not None:
        (tmp_path / name).write_text("hello")
    descriptor = described(tmp_path)
    found = states(descriptor)

    assert found.pop(StepName.INSPECT) is CURRENT
    assert set(found.values()) == {STOPPED}
    assert set(stops(descriptor).values()) == {None, code}


def test_several_saves_wait_until_one_is_named(tmp_path: Path) -> None:
    for step in (1, 2):
        write_sharded(tmp_path / f"checkpoint-{step}")
    descriptor = described(tmp_path)

    assert stops(descriptor)[StepName.ADAPT] == "layout.several_candidates"
    assert descriptor.workflow.stops_at is StepName.ESCALATE


# R065
def test_no_command_goes_around_the_gates() -> None:
    assert not {"adapt", "decode", "load", "escalate", "materialize", "trust"} & set(COMMANDS)


# R074
def test_without_a_persons_wish_nothing_is_escalated() -> None:
    for path in CHECKPOINTS:
        assert states(described(path))[StepName.ESCALATE] in (ON_REQUEST, NOT_AVAILABLE, NOT_NEEDED, STOPPED)


def test_digests_taken_later_keep_the_steps(tmp_path: Path) -> None:
    from shardscope.engine import with_digests

    folder = write_sharded(tmp_path)
    write_config(folder)
    found = inspect(folder, digest="none")

    assert with_digests(found, "all").descriptor.workflow == found.descriptor.workflow


def test_a_file_that_vanishes_before_its_digest_stops_every_step(tmp_path: Path) -> None:
    from shardscope.engine import with_digests

    folder = shutil.copytree(FIXTURES / "hf/llama_single_bf16/checkpoint", tmp_path / "ckpt")
    found = inspect(folder, digest="none")
    (folder / "config.json").write_text(json.dumps({"model_type": "another"}))
    later = with_digests(found, "all").descriptor

    assert "source.changed" in {item.code for item in later.blockers}
    assert later.workflow.steps[3].stopped_by == "source.changed"

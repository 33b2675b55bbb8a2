"""What stops nothing and still has to be known is part of the plan: nobody reads a report again before converting."""

from pathlib import Path

import pytest

from shardscope.app.cli.plan_text import render
from shardscope.engine import prepare
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.plan import PlanOptions

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("dcp/hf_writer_sharded_world2", "dcp.extent_unproven"),
        ("dcp/fsdp2_no_collectives_world2", "dcp.ranks_united"),
    ],
)
def test_what_was_inferred_is_told_with_the_plan(name: str, code: str) -> None:
    decoding = Decoding(Intent("convert", "command line"), "all")
    plan = prepare(FIXTURES / name / "checkpoint", PlanOptions(), decoding=decoding).plan

    assert code in {note.code for note in plan.notes}
    assert not plan.blockers
    assert code in render(plan)

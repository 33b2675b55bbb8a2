"""Admitted, denied or unknown: each figure with its basis, and only the first of the three starts anything."""

import msgspec
import pytest

from shardscope.engine.convert.admission import Machine, admit
from shardscope.engine.convert.planning import PROGRAM_BYTES
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.plan import Plan, PlanEstimates, PlanOptions, PlanSource
from shardscope.engine.model.resources import Estimate

ROOMY = Machine(
    target_free=1 << 40,
    quota_free=None,
    inodes_free=1 << 20,
    counts_inodes=True,
    ram_available=1 << 40,
    cgroup_limit=None,
    cgroup_used=None,
    open_files=1024,
)


def plan(output: int | None = 1 << 30, peak: int | None = 1 << 27) -> Plan:
    def figure(count: int | None) -> Estimate:
        return Estimate(count, Basis.DERIVED, "")

    return Plan(
        schema="shardscope.plan/1",
        tool="shardscope",
        source=PlanSource("torch_dcp", "", 1, 1, decoded=True),
        options=PlanOptions(),
        files=(),
        aliases=(),
        carried=(),
        decisions=(),
        left_out=(),
        estimates=PlanEstimates(figure(1), figure(1), figure(output), figure(output), figure(peak)),
        blockers=(),
    )


def verdict(machine: Machine, **figures: int | None) -> tuple[str, dict[str, str]]:
    found = admit(plan(**figures), machine, open_files=40)
    return found.verdict, {check.what: check.verdict for check in found.checks}


def test_room_for_everything_is_admitted() -> None:
    assert verdict(ROOMY)[0] == "admitted"


# R105 R108
@pytest.mark.parametrize(
    ("what", "less"),
    [
        ("disk", {"target_free": 1 << 20}),
        ("RAM", {"ram_available": 1 << 20}),
        ("files", {"inodes_free": 2}),
        ("open files", {"open_files": 8}),
        ("quota", {"quota_free": 1 << 20}),
        ("control group", {"cgroup_limit": 1 << 30, "cgroup_used": 1 << 30}),
    ],
)
def test_too_little_of_one_thing_denies(what: str, less: dict[str, int]) -> None:
    found, checks = verdict(msgspec.structs.replace(ROOMY, **less))

    assert found == "denied"
    assert [name for name, each in checks.items() if each == "denied"] == [what]


# R109
def test_what_cannot_be_read_is_unknown_and_not_guessed() -> None:
    found, checks = verdict(msgspec.structs.replace(ROOMY, target_free=None))

    assert found == "unknown"
    assert checks["disk"] == "unknown"
    assert verdict(ROOMY, output=None)[0] == "unknown"


def test_denied_weighs_more_than_unknown() -> None:
    assert verdict(msgspec.structs.replace(ROOMY, target_free=None, ram_available=1))[0] == "denied"


# R083
def test_a_plan_beyond_its_own_budget_is_denied() -> None:
    within = PlanOptions().memory_bytes + PROGRAM_BYTES

    assert verdict(ROOMY, peak=within)[0] == "admitted"
    assert verdict(ROOMY, peak=within + 1)[1]["memory budget"] == "denied"

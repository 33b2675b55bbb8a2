"""Admitted, denied or unknown: each figure with its basis, and only the first of the three starts anything."""

import pytest
from msgspec.structs import replace

from shardscope.engine.convert.admitting.admission import admit
from shardscope.engine.convert.admitting.space import Figure, Memory, Space
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.plan import Plan, PlanEstimates, PlanOptions, PlanSource
from shardscope.engine.model.resources import Estimate


def limit(value: int | None) -> Figure:
    return Figure(value, "a limit")


NONE = Figure(None, "nothing limits it", unlimited=True)
SPACE = Space(limit(1 << 40), limit(1 << 20), NONE, NONE, NONE)
MEMORY = Memory(limit(1 << 40), NONE, NONE, limit(1024))


def plan(output: int | None = 1 << 30, peak: int | None = 1 << 27, buffers: int | None = 1 << 20) -> Plan:
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
        estimates=PlanEstimates(*map(figure, (1, 1, output, output, peak, buffers))),
        blockers=(),
    )


def verdict(
    space: dict[str, Figure] | None = None, memory: dict[str, Figure] | None = None, **figures: int | None
) -> tuple[str, dict[str, str]]:
    found = admit(
        plan(**figures), replace(SPACE, **space or {}), replace(MEMORY, **memory or {}), open_files=40
    )
    return found.verdict, {check.what: check.verdict for check in found.checks}


def test_room_for_everything_is_admitted() -> None:
    assert verdict()[0] == "admitted"


# R105 R108
@pytest.mark.parametrize(
    ("what", "space", "memory"),
    [
        ("disk", {"free_bytes": limit(1 << 20)}, {}),
        ("files", {"free_files": limit(2)}, {}),
        ("quota", {"quota_bytes": limit(1 << 20)}, {}),
        ("quota of files", {"quota_files": limit(1)}, {}),
        ("RAM", {}, {"ram_available": limit(1 << 20)}),
        ("control group", {}, {"group_available": limit(0)}),
        ("address space", {}, {"address_bytes": limit(1 << 20)}),
        ("open files", {}, {"open_files": limit(8)}),
    ],
)
def test_too_little_of_one_thing_denies(
    what: str, space: dict[str, Figure], memory: dict[str, Figure]
) -> None:
    found, checks = verdict(space, memory)

    assert found == "denied"
    assert [name for name, each in checks.items() if each == "denied"] == [what]


# R109
@pytest.mark.parametrize(
    ("what", "space", "memory"),
    [
        ("disk", {"free_bytes": limit(None)}, {}),
        ("RAM", {}, {"ram_available": limit(None)}),
        ("control group", {}, {"group_available": limit(None)}),
    ],
)
def test_what_cannot_be_read_is_unknown_and_not_guessed(
    what: str, space: dict[str, Figure], memory: dict[str, Figure]
) -> None:
    found, checks = verdict(space, memory)

    assert found == "unknown"
    assert checks[what] == "unknown"


def test_a_plan_without_a_figure_is_unknown() -> None:
    assert verdict(output=None)[0] == "unknown"


def test_a_quota_that_cannot_be_read_counts_for_nothing() -> None:
    found, checks = verdict({"quota_bytes": limit(None)})

    assert found == "admitted"
    assert "quota" not in checks


def test_denied_weighs_more_than_unknown() -> None:
    assert verdict({"free_bytes": limit(None)}, {"ram_available": limit(1)})[0] == "denied"


# R083
def test_a_plan_beyond_its_own_budget_is_denied() -> None:
    within = PlanOptions().memory_bytes

    assert verdict(buffers=within)[0] == "admitted"
    assert verdict(buffers=within + 1)[1]["memory budget"] == "denied"

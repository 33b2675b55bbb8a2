"""The dependency diagnostic: what a named capability settles, and all that it does not."""

import itertools

import pytest

from shardscope.engine.capabilities.diagnosis import Resolution, resolve
from shardscope.engine.capabilities.published import MATRIX, packaged
from shardscope.engine.capabilities.registry import REGISTRY
from shardscope.engine.model.blocker import Blocks, Severity
from shardscope.engine.model.capability import Capability, Requirement
from shardscope.engine.model.descriptor import AdapterStatus, DependencyState, ProducerFact
from shardscope.engine.model.evidence import Basis, Status
from tests.capabilities.statements import DCP, INSTALLED, capability, found, wrote

TORCH = wrote("torch", "2.9.1")


def diagnosed(
    *capabilities: Capability,
    producer: tuple[ProducerFact, ...] = (),
    installed: dict[str, str] | None = None,
    format_name: str = "torch_dcp",
    status: Status = Status.CONDITIONAL,
) -> Resolution:
    present = INSTALLED if installed is None else installed
    return resolve(found(format_name, status), producer, capabilities, installed=present.get)


def codes(resolution: Resolution) -> list[str]:
    return [item.code for item in resolution.blockers]


# R050
def test_an_empty_registry_says_that_it_is_empty() -> None:
    resolution = diagnosed()

    assert REGISTRY == ()
    assert resolution.match.status is AdapterStatus.NONE
    assert "empty" in resolution.match.note
    assert resolution.blockers == ()


# R051
def test_the_format_alone_makes_a_candidate() -> None:
    match = diagnosed(DCP).match

    assert (match.status, match.candidates) == (AdapterStatus.CANDIDATE, (DCP.id,))
    assert (match.producer_agrees, match.version_agrees) == (None, None)


# R051
@pytest.mark.parametrize(
    ("format_name", "status"),
    [
        ("deepspeed_zero", Status.CONDITIONAL),
        ("torch_dcp", Status.REFUSED),
        ("ambiguous", Status.AMBIGUOUS),
        ("unknown", Status.UNKNOWN),
    ],
)
def test_without_its_format_there_is_no_candidate(format_name: str, status: Status) -> None:
    resolution = diagnosed(DCP, producer=(TORCH,), format_name=format_name, status=status)

    assert (resolution.match.status, resolution.match.candidates) == (AdapterStatus.NONE, ())
    assert codes(resolution) == ["capability.no_match"]


# R053
@pytest.mark.parametrize(
    ("installed", "state", "code"),
    [
        ({}, DependencyState.MISSING, "capability.dependency_missing"),
        ({"torch": "2.9.0"}, DependencyState.MISMATCHED, "capability.dependency_mismatch"),
        ({"torch": "2.9.10"}, DependencyState.MISMATCHED, "capability.dependency_mismatch"),
    ],
)
def test_a_dependency_that_is_not_met_is_reported_in_full(
    installed: dict[str, str], state: DependencyState, code: str
) -> None:
    resolution = diagnosed(DCP, producer=(TORCH,), installed=installed)
    (report,) = resolution.match.dependencies
    (need,) = report.requires
    (item,) = resolution.blockers

    assert (report.extra, report.project.required) == ("shardscope[dcp]", DCP.project_version)
    assert (need.distribution, need.required, need.observed, need.state) == (
        "torch",
        "2.9.1",
        installed.get("torch"),
        state,
    )
    assert (item.code, item.severity) == (code, Severity.WARNING)
    for part in (
        "torch 2.9.1",
        "shardscope[dcp]",
        DCP.project_version,
        installed.get("torch", "not installed"),
    ):
        assert part in f"{item.message} {item.remedy}"
    assert resolution.match.status is AdapterStatus.CANDIDATE


def test_another_version_of_this_tool_is_a_mismatch() -> None:
    resolution = diagnosed(capability(project_version="99.0.0"), producer=(TORCH,))

    assert codes(resolution) == ["capability.project_mismatch"]
    assert resolution.match.status is AdapterStatus.CANDIDATE


@pytest.mark.parametrize(
    ("required", "observed", "met"),
    [("2.9.1", "2.9.1+cu128", True), ("2.9.1+cu128", "2.9.1", False), ("2.9.1+cu128", "2.9.1+cu128", True)],
)
def test_a_local_label_counts_where_it_is_named(required: str, observed: str, met: bool) -> None:
    needs = capability(requires=(Requirement("torch", required),))

    assert (codes(diagnosed(needs, installed={"torch": observed})) == []) is met


# R054
@pytest.mark.parametrize(
    ("producer", "agrees", "exact"),
    [
        ((), (None, None), False),
        ((wrote("torch", None),), (True, None), False),
        ((wrote("accelerate", "2.9.1"),), (False, None), False),
        ((wrote("torch", "2.9.0"),), (True, False), False),
        ((wrote("torch", "2.9.1"), wrote("torch", "2.8.0")), (True, False), False),
        ((wrote("torch", "2.9.1", Basis.INFERRED),), (None, None), False),
        (
            (wrote("torch", None, Basis.OBSERVED), wrote("torch", "2.9.1", Basis.INFERRED)),
            (True, None),
            False,
        ),
        ((wrote("torch", "2.9.1"),), (True, True), True),
        ((wrote("Torch", None, Basis.OBSERVED), wrote("torch", "2.9.1")), (True, True), True),
    ],
)
def test_only_observed_producer_and_version_make_it_exact(
    producer: tuple[ProducerFact, ...], agrees: tuple[bool | None, bool | None], exact: bool
) -> None:
    match = diagnosed(DCP, producer=producer).match

    assert (match.producer_agrees, match.version_agrees) == agrees
    assert match.status is (AdapterStatus.EXACT if exact else AdapterStatus.CANDIDATE)


# R054
def test_what_is_installed_is_no_evidence_of_who_wrote_it() -> None:
    assert diagnosed(DCP, installed=INSTALLED).match.version_agrees is None


OTHER = capability(id="another", requires=())
OLDER = capability(id="older", producer_version="2.8.0", requires=())


# R055
@pytest.mark.parametrize(
    ("others", "producer"),
    [((OTHER,), ()), ((OTHER,), (TORCH,)), ((OLDER,), ()), ((OLDER, OTHER), (TORCH,)), ((DCP,), (TORCH,))],
)
def test_several_that_match_fail_closed_in_any_order(
    others: tuple[Capability, ...], producer: tuple[ProducerFact, ...]
) -> None:
    for order in itertools.permutations((DCP, *others)):
        resolution = diagnosed(*order, producer=producer)
        ambiguous = next(item for item in resolution.blockers if item.code == "capability.ambiguous")

        assert resolution.match.status is AdapterStatus.AMBIGUOUS
        assert (resolution.match.producer_agrees, resolution.match.version_agrees) == (None, None)
        assert (ambiguous.severity, ambiguous.blocks) == (Severity.ERROR, (Blocks.CONVERT,))


# R054 R055
def test_evidence_for_one_and_against_the_others_decides() -> None:
    for order in itertools.permutations((DCP, OLDER)):
        resolution = diagnosed(*order, producer=(TORCH,))

        assert resolution.match.status is AdapterStatus.EXACT
        assert set(resolution.match.candidates) == {DCP.id, OLDER.id}
        assert codes(resolution) == ["capability.contradicted"]


# R057 R058 R059
@pytest.mark.parametrize("producer", [(), (TORCH,)])
def test_a_match_says_that_it_is_a_diagnosis_and_changes_no_matrix(
    producer: tuple[ProducerFact, ...],
) -> None:
    before = packaged(MATRIX)

    match = diagnosed(DCP, producer=producer).match

    assert "nothing was installed, trusted or read, and no support is claimed" in match.note
    assert packaged(MATRIX) == before

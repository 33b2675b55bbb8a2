"""The dependency diagnostic: does a capability fit this checkpoint, and is what it needs installed?

The answer is a diagnosis and nothing else. It installs nothing, authorises no trust, calls no reader, and leaves the
support matrix as it is.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.capabilities.installed import installed_version, same_version
from shardscope.engine.model.blocker import Blocker, Finding, blocker
from shardscope.engine.model.capability import Capability
from shardscope.engine.model.descriptor import (
    AdapterMatch,
    AdapterStatus,
    Dependency,
    DependencyReport,
    DependencyState,
    ProducerFact,
)
from shardscope.engine.model.evidence import Basis, Classification, Status
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.version import __version__

Installed = Callable[[str], str | None]

PROJECT: Final = "shardscope"
_SEEN: Final = (Basis.DECLARED, Basis.OBSERVED)
"""What counts as evidence of a producer: never a guess from names."""
_DIAGNOSIS: Final = "A diagnosis only: nothing was installed, trusted or read, and no support is claimed."


class Resolution(Struct, frozen=True):
    """What capabilities say about one checkpoint."""

    match: AdapterMatch
    blockers: tuple[Blocker, ...]


class _Agreement(Struct, frozen=True):
    """What the checkpoint itself says about the producer of a capability. Null is silence."""

    producer: bool | None
    version: bool | None
    said: str

    @property
    def speaks_for(self) -> bool:
        """Whether producer and version were both observed, and both agree."""
        return self.producer is True and self.version is True

    @property
    def speaks_against(self) -> bool:
        """Whether another version was observed.

        Another producer alone speaks against nothing: several programs leave their names in one checkpoint.
        """
        return self.version is False


class _Candidate(Struct, frozen=True):
    capability: Capability
    agreement: _Agreement
    report: DependencyReport


def resolve(
    classification: Classification,
    producer: Sequence[ProducerFact],
    capabilities: Sequence[Capability],
    *,
    installed: Installed = installed_version,
    project_version: str = __version__,
) -> Resolution:
    """Hold `capabilities` against what inspection found.

    A capability is a candidate where the format is its own. It is exact where the checkpoint, besides, names its
    producer and its version, and everything that it needs is installed. Several that match are ambiguous, unless the
    checkpoint speaks for one of them and against every other.
    """
    if not capabilities:
        return Resolution(AdapterMatch(AdapterStatus.NONE), ())
    known = classification.status is Status.CONDITIONAL
    findings: list[Finding] = []
    candidates: list[_Candidate] = []
    for item in capabilities:
        if known and item.format == classification.format:
            report = _report(item, installed, project_version)
            candidates.append(_Candidate(item, _agreement(item, producer), report))
            findings += _dependency_findings(item, report)
        else:
            findings.append(_no_match(item, classification))
    findings += [_contradicted(each) for each in candidates if each.agreement.speaks_against]
    chosen = _chosen(candidates)
    if len(candidates) > 1 and chosen is None:
        ids = ", ".join(each.capability.id for each in candidates)
        findings.append(Finding("capability.ambiguous", {"count": len(candidates), "ids": ids}))
    return Resolution(_match(candidates, chosen), tuple(blocker(finding) for finding in findings))


def _chosen(candidates: Sequence[_Candidate]) -> _Candidate | None:
    """Return the only candidate, or the one that the checkpoint speaks for while it speaks against every other."""
    if len(candidates) == 1:
        return candidates[0]
    standing = [each for each in candidates if not each.agreement.speaks_against]
    return standing[0] if len(standing) == 1 and standing[0].agreement.speaks_for else None


def _match(candidates: Sequence[_Candidate], chosen: _Candidate | None) -> AdapterMatch:
    ids = tuple(each.capability.id for each in candidates)
    reports = tuple(each.report for each in candidates)
    if not candidates:
        note = f"No capability that was named is for this format. {_DIAGNOSIS}"
        return AdapterMatch(AdapterStatus.NONE, note=note)
    if chosen is None:
        note = f"Several capabilities match and none is chosen. {_DIAGNOSIS}"
        return AdapterMatch(AdapterStatus.AMBIGUOUS, ids, dependencies=reports, note=note)
    agreement = chosen.agreement
    exact = agreement.speaks_for and _met(chosen.report)
    return AdapterMatch(
        AdapterStatus.EXACT if exact else AdapterStatus.CANDIDATE,
        ids,
        agreement.producer,
        agreement.version,
        reports,
        note=f"{_says(agreement, chosen.report)} {_DIAGNOSIS}",
    )


def _says(agreement: _Agreement, report: DependencyReport) -> str:
    if agreement.producer is None:
        return "The format matches; the checkpoint does not say which software wrote it."
    if not agreement.producer:
        return "The format matches; the checkpoint names another producer."
    if agreement.version is None:
        return "Format and producer match; the checkpoint does not say which version wrote it."
    if not agreement.version:
        return "Format and producer match; the checkpoint names another version."
    if not _met(report):
        return "Format, producer and version match; not everything that the capability needs is installed."
    return "Format, producer and version match, and what the capability needs is installed."


def _agreement(capability: Capability, producer: Sequence[ProducerFact]) -> _Agreement:
    """Compare producer and version each for itself. Facts that contradict each other agree with nothing."""
    seen = [fact for fact in producer if fact.basis in _SEEN]
    named = [fact for fact in seen if fact.name.casefold() == capability.producer.casefold()]
    versions = sorted({fact.version for fact in named if fact.version is not None})
    said = ", ".join(sorted({f"{fact.name} {fact.version or ''}".strip() for fact in named or seen}))
    return _Agreement(
        producer=bool(named) if seen else None,
        version=all(same_version(capability.producer_version, version) for version in versions)
        if versions
        else None,
        said=said,
    )


def _report(capability: Capability, installed: Installed, project_version: str) -> DependencyReport:
    return DependencyReport(
        capability=capability.id,
        extra=f"{PROJECT}[{capability.extra}]",
        project=_dependency(PROJECT, capability.project_version, project_version),
        requires=tuple(
            _dependency(need.distribution, need.version, installed(need.distribution))
            for need in capability.requires
        ),
    )


def _dependency(distribution: str, required: str, observed: str | None) -> Dependency:
    if observed is None:
        state = DependencyState.MISSING
    elif same_version(required, observed):
        state = DependencyState.MET
    else:
        state = DependencyState.MISMATCHED
    return Dependency(distribution, required, observed, state)


def _met(report: DependencyReport) -> bool:
    return all(need.state is DependencyState.MET for need in (report.project, *report.requires))


def _dependency_findings(capability: Capability, report: DependencyReport) -> list[Finding]:
    findings = []
    if report.project.state is not DependencyState.MET:
        params = {"required": report.project.required, "observed": report.project.observed}
        findings.append(Finding("capability.project_mismatch", {"capability": capability.id, **params}))
    for need in report.requires:
        if need.state is DependencyState.MET:
            continue
        params = {
            "capability": capability.id,
            "distribution": need.distribution,
            "required": need.required,
            "extra": report.extra,
            "project": capability.project_version,
        }
        if need.observed is not None:
            params["observed"] = need.observed
        findings.append(Finding(f"capability.dependency_{_WORD[need.state]}", {**params}))
    return findings


_WORD: Final = {DependencyState.MISSING: "missing", DependencyState.MISMATCHED: "mismatch"}


def _no_match(capability: Capability, classification: Classification) -> Finding:
    wanted = FORMAT_TITLES.get(capability.format, "a format that is not known here")
    found = FORMAT_TITLES.get(classification.format, classification.format)
    if classification.status is Status.REFUSED:
        found = "a folder that inspection refused"
    return Finding("capability.no_match", {"capability": capability.id, "wanted": wanted, "found": found})


def _contradicted(candidate: _Candidate) -> Finding:
    capability = candidate.capability
    params = {
        "capability": capability.id,
        "producer": capability.producer,
        "wanted": capability.producer_version,
        "found": candidate.agreement.said,
    }
    return Finding("capability.contradicted", {**params})

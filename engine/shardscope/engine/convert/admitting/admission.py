"""Whether a plan may start on this machine: each figure against what there is, and a plain verdict.

Denied and unknown start nothing. A figure that the system does not tell is unknown and is never guessed; only quotas, which many
file systems keep to themselves, count where they can be read.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from shardscope.engine.convert.admitting.space import Figure, Memory, Space
from shardscope.engine.model.blocker import Fault, human_bytes
from shardscope.engine.model.plan import COUNTS, Admission, AdmissionCheck, Plan, Verdict

FILES_BESIDE: Final = 8
"""Files and folders of staging beside those of the plan: marker, journal, lock, documents."""


def admit(plan: Plan, space: Space, memory: Memory, *, open_files: int) -> Admission:
    """Return the verdict on a plan; `open_files` is how many descriptors it needs at once."""
    checks = [*_on_disk(plan, space), *_in_memory(plan, memory)]
    checks.append(_check("open files", open_files, memory.open_files))
    return Admission(_worst(checks), tuple(checks))


def admitted(plan: Plan) -> Admission:
    """Return the admission of a plan that may start. Raises `Fault`: `admission.denied`, `admission.unknown`."""
    admission = plan.admission
    if admission is None:
        raise Fault("admission.unknown", what="the plan")
    for item in admission.checks:
        if item.verdict == "denied":
            needs, has = _in_words(item)
            raise Fault("admission.denied", what=item.what, needs=needs, has=has)
    for item in admission.checks:
        if item.verdict == "unknown":
            raise Fault("admission.unknown", what=item.what)
    return admission


def _on_disk(plan: Plan, space: Space) -> Iterator[AdmissionCheck]:
    staged = plan.estimates.temporary_bytes.bytes
    files = len(plan.files) + len(plan.carried) + FILES_BESIDE
    yield _check("disk", staged, space.free_bytes)
    yield _check("files", files, space.free_files)
    for what, needs, figure in (
        ("quota", staged, space.quota_bytes),
        ("quota of files", files, space.quota_files),
    ):
        if figure.value is not None:
            yield _check(what, needs, figure)
    if not space.file_bytes.unlimited:
        yield _check("size of a file", max((file.bytes for file in plan.files), default=0), space.file_bytes)


def _in_memory(plan: Plan, memory: Memory) -> Iterator[AdmissionCheck]:
    peak = plan.estimates.peak_ram_bytes.bytes
    budget = Figure(plan.options.memory_bytes, "--memory, for the buffers of all workers")
    yield _check("memory budget", plan.estimates.buffer_bytes.bytes, budget)
    yield _check("RAM", peak, memory.ram_available)
    for what, figure in (("control group", memory.group_available), ("address space", memory.address_bytes)):
        if not figure.unlimited:
            yield _check(what, peak, figure)


def _in_words(check: AdmissionCheck) -> tuple[str, str]:
    """Return what is needed and what there is, of a check that has both figures."""
    needs, has = check.needs or 0, check.has or 0
    return (f"{needs:,}", f"{has:,}") if check.what in COUNTS else (human_bytes(needs), human_bytes(has))


def _check(what: str, needs: int | None, has: Figure) -> AdmissionCheck:
    verdict: Verdict = "unknown"
    if has.unlimited:
        verdict = "admitted"
    elif needs is not None and has.value is not None:
        verdict = "admitted" if needs <= has.value else "denied"
    return AdmissionCheck(what, needs, has.value, verdict, has.basis)


def _worst(checks: Sequence[AdmissionCheck]) -> Verdict:
    verdicts = {check.verdict for check in checks}
    return "denied" if "denied" in verdicts else "unknown" if "unknown" in verdicts else "admitted"

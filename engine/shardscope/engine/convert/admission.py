"""Whether a plan may start on this machine: each figure against what there is, and a plain verdict.

Denied and unknown start nothing. A figure that the system does not tell is unknown and is never guessed.
"""

from collections.abc import Sequence

from msgspec import Struct

from shardscope.engine.model.plan import Admission, AdmissionCheck, Plan, Verdict


class Machine(Struct, frozen=True):
    """What this machine has to give, as `convert/space` and `host` read it; null where it does not tell."""

    target_free: int | None
    """Bytes free for this user on the file system of the target, which is that of the staging folder."""
    quota_free: int | None
    """Bytes left of a quota; null where there is none that can be read."""
    inodes_free: int | None
    """Files that can still be made; null where the file system does not count them."""
    counts_inodes: bool
    ram_available: int | None
    cgroup_limit: int | None
    cgroup_used: int | None
    open_files: int | None
    """Descriptors that this process may have."""


def admit(plan: Plan, machine: Machine, *, open_files: int) -> Admission:
    """Return the verdict on a plan; `open_files` is how many it holds open at once."""
    checks = [
        _check(
            "disk",
            plan.estimates.temporary_bytes.bytes,
            machine.target_free,
            "output and staging are one: they are staged beside the target",
        ),
        _check(
            "memory budget",
            plan.estimates.peak_ram_bytes.bytes,
            _budget(plan),
            "buffers of the plan's own tiles and workers, and the program",
        ),
        _check(
            "RAM", plan.estimates.peak_ram_bytes.bytes, machine.ram_available, "MemAvailable of this machine"
        ),
        _check(
            "open files", open_files, machine.open_files, "files of the plan, and the limit of this process"
        ),
    ]
    if machine.quota_free is not None:
        checks.append(
            _check(
                "quota", plan.estimates.temporary_bytes.bytes, machine.quota_free, "the quota of this user"
            )
        )
    if machine.counts_inodes:
        needed = len(plan.files) + len(plan.carried) + 8
        checks.append(_check("files", needed, machine.inodes_free, "inodes of the file system"))
    if machine.cgroup_limit is not None:
        left = None if machine.cgroup_used is None else machine.cgroup_limit - machine.cgroup_used
        checks.append(
            _check(
                "control group",
                plan.estimates.peak_ram_bytes.bytes,
                left,
                "the memory limit of this control group, less what is used",
            )
        )
    return Admission(_worst(checks), tuple(checks))


def _budget(plan: Plan) -> int:
    from shardscope.engine.convert.planning import PROGRAM_BYTES

    return plan.options.memory_bytes + PROGRAM_BYTES


def _check(what: str, needs: int | None, has: int | None, basis: str) -> AdmissionCheck:
    verdict: Verdict = "unknown" if needs is None or has is None else "admitted" if needs <= has else "denied"
    return AdmissionCheck(what, needs, has, verdict, basis)


def _worst(checks: Sequence[AdmissionCheck]) -> Verdict:
    verdicts = {check.verdict for check in checks}
    return "denied" if "denied" in verdicts else "unknown" if "unknown" in verdicts else "admitted"

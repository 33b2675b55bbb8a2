"""Asks pip-audit for advisories about what the lock pins: `make audit`.

    .venv-nightly/bin/python tests/release/audit.py [LOCK]

Exit 0: advisory data was read and none is about these versions. 1: there are some. 3: no advisory data could be reached, and nothing is
known either way. What was not looked up is never called clean.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CLEAN, FOUND, UNKNOWN = 0, 1, 3


@dataclass(frozen=True)
class Verdict:
    """What can be said of a lock."""

    exit: int
    says: str


def verdict(answer: str, complaint: str, pinned: int) -> Verdict:
    """Judge what pip-audit printed on its two streams about `pinned` distributions."""
    try:
        rows: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        return Verdict(
            UNKNOWN,
            f"Not audited: no advisory data could be reached, so that nothing is known. ({last[0][:200]})",
        )
    looked = [row for row in rows if "vulns" in row]
    found = [f"{row['name']} {row['version']}: {each['id']}" for row in looked for each in row["vulns"]]
    if found:
        return Verdict(FOUND, "\n".join([f"{len(found)} advisories:", *found]))
    if len(looked) < pinned:
        why = next((str(row["skip_reason"]) for row in rows if "skip_reason" in row), "no reason was given")
        return Verdict(
            UNKNOWN,
            f"Not audited: advisories were read for {len(looked)} of {pinned} distributions. ({why[:200]})",
        )
    return Verdict(
        CLEAN, f"No advisory is known today about the {pinned} distributions that are pinned for this Python."
    )


def audit(lock: Path, command: Sequence[str]) -> Verdict:
    """Run pip-audit over a lock. Nothing is installed or resolved: the lock names everything."""
    ran = subprocess.run(
        [
            *command,
            "--requirement",
            str(lock),
            "--disable-pip",
            "--require-hashes",
            "--format",
            "json",
            "--timeout",
            "20",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return verdict(ran.stdout, ran.stderr, here(lock))


def here(lock: Path) -> int:
    """The number of pins whose markers hold for this interpreter."""
    from packaging.requirements import Requirement

    lines = (line.rstrip(" \\\n") for line in lock.read_text(encoding="utf-8").splitlines() if "==" in line)
    wanted = [Requirement(line) for line in lines if not line.lstrip().startswith(("#", "-"))]
    return sum(1 for each in wanted if each.marker is None or each.marker.evaluate())


def main(arguments: list[str]) -> int:
    """Audit the lock of what running needs, or the one that is named."""
    lock = Path(arguments[0]) if arguments else ROOT / "requirements.lock"
    found = audit(lock, [sys.executable, "-m", "pip_audit"])
    print(found.says, file=sys.stderr if found.exit else sys.stdout)
    return found.exit


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

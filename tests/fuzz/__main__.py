"""`make fuzz`: every target, or the named ones, and what came of it.

    python -m tests.fuzz [--executions N] [--seconds S] [--seed N] [--plain] [--keep] [TARGET ...]

With atheris (`.venv-nightly`) coverage leads; `--plain`, or where there is none, inputs are mutated blindly. `--keep` adds what opened new
ways through the code to the stored corpus, as few and as short inputs as do.
"""

import argparse
import base64
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.attempt import attempt
from tests.fuzz.mutating import mutated
from tests.fuzz.seeds import CORPUS, kept, seeds
from tests.fuzz.targets import TARGETS, Target

STORED_BYTES = 1_024
"""Longer inputs are not stored."""
STORED = 40
"""Inputs that are stored for a target, at the most."""
OF_EACH_END = 2
"""Inputs that are stored for each code with which a target ends, before others."""


def blindly(target: Target, executions: int, seconds: float, seed: int) -> Counter[str]:
    """Mutate without coverage, and return how often each end was met."""
    rng = random.Random(seed)
    inputs = [*kept(target.name), *seeds(target.name)]
    ends = Counter(attempt(target, data) for data in inputs)
    until = time.monotonic() + seconds
    for count in range(executions):
        if count % 256 == 0 and time.monotonic() > until:
            break
        ends[attempt(target, mutated(rng, rng.choice(inputs), inputs, textual=target.textual))] += 1
    return ends


def guided(target: Target, executions: int, seconds: float, seed: int, folder: Path) -> tuple[int, str]:
    """Fuzz under atheris in a process of its own; return the number of executions and what went wrong, if anything did."""
    begin, new = folder / "begin", folder / "new"
    for place in (begin, new):
        place.mkdir(parents=True)
    for number, data in enumerate([*kept(target.name), *seeds(target.name)]):
        (begin / f"{number:05}").write_bytes(data)
    options = [
        f"-runs={executions}",
        f"-max_total_time={max(1, int(seconds))}",
        f"-seed={seed or 1}",
        f"-artifact_prefix={folder}/",
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", target.name, str(new), str(begin), *options],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    done = re.search(r"stat::number_of_executed_units:\s+(\d+)", ran.stderr)
    return int(done[1]) if done else 0, "" if ran.returncode == 0 else told(ran.stdout, ran.stderr, folder)


def told(out: str, err: str, folder: Path) -> str:
    """What there is to say of a finding: the exception, and the input, as a line for the stored corpus."""
    raised = re.search(r"(?s)=== Uncaught Python exception: ===\n.*?(?=\n\n|\Z)", out)
    inputs = [
        base64.b64encode(path.read_bytes()).decode()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name.startswith(("crash-", "timeout-", "oom-", "slow-unit-"))
    ]
    return "\n".join([raised[0] if raised else err[-2_000:], *inputs])


def keep(target: Target, folder: Path) -> int:
    """Put what was found into the stored corpus, and return how many inputs it holds now: the shortest of each way to end, then any."""
    found = {path.read_bytes() for path in (folder / "new").iterdir()}
    short = sorted((data for data in found if len(data) <= STORED_BYTES), key=lambda data: (len(data), data))
    ends: dict[str, list[bytes]] = {}
    for data in [*kept(target.name), *short]:
        ends.setdefault(attempt(target, data), []).append(data)
    best = [data for of_end in ends.values() for data in of_end[:OF_EACH_END]]
    rest = [data for of_end in ends.values() for data in of_end[OF_EACH_END:]]
    chosen = list(dict.fromkeys([*kept(target.name), *best, *rest[:: max(1, len(rest) // STORED)]]))[:STORED]
    CORPUS.mkdir(exist_ok=True)
    lines = "".join(f"{base64.b64encode(data).decode()}\n" for data in chosen)
    (CORPUS / f"{target.name}.txt").write_text(lines, encoding="ascii")
    return len(chosen)


def main(arguments: list[str]) -> int:
    """Fuzz, say how often, and fail where anything came out that should not."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--executions", type=int, default=100_000, help="of each target")
    parser.add_argument("--seconds", type=float, default=60, help="for each target, at the most")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("targets", nargs="*", help="all of them, unless some are named")
    given = parser.parse_args(arguments)
    seed = given.seed or random.randrange(1, 1 << 31)
    led = not given.plain and importlib.util.find_spec("atheris") is not None
    print(f"{'led by coverage' if led else 'blindly'}, seed {seed}", flush=True)
    total, bad = 0, []
    for name in given.targets or TARGETS:
        began, note = time.monotonic(), ""
        if led:
            with tempfile.TemporaryDirectory() as folder:
                count, problem = guided(TARGETS[name], given.executions, given.seconds, seed, Path(folder))
                bad += [f"{name}:\n{problem}"] if problem else []
                if given.keep and not problem:
                    note = f", {keep(TARGETS[name], Path(folder))} stored"
        else:
            count = sum(blindly(TARGETS[name], given.executions, given.seconds, seed).values())
        total += count
        print(f"{name:12} {count:10,} in {time.monotonic() - began:5.0f} s{note}", flush=True)
    print(f"{'together':12} {total:10,}, {len(bad)} findings")
    for problem in bad:
        print(problem, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What going on costs after a kill at half of the bytes, beside a whole run: `python tests/benchmarks/resume.py [--mb N] [--base DIR]`.

A checkpoint of random bf16 numbers in 16 files is converted to 32. A run is killed once half of the bytes are in finished files; the
same command with --resume is then timed from its start to its end, planning, hashing and verification included. Whole runs stand
before and after it. Without --quick the campaign's 200 random kills follow (`python -m tests.campaigns kill-random`).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.checkpoints import write_json

BAR = 0.65
FILES, OUTPUTS = 16, 32
ROW = 4096


def write(folder: Path, mb: int) -> Path:
    """Write the source."""
    folder.mkdir()
    random = np.random.default_rng(1)
    weights: dict[str, str] = {}
    each = (mb << 20) // FILES
    for number in range(FILES):
        name = f"model-{number + 1:05d}-of-{FILES:05d}.safetensors"
        rows = each // 8 // ROW // 2
        header = {
            f"layers.{number}.{part}": {
                "dtype": "BF16", "shape": [rows, ROW], "data_offsets": [part * rows * ROW * 2, (part + 1) * rows * ROW * 2],
            }
            for part in range(8)
        }  # fmt: skip
        text = json.dumps(header).encode()
        with (folder / name).open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _ in range(8):
                file.write(random.integers(0, 256, rows * ROW * 2, np.uint8).data)
        weights |= dict.fromkeys(header, name)
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weights})
    return folder


def start(source: Path, out: Path, *options: str, shard: int) -> "subprocess.Popen[bytes]":
    words = ["convert", str(source), str(out), "--yes", "--quiet", "--max-shard-size", str(shard), *options]
    return subprocess.Popen([sys.executable, "-m", "shardscope", *words], stdout=subprocess.DEVNULL)


def finish(running: "subprocess.Popen[bytes]") -> float:
    """Wait for the end of a run; return the seconds that processors worked for it."""
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"a conversion ended with {running.returncode}")
    return used.ru_utime + used.ru_stime


def killed_at_half(source: Path, out: Path, total: int, shard: int) -> float:
    """Leave what a run leaves that is killed at half of its bytes; return the share that was finished."""
    running = start(source, out, shard=shard)
    while True:
        done = sum(finished(out))
        if done >= total // 2:
            running.kill()
            running.wait()
            return sum(finished(out)) / total
        if running.poll() is not None:
            raise SystemExit("the run was over before it could be killed")
        time.sleep(0.005)


def finished(out: Path) -> list[int]:
    for journal in out.parent.glob(f".{out.name}.*/journal.jsonl"):
        lines = journal.read_bytes().split(b"\n")[1:-1]
        return [json.loads(line)["size"] for line in lines]
    return []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=2048)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--base", default=None)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="shardscope-resume-", dir=asked.base))
    try:
        source, out = write(folder / "source", asked.mb), folder / "out"
        shard = (asked.mb << 20) // OUTPUTS
        rows, shares = [], []

        def timed(*options: str) -> tuple[float, float]:
            began = time.perf_counter()
            worked = finish(start(source, out, *options, shard=shard))
            return time.perf_counter() - began, worked

        timed()
        for _ in range(asked.pairs):
            times = []
            for options in ((), ("--resume",), ()):
                shutil.rmtree(out)
                if options:
                    shares.append(killed_at_half(source, out, asked.mb << 20, shard))
                times.append(timed(*options))
            rows.append(times)
        ratios, worked = (
            [after[kind] / ((one[kind] + two[kind]) / 2) for one, after, two in rows] for kind in (0, 1)
        )
        low, median, high = statistics.quantiles(ratios, n=4)
        print(
            f"resume of {asked.mb} MiB after a kill at {statistics.median(shares):.0%}: {median:.3f}x a whole run "
            f"(quartiles {low:.3f} to {high:.3f}, a whole run by itself "
            f"{statistics.median(two[0] / one[0] for one, _, two in rows):.3f}, {asked.pairs} pairs, "
            f"{statistics.median(row[1][0] for row in rows):.2f} s by {statistics.median(row[0][0] for row in rows):.2f} s, "
            f"work of processors {statistics.median(worked):.3f}x, load {os.getloadavg()[0]:.1f})  "
            f"bar {BAR:.2f}: {'met' if median <= BAR else 'MISSED'}"
        )
    finally:
        shutil.rmtree(folder)
    if not asked.quick:
        subprocess.run([sys.executable, "-m", "tests.campaigns", "kill-random"], check=True)


if __name__ == "__main__":
    main()

"""What every scenario works with: a source of random bytes, what a conversion makes of it, and a driver that does things to runs."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shardscope.engine.convert.disk.leftovers import find_staging
from shardscope.engine.convert.disk.names import is_staging_name
from shardscope.engine.convert.disk.owner import Life, life
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.manifest import RUN_NAME
from tests.checkpoints import write_config, write_json
from tests.convert.targets import OLD, Files, make, read

ROOT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")
LOCK = ".out.shardscope-lock"
SHAPES = [(64, 96), (128, 48), (31,), (48, 128), (96, 64), (200, 33)]
LAYERS = 8
OPTIONS = ("--quiet", "--dtype", "bf16", "--max-shard-size", "60KB")
"""Every element is read, cast and written, to about a dozen files."""


class Ended:
    """How a run ended, what it said and which steps it took."""

    def __init__(self, answer: dict[str, Any], said: Path) -> None:
        self.killed: bool = answer["killed"]
        self.code: int | None = answer["ended"]
        self.seconds: float = answer["seconds"]
        self.said = said.read_text()
        steps = said.with_name(said.name + ".steps")
        self.steps: list[str] = json.loads(steps.read_text()) if steps.exists() else []
        steps.unlink(missing_ok=True)


class Bench:
    """A driver, a source and the bytes that a conversion makes of it. Made by `bench`."""

    def __init__(self, folder: Path, driver: "subprocess.Popen[str]") -> None:
        self.folder = folder
        self._driver = driver
        self.source = write_source(folder / "source")
        self.resumed_bytes = 0
        """That resumed runs did not make again, all together."""
        out = self.target("whole")
        done = self.convert(out)
        expect(done.code == 0, done.said)
        self.new = self.made(out) or {}
        self.seconds = self.convert(self.target("warm")).seconds
        """Of a whole run."""
        self.steps = done.steps

    def target(self, name: str, old: Files | None = None) -> Path:
        """Return a target in a new folder of its own, with what it holds."""
        holder = self.folder / "targets" / name
        shutil.rmtree(holder, ignore_errors=True)
        holder.mkdir(parents=True)
        return holder / "out" if old is None else make(holder / "out", old)

    def convert(
        self,
        out: Path,
        *options: str,
        source: Path | None = None,
        plain: Sequence[str] = OPTIONS,
        verb: str = "convert",
        **what: object,
    ) -> Ended:
        """Run `shardscope convert`, or another verb, in a process of its own, and do to it what was ordered."""
        said = self.folder / "said"
        arguments = [verb, str(source or self.source), str(out), "--yes", *plain, *options]
        if self._driver.stdin is None or self._driver.stdout is None:
            raise AssertionError
        self._driver.stdin.write(json.dumps({"arguments": arguments, "said": str(said), **what}) + "\n")
        self._driver.stdin.flush()
        return Ended(json.loads(self._driver.stdout.readline()), said)

    def command(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start `shardscope` as a person does, beside others."""
        return subprocess.Popen(
            [sys.executable, "-m", "shardscope", *arguments],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    @staticmethod
    def made(out: Path) -> Files | None:
        """Return what stands at a target, without the file that differs between runs."""
        found = read(out)
        if found is not None:
            found.pop(RUN_NAME, None)
        return found

    def look(self, out: Path, old: Files | None = None, *, new: Files | None = None) -> str:
        """Hold what a run left against the promise: old or new, whole; what is beside it is known and dead. Returns which it is."""
        new = self.new if new is None else new
        parent = os.open(out.parent, os.O_RDONLY)
        try:
            left = find_staging(parent, b"out")
        finally:
            os.close(parent)
        names = {os.fsdecode(each.name) for each in left}
        there = {path.name for path in out.parent.iterdir()}
        expect(there <= names | {"out", LOCK, "filler", "full"}, f"strangers: {there}")
        expect(all(is_staging_name(each.name) for each in left), "a staging folder has another name")
        expect(all(each.marker is None or life(each.marker.owner) is Life.DEAD for each in left), "it lives")
        found = self.made(out)
        expect(found in (old, new), f"neither old nor new: {found and sorted(found)}")
        if found == new and old is not None:
            kept = [out.parent / name / inner for name in names for inner in ("previous", "output")]
            expect(any(read(path) == old for path in kept), "the old output is lost")
        return "new" if found == new else "old"

    def resume(
        self, out: Path, old: Files | None = None, *options: str, new: Files | None = None, **what: Any
    ) -> bool:
        """Go on with a run until its output is there, and hold it against what was to be made. False where it was there already."""
        new = self.new if new is None else new
        was = self.look(out, old, new=new)
        replace = () if old is None else ("--replace",)
        again = self.convert(out, "--resume", *replace, *options, **what)
        if was == "new" and old is None:
            expect(again.code == ExitCode.OUTPUT and "stage.target_exists" in again.said, again.said)
            return False
        expect(again.code == 0, again.said)
        expect(self.made(out) == new, "other bytes")
        self.resumed_bytes += json.loads((out / RUN_NAME).read_text())["resumed_bytes"]
        self.look(out, old, new=new)
        return was == "old"

    def clean(self, out: Path) -> None:
        """Remove what is left, and hold the output against what it was."""
        before = read(out)
        with self.command("clean", str(out.parent), "--yes", "--old") as cleaning:
            _, said = cleaning.communicate(timeout=60)
        expect(cleaning.returncode == 0, said.decode())
        expect(read(out) == before, "cleaning changed the output")
        expect({path.name for path in out.parent.iterdir()} <= {"out"}, "cleaning left something")


def expect(held: bool, says: str) -> None:
    """Raise `AssertionError` unless something held; `assert` may be switched off."""
    if not held:
        raise AssertionError(says)


def write_source(folder: Path) -> Path:
    """Write a sharded checkpoint of random numbers: zeros would look like blocks that were reserved and never written."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(7)
    weights: dict[str, str] = {}
    for layer in range(LAYERS):
        name = f"model-{layer + 1:05d}-of-{LAYERS:05d}.safetensors"
        header, data = {}, b""
        for number, shape in enumerate(SHAPES):
            tensor = random.standard_normal(shape, np.float32).tobytes()
            header[f"layers.{layer}.{number}.weight"] = {
                "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(tensor)],
            }  # fmt: skip
            data += tensor
        text = json.dumps(header).encode()
        (folder / name).write_bytes(len(text).to_bytes(8, "little") + text + data)
        weights |= dict.fromkeys(header, name)
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weights})
    write_config(folder)
    return folder


@contextmanager
def bench(base: Path | None = None) -> Iterator[Bench]:
    """A bench in a folder of its own, in memory unless a `base` says otherwise, which is removed afterwards."""
    if base is None and os.access(MEMORY, os.W_OK):
        base = MEMORY
    folder = Path(tempfile.mkdtemp(prefix="shardscope-campaign-", dir=base))
    driver = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.convert.fault_driver"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"},
    )  # fmt: skip
    try:
        yield Bench(folder, driver)
    finally:
        driver.communicate()
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["OLD", "OPTIONS", "Bench", "Ended", "bench", "expect", "write_source"]

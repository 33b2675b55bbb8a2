"""The product's worker with the product's decoder: contained, it says what it says in this process."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from shardscope.engine.isolation.containment import Containment
from shardscope.engine.isolation.frames import encode
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.parse.pickled import read_pickles

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
DECODER = ("pickle_stream", "pickled")
PARENTS_OWN = {"tree", "outline"}
"""Read facts on this side; the worker has no use for them."""


def streams() -> dict[str, bytes]:
    """The pickles of the fixtures: what torch.save put into zips, and what stands alone."""
    found = {}
    for path in sorted(path for path in FIXTURES.rglob("checkpoint/**/*") if path.is_file()):
        name = str(path.relative_to(FIXTURES))
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.namelist():
                    if entry.endswith("/data.pkl"):
                        with contextlib.suppress(zipfile.BadZipFile):  # damaged on purpose
                            found[f"{name}:{entry}"] = archive.read(entry)
        elif path.name == ".metadata":
            found[name] = path.read_bytes()
    return found


STREAMS = streams()


def test_a_contained_reading_is_the_reading() -> None:
    limits = DecodeLimits()
    assert len(STREAMS) > 20
    with Containment(Intent("inspect", "command line"), limits) as worker:
        for name, data in STREAMS.items():
            assert encode(worker.read(data)) == encode(read_pickles(data, limits)), name


def test_damaged_streams_give_the_same_faults_and_lose_no_worker() -> None:
    limits = DecodeLimits()
    with Containment(Intent("inspect", "command line"), limits) as worker:
        worker.read(pickle.dumps(None))
        process, _ = worker._cell.worker()
        for name, data in list(STREAMS.items())[::7]:
            for end in range(1, len(data), len(data) // 5 + 1):
                with pytest.raises(Fault) as here:
                    read_pickles(data[:end], limits)
                with pytest.raises(Fault) as there:
                    worker.read(data[:end])
                assert there.value.finding == here.value.finding, name
        assert worker._cell.worker()[0] is process


def test_the_decoder_is_whole_before_the_worker_locks_itself_in() -> None:
    """A module that is imported when it is needed first could not be opened any more."""
    code = (
        "import json, sys\n"
        "from shardscope.engine.isolation.worker import loaded\n"
        "loaded()\n"
        "before = set(sys.modules)\n"
        "from shardscope.engine.parse.pickled import read_pickles\n"
        "from shardscope.engine.model.limits import DecodeLimits\n"
        "for data in json.loads(sys.stdin.read()):\n"
        "    read_pickles(bytes.fromhex(data), DecodeLimits())\n"
        "print(json.dumps([sorted(before), sorted(set(sys.modules) - before)]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([data.hex() for data in STREAMS.values()]),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    before, late = json.loads(ran.stdout)
    parsers = ROOT / "engine" / "shardscope" / "engine" / "parse"
    modules = {
        f"shardscope.engine.parse.{folder}.{path.stem}"
        for folder in DECODER
        for path in (parsers / folder).glob("*.py")
        if path.stem != "__init__" and path.stem not in PARENTS_OWN
    }

    assert late == []
    assert modules <= set(before)


# R031 R032
def test_nothing_of_a_pickle_runs_in_the_worker(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    bomb = f"cos\nmkdir\n(S'{canary}'\ntR.".encode()
    with Containment(Intent("inspect", "command line")) as worker:
        pickled = worker.read(bomb)

    assert [(use.module, use.name, use.use, use.known) for use in pickled.references] == [
        ("os", "mkdir", "called", False)
    ]
    assert not canary.exists()
    pickle.loads(bomb)
    assert canary.is_dir()


def test_a_large_stream_comes_back_whole() -> None:
    names = [f"model.layers.{number}.weight" for number in range(100_000)]
    data = pickle.dumps(dict.fromkeys(names, 1.5), 2)
    with Containment(Intent("inspect", "command line")) as worker:
        pickled = worker.read(data)

    assert len(pickled.nodes) > len(names)


def test_the_worker_is_no_door_into_the_product() -> None:
    """Started by somebody else, it serves nobody: it ends with its pipe."""
    code = "from shardscope.engine.isolation.worker import main; main(1)"
    ran = subprocess.run(
        [sys.executable, "-c", code], input=b"", capture_output=True, check=False, timeout=60, cwd=os.sep
    )

    assert (ran.returncode, ran.stdout) == (0, b"")

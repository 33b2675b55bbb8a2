"""A real Dask cluster of worker processes: the same bytes as one process makes, also when a worker is killed in the middle.

`python tests/producers/test_convert_dask.py [MEGABYTES [MEGABYTES OF A FILE]]` prints the throughput of cluster and single process side by
side.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardscope.engine import materialize, prepare
from shardscope.engine.converting.cluster import DaskCluster
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.manifest import RUN_NAME
from shardscope.engine.model.plan import PlanOptions

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

OPTIONS = PlanOptions(max_shard_bytes=32 << 20, workers=1, dtype="BF16")
TENSOR = 4 << 20
WORKERS = 2
RUN = "import sys; from shardscope.app.main import main; sys.exit(main(sys.argv[1:]))"


def write_source(folder: Path, megabytes: int) -> Path:
    """Write so many megabytes of fp32, 32 MiB in each file."""
    folder.mkdir(parents=True)
    block = (np.random.default_rng(3).standard_normal(TENSOR // 4) * 0.02).astype("<f4")
    files = max(1, megabytes // 32)
    for number in range(files):
        entries: dict[str, Any] = {
            f"model.layers.{8 * number + n}.weight": {
                "dtype": "F32", "shape": [1024, 1024], "data_offsets": [n * TENSOR, (n + 1) * TENSOR],
            }
            for n in range(8)
        }  # fmt: skip
        text = json.dumps(entries).encode()
        text += b" " * (-len(text) % 8)
        with (folder / f"model-{number + 1:05d}-of-{files:05d}.safetensors").open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for n in range(8):
                file.write((block * np.float32(1 + number + n / 8)).data)
    return folder


def convert(source: Path, out: Path, options: PlanOptions = OPTIONS, **more: Any) -> Converted:
    return materialize(source, out, prepare(source, options), confirm=lambda _: True, **more)


def read(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.name != RUN_NAME}


@contextmanager
def cluster(**options: Any) -> Iterator[Any]:
    """Worker processes with one thread each, and a scheduler on this machine."""
    with distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, **options
    ) as made:
        yield made


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="shardscope-dask-", dir=base))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def source(room: Path) -> Path:
    return write_source(room / "source", 384)


@pytest.fixture(scope="module")
def truth(room: Path, source: Path) -> dict[str, bytes]:
    convert(source, room / "truth")
    found = read(room / "truth")
    shutil.rmtree(room / "truth")
    return found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster() as made:
        yield made.scheduler_address


def test_a_cluster_makes_the_same_bytes(
    room: Path, source: Path, truth: dict[str, bytes], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with DaskCluster(address, insecure=True) as workers:
        done = convert(source, room / "out", executor=workers)

    assert read(room / "out") == truth
    assert done.run.workers_peak_rss_bytes
    assert not [path for path in room.iterdir() if "staging" in path.name]
    shutil.rmtree(room / "out")
    with capsys.disabled():
        seconds = done.run.seconds_by_stage["copy"]
        rate = done.run.staged_bytes / seconds / 1e6
        print(
            f"\n{WORKERS} workers: {rate:,.0f} MB/s of output, {done.run.workers_peak_rss_bytes >> 20} MiB each"
        )


def busy_worker(pids: list[int]) -> int | None:
    """Return a process that has an attempt open."""
    for pid in pids:
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                file = os.readlink(f"/proc/{pid}/fd/{number}")
                if "/attempts/" in file and "meeting" not in file:
                    return pid
        except OSError:
            continue
    return None


def test_a_worker_that_is_killed_in_the_middle_costs_its_unfinished_tasks(
    room: Path, source: Path, truth: dict[str, bytes], address: str
) -> None:
    killed: list[int] = []
    over = threading.Event()

    def kill(pids: list[int]) -> None:
        while not over.wait(0.002):
            pid = busy_worker(pids)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return

    with DaskCluster(address, insecure=True) as workers:
        pids = list(workers.client.run(os.getpid).values())
        killer = threading.Thread(target=kill, args=(pids,))
        killer.start()
        try:
            convert(source, room / "out", executor=workers)
        finally:
            over.set()
            killer.join()
        after = set(workers.client.run(os.getpid).values())

    assert len(killed) == 1
    assert killed[0] not in after
    assert read(room / "out") == truth
    assert not [path for path in room.iterdir() if "staging" in path.name]
    shutil.rmtree(room / "out")


def test_what_the_workers_cannot_see_is_found_before_anything_is_copied(
    room: Path, source: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(room)
    here = Path("/proc/self/cwd")  # another folder in every process
    for path, out, code in (
        (here / "source", room / "out", "cluster.source_elsewhere"),
        (source, here / "out", "cluster.staging_elsewhere"),
    ):
        with DaskCluster(address, insecure=True) as workers, pytest.raises(Fault) as caught:
            convert(path, out, executor=workers)
        assert caught.value.finding.code == code
        assert sorted(path.name for path in room.iterdir()) == ["source"]


def test_nobody_is_reached_without_tls_unless_a_person_says_so(address: str) -> None:
    with pytest.raises(Fault) as caught, DaskCluster(address):
        pass
    assert caught.value.finding.code == "cluster.insecure"


def test_a_scheduler_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardscope.engine.converting.cluster.PATIENCE", 1)
    with pytest.raises(Fault) as caught, DaskCluster("tcp://127.0.0.1:9", insecure=True):
        pass
    assert caught.value.finding.code == "cluster.unreachable"


def test_tls_from_the_command_line(room: Path, source: Path, truth: dict[str, bytes]) -> None:
    certificate, key = room / "cert.pem", room / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=shardscope",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    both = {f"tls_{who}_{what}": str(file) for who in ("client", "scheduler", "worker")
            for what, file in (("cert", certificate), ("key", key))}  # fmt: skip
    security = distributed.Security(tls_ca_file=str(certificate), require_encryption=True, **both)
    with cluster(security=security, protocol="tls://") as made:
        command = [
            sys.executable, "-c", RUN, "convert", str(source), str(room / "out"), "--yes", "--dtype", "bf16",
            "--max-shard-size", "32MiB", "--workers", "1", "--scheduler", made.scheduler_address,
        ]  # fmt: skip
        files = ["--tls-ca", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key)]
        ran = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert read(room / "out") == truth
        shutil.rmtree(room / "out")
        stranger = subprocess.run(command, capture_output=True, text=True, check=False)
        assert stranger.returncode == 2, stranger.stderr
        assert "cluster.tls_files" in stranger.stderr
    assert not (room / "out").exists()
    certificate.unlink()
    key.unlink()


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main(megabytes: int, shard: int, pairs: int = 5) -> None:
    """Print medians of the rate of copying, cluster and single process in turn, in files of `shard` bytes."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="shardscope-dask-", dir=base) as name, cluster() as made:
        room = Path(name)
        source = write_source(room / "source", megabytes)
        local, shared = [], []
        with DaskCluster(made.scheduler_address, insecure=True) as workers:
            for number in range(pairs):
                for found, options, executor in (
                    (local, PlanOptions(max_shard_bytes=shard, workers=WORKERS, dtype="BF16"), None),
                    (shared, PlanOptions(max_shard_bytes=shard, workers=1, dtype="BF16"), workers),
                ):
                    out = room / f"out{number}"
                    done = convert(source, out, options, executor=executor)
                    found.append(done.run.staged_bytes / done.run.seconds_by_stage["copy"] / 1e6)
                    shutil.rmtree(out)
        one, other = statistics.median(local), statistics.median(shared)
        print(
            f"{megabytes} MB of fp32 to bf16 with digests, medians of {pairs}: one process with {WORKERS} threads {one:,.0f} MB/s,"
        )
        print(f"{WORKERS} Dask workers with one thread each {other:,.0f} MB/s of output: {other / one:.2f}x")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 1024,
        int(sys.argv[2]) << 20 if len(sys.argv) > 2 else 128 << 20,
    )

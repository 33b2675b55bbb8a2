"""What is asked of a cluster before anything starts. A stand-in for Dask's client runs its workers' side in this process;
tests/producers/test_convert_dask.py has the real one.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec.structs import replace

from shardscope.app.main import main
from shardscope.engine import materialize, prepare
from shardscope.engine.convert.jobs.meeting import Met, Question, meet
from shardscope.engine.convert.jobs.tasks import versions_here
from shardscope.engine.converting.cluster import DaskCluster, Tls
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.plan import PlanOptions
from tests.checkpoints import write_sharded

ADDRESS = "tcp://192.0.2.1:8786"
Answer = Callable[[Callable[[bytes], bytes], bytes], Any]


def truthful(asked: Callable[[bytes], bytes], data: bytes) -> Any:
    return asked(data)


class Client:
    """As much of `distributed.Client` as is used."""

    answers: ClassVar[list[Answer]] = []
    refuses: Exception | None = None
    seen: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, address: str, **options: Any) -> None:
        self.seen.append({"address": address, **options})
        if self.refuses is not None:
            raise self.refuses

    def nthreads(self) -> dict[str, int]:
        return {f"worker-{number}": 1 for number in range(len(self.answers))}

    def run(
        self,
        function: Callable[[bytes], bytes],
        data: bytes,
        *,
        workers: list[str],
        on_error: str,
        callback_timeout: float,
    ) -> dict[str, Any]:
        assert on_error == "return"
        assert callback_timeout > 0
        return {name: answer(function, data) for name, answer in zip(workers, self.answers, strict=True)}

    def get_executor(self, *, pure: bool) -> Executor:
        assert not pure
        return ThreadPoolExecutor(2)

    def close(self, timeout: float) -> None:
        pass


class Security:
    """As much of `distributed.Security` as is used."""

    def __init__(self, *, require_encryption: bool, **files: str) -> None:
        assert require_encryption
        self.files = files

    def get_connection_args(self, role: str) -> dict[str, Any]:
        assert role == "client"
        for file in self.files.values():
            os.close(os.open(file, os.O_RDONLY))
        return {"ssl_context": self.files or None}


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    module = ModuleType("distributed")
    module.Client, module.Security = Client, Security  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "distributed", module)
    monkeypatch.setattr(Client, "answers", [truthful, truthful])
    monkeypatch.setattr(Client, "refuses", None)
    monkeypatch.setattr(Client, "seen", [])
    return Client


def convert(tmp_path: Path, **options: Any) -> dict[str, bytes]:
    source = tmp_path / "source"
    if not source.exists():
        write_sharded(source)
    with DaskCluster(ADDRESS, insecure=True, **options) as workers:
        ready = prepare(source, PlanOptions(max_shard_bytes=200))
        materialize(source, tmp_path / "out", ready, confirm=lambda _: True, executor=workers)
    return {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}


def refused(tmp_path: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    with pytest.raises(Fault) as caught:
        convert(tmp_path, **options)
    assert not [path.name for path in tmp_path.iterdir() if path.name != "source"]
    return caught.value.finding.code, caught.value.finding.params


def test_workers_that_see_everything_may_work(tmp_path: Path, dask: type[Client]) -> None:
    assert any(name.startswith("model-0000") for name in convert(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def another_version(asked: Callable[[bytes], bytes], data: bytes) -> bytes:
    met = msgspec.msgpack.decode(asked(data), type=Met)
    return msgspec.msgpack.encode(replace(met, versions=replace(versions_here(), numpy="1.0\x1b[31m")))


def without_shardscope(_asked: Callable[[bytes], bytes], _data: bytes) -> Exception:
    return ModuleNotFoundError("No module named 'shardscope'")


def no_answer(_asked: Callable[[bytes], bytes], _data: bytes) -> Exception:
    return OSError("Timed out during handshake")


def changed_question(change: Callable[[Question], Question]) -> Answer:
    def answer(asked: Callable[[bytes], bytes], data: bytes) -> bytes:
        return asked(msgspec.msgpack.encode(change(msgspec.msgpack.decode(data, type=Question))))

    return answer


def other_disk(question: Question) -> Question:
    """A folder of the same name on another disk."""
    return replace(question, area=replace(question.area, inode=question.area.inode + 1))


def no_mount(question: Question) -> Question:
    return replace(question, area=replace(question.area, path=question.area.path + b"-not"))


def other_source(question: Question) -> Question:
    return replace(question, source=replace(question.source, inode=question.source.inode + 1))


def no_source(question: Question) -> Question:
    return replace(question, source=replace(question.source, path=question.source.path + b"-not"))


def old_cache(asked: Callable[[bytes], bytes], data: bytes) -> bytes:
    """A worker that reads something else under the name, as from a cache that shows old things."""
    question = msgspec.msgpack.decode(data, type=Question)
    note = Path(os.fsdecode(question.area.path)) / "attempts" / question.note
    before = note.read_bytes()
    note.write_bytes(b"something else")
    found = asked(data)
    note.write_bytes(before)
    return found


def writes_elsewhere(asked: Callable[[bytes], bytes], data: bytes) -> bytes:
    """A worker whose file never arrives here."""
    question = msgspec.msgpack.decode(data, type=Question)
    found = asked(data)
    met = msgspec.msgpack.decode(found, type=Met)
    (Path(os.fsdecode(question.area.path)) / "attempts" / met.note).unlink()
    return found


def climbs(asked: Callable[[bytes], bytes], data: bytes) -> bytes:
    met = msgspec.msgpack.decode(asked(data), type=Met)
    return msgspec.msgpack.encode(replace(met, note="../stop"))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (another_version, "cluster.versions"),
        (without_shardscope, "cluster.versions"),
        (no_answer, "cluster.unreachable"),
        (changed_question(other_disk), "cluster.staging_elsewhere"),
        (changed_question(no_mount), "cluster.staging_elsewhere"),
        (changed_question(other_source), "cluster.source_elsewhere"),
        (changed_question(no_source), "cluster.source_elsewhere"),
        (old_cache, "cluster.staging_elsewhere"),
        (writes_elsewhere, "cluster.staging_elsewhere"),
        (climbs, "cluster.staging_elsewhere"),
    ],
)
def test_one_worker_that_does_not_see_it_all_refuses_the_conversion(
    tmp_path: Path, dask: type[Client], answer: Answer, code: str
) -> None:
    dask.answers = [truthful, answer]
    assert refused(tmp_path)[0] == code


def test_a_cluster_without_workers_is_refused(tmp_path: Path, dask: type[Client]) -> None:
    dask.answers = []
    assert refused(tmp_path)[0] == "cluster.no_workers"


def test_what_dask_says_is_passed_on_in_one_line(tmp_path: Path, dask: type[Client]) -> None:
    dask.refuses = OSError("Timed out\ntrying to connect to " + "x" * 500)
    code, params = refused(tmp_path)
    assert code == "cluster.unreachable"
    assert params["reason"].startswith("OSError: Timed out trying")
    assert len(params["reason"]) <= 160


def test_an_address_without_tls_needs_a_word_of_a_person(dask: type[Client]) -> None:
    for address in (ADDRESS, "192.0.2.1:8786", "ws://192.0.2.1:1", "inproc://x"):
        with pytest.raises(Fault) as caught, DaskCluster(address):
            pass
        assert caught.value.finding.code == "cluster.insecure"
    assert dask.seen == []


def test_tls_is_asked_for_with_the_files_that_were_named(tmp_path: Path, dask: type[Client]) -> None:
    files = [str(tmp_path / name) for name in ("ca", "cert", "key")]
    with pytest.raises(Fault) as caught, DaskCluster("tls://192.0.2.1:8786", tls=Tls(*files)):
        pass
    assert caught.value.finding.code == "cluster.tls_files"
    with pytest.raises(Fault) as caught, DaskCluster("tls://192.0.2.1:8786"):
        pass
    assert caught.value.finding.code == "cluster.tls_files"
    assert dask.seen == []
    for file in files:
        Path(file).touch()
    with DaskCluster("tls://192.0.2.1:8786", tls=Tls(*files)):
        pass
    (seen,) = dask.seen
    assert seen["security"].files == dict(
        zip(("tls_ca_file", "tls_client_cert", "tls_client_key"), files, strict=True)
    )


def test_the_answer_names_no_file_of_the_machine(tmp_path: Path) -> None:
    assert b"/" not in meet(
        msgspec.msgpack.encode(
            {"source": {"path": b"/nowhere", "hf_cache": False, "device": 0, "inode": 0, "entries": []},
             "area": {"path": b"/nowhere", "inode": 0}, "note": "x"}
        )
    )  # fmt: skip


def test_the_command_line_needs_a_scheduler_for_its_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_sharded(tmp_path / "source")
    assert main(["convert", str(source), str(tmp_path / "out"), "--insecure-cluster"]) == 2
    assert "--scheduler" in capsys.readouterr().err
    assert main(["convert", str(source), str(tmp_path / "out"), "--scheduler", ADDRESS]) == 2
    assert "cluster.insecure" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif("distributed" in sys.modules, reason="Dask is installed and loaded")
def test_without_dask_the_extra_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    source = write_sharded(tmp_path / "source")
    command = ["convert", str(source), str(tmp_path / "out"), "--scheduler", ADDRESS, "--insecure-cluster"]
    assert main(command) == 2
    assert "shardscope[dask]" in capsys.readouterr().err


def test_the_command_line_hands_its_workers_over(
    tmp_path: Path, dask: type[Client], capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_sharded(tmp_path / "source")
    command = [
        "convert",
        str(source),
        str(tmp_path / "out"),
        "--yes",
        "--scheduler",
        ADDRESS,
        "--insecure-cluster",
    ]
    assert main(command) == 0, capsys.readouterr().err
    assert "workers_peak_rss_bytes" in (tmp_path / "out" / "shardscope-run.json").read_text()
    (seen,) = dask.seen
    assert (seen["address"], seen["set_as_default"]) == (ADDRESS, False)

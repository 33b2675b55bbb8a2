"""What becomes of a worker that ends, hangs, floods or lies: a fault about one pickle, and the next one is read."""

import os
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # no stubs
import pytest

from shardscope.engine.isolation import containment, process
from shardscope.engine.isolation.containment import Containment, preflight
from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.escalation import Facility, Intent
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.progress import Cancelled
from tests.isolation.conftest import Contain, text, worker_pid

NONE = b"\x80\x02N."


def refused(worker: Containment, data: bytes) -> Fault:
    """Read what cannot be read, and show that the next bytes still can. Every such fault makes a sentence."""
    with pytest.raises(Fault) as caught:
        worker.read(data)
    assert text(worker.read(b"next")) == "next"
    assert "a/file" in blocker(caught.value.finding, "a/file").message
    return caught.value


def test_pickles_are_read_one_after_the_other_by_the_same_worker(contain: Contain) -> None:
    with contain() as worker:
        assert worker.profile is None
        assert text(worker.read(b"one")) == "one"
        first = worker_pid(worker)
        assert len(worker.read(b"two", 2).roots) == 2
        assert text(worker.read(memoryview(bytearray(b"three")))) == "three"
        assert worker_pid(worker) == first


def test_the_product_reads_a_pickle() -> None:
    with Containment(Intent("inspect", "command line")) as worker:
        pickled = worker.read(NONE + NONE, 2)

    assert (pickled.ends, pickled.protocol) == ([4, 8], 2)


@pytest.mark.parametrize(
    ("data", "how"),
    [(b"end:7", "exit status 7"), (b"end:0", "exit status 0"), (b"segfault", "SIGSEGV")],
)
def test_a_worker_that_ends_costs_one_pickle(contain: Contain, data: bytes, how: str) -> None:
    with contain() as worker:
        assert text(worker.read(b"before")) == "before"
        fault = refused(worker, data)

    assert fault.finding.code == "isolation.crashed"
    assert fault.finding.params == {"how": how}


def test_a_worker_that_aborts_costs_one_pickle(contain: Contain) -> None:
    with contain() as worker:
        assert refused(worker, b"abort").finding.code == "isolation.crashed"


def test_a_worker_that_is_killed_costs_one_pickle(contain: Contain) -> None:
    with contain() as worker:
        worker.read(b"x")
        threading.Timer(0.2, os.kill, (worker_pid(worker), signal.SIGKILL)).start()
        fault = refused(worker, b"loop")

    assert fault.finding.code == "isolation.crashed"
    assert fault.finding.params == {"how": "SIGKILL"}


def test_a_worker_that_ended_while_idle_costs_nothing(contain: Contain) -> None:
    with contain() as worker:
        worker.read(b"x")
        psutil.Process(pid := worker_pid(worker)).kill()
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert text(worker.read(b"y")) == "y"


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"fail:x", "LookupError"), (b"deep", "RecursionError"), (b"surrogate", "UnicodeEncodeError"),
     (b"import", "ModuleNotFoundError")],
)  # fmt: skip
def test_an_error_in_the_decoder_costs_one_pickle(contain: Contain, data: bytes, kind: str) -> None:
    with contain() as worker:
        fault = refused(worker, data)

    assert fault.finding.code == "isolation.failed"
    if data != b"import":  # a module that is not there, or one that cannot be opened
        assert fault.finding.params == {"kind": kind}


def test_a_fault_of_the_decoder_arrives_as_it_is(contain: Contain) -> None:
    with contain() as worker:
        worker.read(b"x")
        before = worker_pid(worker)
        fault = refused(worker, b"fault:limit.pickle_opcodes")
        assert worker_pid(worker) == before

    assert fault.finding.code == "limit.pickle_opcodes"
    assert fault.finding.params == {"limit": 1, "found": 2}


@pytest.mark.parametrize("data", [b"foreign fault", b"incomplete fault", b"fault:no.such.code"])
def test_a_fault_that_no_decoder_has_is_a_bad_reply(contain: Contain, data: bytes) -> None:
    with contain() as worker:
        assert refused(worker, data).finding.code == "isolation.bad_reply"


def test_a_worker_that_takes_too_long_is_ended(contain: Contain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containment, "_GRACE_SECONDS", 0)
    with contain(pickle_seconds=1) as worker:
        began = time.monotonic()
        fault = refused(worker, b"loop")

    assert fault.finding.code == "limit.pickle_seconds"
    assert 1 <= time.monotonic() - began < 10


def test_processor_time_is_renewed_before_it_runs_out(contain: Contain) -> None:
    with contain() as worker:
        worker.read(b"x")
        first = worker_pid(worker)
        worker._cell._seconds_left = 1.0
        assert text(worker.read(b"y")) == "y"
        assert worker_pid(worker) != first


def test_a_reply_beyond_the_limit_is_refused(contain: Contain) -> None:
    with contain(reply_bytes=100_000) as worker:
        assert len(text(worker.read(b"long:90000"))) == 90_000
        fault = refused(worker, b"long:200000")

    assert fault.finding.code == "limit.reply_bytes"
    assert fault.finding.params["limit"] == 100_000


def test_more_bytes_than_the_limit_never_leave(contain: Contain) -> None:
    with contain(pickle_bytes=10) as worker:
        with pytest.raises(Fault) as caught:
            worker.read(b"x" * 11)
        assert worker.profile is None

    assert caught.value.finding.code == "limit.pickle_bytes"


def test_bytes_beyond_the_pipes_arrive(contain: Contain) -> None:
    with contain() as worker:
        assert text(worker.read(b"large:" + bytes(20 << 20))) == "large"


@pytest.mark.parametrize(
    "data",
    [
        b"announce",
        b"flood",
        b"stale",
        b"noise:",
        b"noise:c0",
        b"noise:ff",
        b"noise:" + b"91" * 5000,  # arrays in arrays
        b"noise:" + b"81a1" * 1000,
        b"noise:83a474797065a472656164a56e6f6e6365a0a77069636b6c6564c0",
        b"noise:82a474797065a86f627365727665a1",
        b"finding:isolation.unavailable",
        b"finding:no.such.code",
    ],
)
def test_an_answer_that_does_not_hold_is_refused(contain: Contain, data: bytes) -> None:
    with contain("rogue") as worker:
        fault = refused(worker, data)

    assert fault.finding.code == "isolation.bad_reply"


def test_an_answer_that_refers_to_nothing_is_refused(contain: Contain) -> None:
    with contain() as worker:
        assert refused(worker, b"nowhere").finding.code == "isolation.bad_reply"


def test_half_an_answer_is_none(contain: Contain) -> None:
    with contain("rogue") as worker:
        assert refused(worker, b"half").finding.code == "isolation.crashed"


def test_an_answer_byte_by_byte_is_one(contain: Contain) -> None:
    with contain("rogue") as worker:
        assert text(worker.read(b"drip:slow")) == "slow"


def test_a_second_answer_is_taken_for_no_other_question(contain: Contain) -> None:
    with contain("rogue") as worker:
        assert text(worker.read(b"twice:first")) == "first"
        assert text(worker.read(b"x:second")) == "second"


def test_an_answer_before_the_question_is_refused(contain: Contain) -> None:
    with contain("early") as worker, pytest.raises(Fault) as caught:
        worker.read(bytes(64 << 20))

    assert caught.value.finding.code == "isolation.bad_reply"


@pytest.mark.parametrize("data", [b"loop", bytes(8 << 20)])
def test_work_stops_when_it_is_cancelled(contain: Contain, data: bytes) -> None:
    cancel, before = threading.Event(), psutil.Process().children()
    worker = contain("silent" if data != b"loop" else "main", cancel=cancel)
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    with worker, pytest.raises(Cancelled):
        worker.read(data)

    assert time.monotonic() - began < 5
    assert psutil.Process().children() == before


def test_an_interrupt_ends_a_worker_at_once(contain: Contain, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(cancel: object) -> None:
        if time.monotonic() - began > 0.5:
            raise KeyboardInterrupt

    with contain() as worker:
        worker.read(b"x")
        pid = worker_pid(worker)
        began = time.monotonic()
        monkeypatch.setattr("shardscope.engine.model.progress.check", interrupt)
        with pytest.raises(KeyboardInterrupt):
            worker.read(b"loop")
        assert not psutil.pid_exists(pid)

    assert time.monotonic() - began < 1.9


def test_nothing_is_left_after_many_runs(
    contain: Contain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    me = psutil.Process()
    with contain() as worker:
        worker.read(b"x")
    before = (me.num_fds(), threading.active_count(), me.num_threads())
    children = me.children()  # of other tests: multiprocessing keeps a process of its own
    for number in range(50):
        with contain() as worker:
            worker.read(b"x")
            if number % 5 == 0:
                refused(worker, b"end:1")

    assert (me.num_fds(), threading.active_count(), me.num_threads()) == before
    assert [child for child in me.children() if child not in children] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", ["", "/nonexistent/python", "/bin/true", "/bin/cat", "/dev/null"])
def test_without_an_interpreter_decoding_is_refused(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = psutil.Process().num_fds()
    monkeypatch.setattr(sys, "executable", program)
    assert lacking() is Facility.INTERPRETER
    assert psutil.Process().num_fds() == before


def test_without_descriptors_to_spare_decoding_is_refused() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = psutil.Process().num_fds()
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    kept = [os.dup(0) for _ in range(highest + 1 - before)]  # no number is free below the limit
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 3, hard))
        with pytest.raises(Fault) as caught:
            preflight()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in kept:
            os.close(descriptor)

    assert caught.value.finding.code == "isolation.unavailable"
    assert psutil.Process().num_fds() == before


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert lacking() is Facility.LINUX


def test_without_an_identity_of_the_machine_decoding_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardscope.engine.isolation.escalation._IDENTITIES", ("/nonexistent",))
    assert lacking() is Facility.HOST


@pytest.mark.parametrize(
    ("main", "facility"), [("without_packages", Facility.PACKAGES), ("without_library", Facility.LIBRARY)]
)
def test_without_what_locks_it_in_decoding_is_refused(
    contain: Contain, main: str, facility: Facility
) -> None:
    contain(main)
    assert lacking() is facility


def lacking() -> Facility:
    with pytest.raises(Fault) as caught:
        preflight()
    assert caught.value.finding.code == "isolation.unavailable"
    assert "Decoding is refused" in blocker(caught.value.finding, "x").message
    return Facility(str(caught.value.finding.params["facility"]))


def test_a_preflight_leaves_nothing(contain: Contain) -> None:
    before, children = psutil.Process().num_fds(), psutil.Process().children()
    assert preflight(DecodeLimits(worker_bytes=1 << 30)).ceilings.memory_bytes == 1 << 30
    assert psutil.Process().num_fds() == before
    assert psutil.Process().children() == children


def test_the_working_folder_gives_the_worker_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("msgspec.py", "pyseccomp.py", "landlock.py", "os.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LD_PRELOAD", "/nonexistent.so")

    assert str(tmp_path) not in process.command(1)
    assert preflight().probes.allowed() is None


def test_a_working_folder_that_is_gone_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert preflight().probes.allowed() is None

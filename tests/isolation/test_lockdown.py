"""What a worker can still do once it is locked in: nothing but read, write and compute."""

import os
import signal
import threading
import time

import pytest

from shardscope.engine.isolation import frames
from shardscope.engine.isolation.containment import preflight
from shardscope.engine.isolation.escalation import LEDGER, host, runtime
from shardscope.engine.isolation.process import Ended, Process
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Circumstances, Facility
from tests.isolation.conftest import Contain, text, worker_pid
from tests.isolation.impostor import ATTEMPTS

USERS = ["main", "nobody"]
"""Root stays root in the first where the tests run as root: limits on processes do not bind it."""


# R069
@pytest.mark.parametrize("user", USERS)
def test_whatever_a_decoder_tries_is_denied(contain: Contain, user: str) -> None:
    with contain(user) as worker:
        told = {name: text(worker.read(f"try:{name}".encode())) for name in ATTEMPTS}
        profile = worker.profile

    assert {name: outcome for name, outcome in told.items() if outcome != "EPERM"} == {}
    assert profile is not None
    assert profile.root == (user == "main" and os.geteuid() == 0)


@pytest.mark.parametrize("user", USERS)
def test_every_other_system_call_is_denied(contain: Contain, user: str) -> None:
    with contain(user) as worker:
        assert text(worker.read(b"every")) == ""


def test_the_attempts_succeed_or_reach_the_kernel_without_the_filter() -> None:
    """The tests above could not fail otherwise: outside, none of these is met with EPERM."""
    from tests.isolation.impostor import outcome

    harmless = (
        "open",
        "look at a file",
        "list a folder",
        "memory file",
        "socket",
        "pipe",
        "executable memory",
    )
    assert {name: outcome(ATTEMPTS[name]) for name in harmless} == dict.fromkeys(harmless, "done")


def test_other_architectures_numbers_end_the_worker(contain: Contain) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("x32 is a dialect of x86_64")
    with contain() as worker, pytest.raises(Fault) as caught:
        worker.read(b"x32")

    assert caught.value.finding.code == "isolation.crashed"
    assert caught.value.finding.params == {"how": "SIGSYS"}


# R069
def test_the_profile_says_what_was_given_up(contain: Contain) -> None:
    with contain(worker_bytes=1 << 30) as worker:
        worker.read(b"x")
        profile = worker.profile

    assert profile is not None
    assert profile == preflight(worker.limits)
    assert profile.no_new_privs
    assert not profile.dumpable
    assert profile.variables == 0
    assert profile.probes.allowed() is None
    assert not {"openat", "socket", "clone", "execve", "kill", "recvmsg"} & set(profile.system_calls)
    ceilings = profile.ceilings
    assert ceilings.memory_bytes == 1 << 30
    assert (ceilings.file_bytes, ceilings.processes, ceilings.core_bytes, ceilings.descriptors) == (
        0,
        0,
        0,
        3,
    )


def test_the_kernel_agrees(contain: Contain) -> None:
    with contain() as worker:
        worker.read(b"x")
        pid = worker_pid(worker)
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines())
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            limits = {line[:26].strip(): line[26:].split()[:2] for line in file}

        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        assert status["Threads"] == "1"
        assert limits["Max processes"] == ["0", "0"]
        assert limits["Max file size"] == ["0", "0"]
        assert limits["Max open files"] == ["3", "3"]
        assert limits["Max address space"] == [str(worker.limits.worker_bytes)] * 2


def test_a_worker_has_three_descriptors_no_environment_and_no_folder(contain: Contain) -> None:
    with contain() as worker:
        said = text(worker.read(b"surroundings"))
        pid = worker_pid(worker)

        assert said.startswith("{} ['/")
        assert said.endswith("] 1 1")
        if os.geteuid() != 0:
            return  # nobody but root may look into a worker
        with open(f"/proc/{pid}/environ", "rb") as file:
            assert file.read() == b""
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        open_ = {name: os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
        assert set(open_) == {"0", "1", "2"}
        assert open_["0"].startswith("pipe:")
        assert open_["1"].startswith("pipe:")
        assert open_["2"] == "/dev/null"


def test_a_worker_loads_no_network_and_no_unpickler(contain: Contain) -> None:
    with contain() as worker:
        held = set(text(worker.read(b"modules")).split())

    forbidden = {"socket", "ssl", "pickle", "_pickle", "pickletools", "numpy", "textual", "site"}
    assert held & forbidden == set()


def test_memory_beyond_the_limit_is_a_fault(contain: Contain) -> None:
    with contain(worker_bytes=256 << 20) as worker:
        for greed in (b"grow", b"claim"):
            with pytest.raises(Fault) as caught:
                worker.read(greed)
            assert caught.value.finding.code == "limit.worker_bytes"
            assert caught.value.finding.params["limit"] == 256 << 20
        assert text(worker.read(b"still here")) == "still here"


@pytest.mark.parametrize("limit", ["pickle_seconds", "worker_bytes", "reply_bytes", "pickle_bytes"])
@pytest.mark.parametrize("value", [1, (1 << 63) - 1])
def test_limits_at_either_end_end_in_facts_or_in_a_code(contain: Contain, limit: str, value: int) -> None:
    with contain(**{limit: value}) as worker:
        if value == 1 and limit in ("worker_bytes", "reply_bytes"):
            with pytest.raises(Fault) as caught:
                worker.read(b"long:200000000")
            assert caught.value.finding.code in (f"limit.{limit}", "isolation.unavailable")
        else:
            assert text(worker.read(b"x")) == "x"


def test_processor_time_beyond_the_limit_ends_the_worker(contain: Contain) -> None:
    worker = contain()
    child = Process(frames.Start("inspect", worker.limits, 1))
    try:
        greeting = child.greeting(None)
        assert isinstance(greeting, frames.Ready)
        here = Circumstances("inspect", host(), runtime(), greeting.profile, worker.limits)
        record = LEDGER.issue(b"loop", 1, here)
        with pytest.raises(Ended) as caught:
            child.ask(frames.Request(record), b"loop", 1 << 20, 30, None)
    finally:
        child.kill()

    assert caught.value.how in ("SIGXCPU", "SIGKILL")


# R069
@pytest.mark.parametrize(
    ("main", "facility"),
    [
        ("unfiltered", Facility.OPEN),
        ("lying", Facility.SEEN),
        ("forbidden", Facility.SECCOMP),
        ("roomy", Facility.CEILINGS),
        ("visible", Facility.ALONE),
        ("talkative", Facility.SECCOMP),
    ],
)
def test_a_worker_that_is_not_locked_in_is_refused(contain: Contain, main: str, facility: Facility) -> None:
    with contain(main) as worker:
        for _ in range(2):
            with pytest.raises(Fault) as caught:
                worker.read(b"x")
            assert caught.value.finding.code == "isolation.unavailable"
            assert caught.value.finding.params == {"facility": facility.value}
        assert worker.profile is None


def test_without_landlock_the_filter_still_denies_everything(contain: Contain) -> None:
    with contain("without_landlock") as worker:
        assert text(worker.read(b"try:open")) == "EPERM"
        assert worker.profile is not None
        assert worker.profile.landlock is None


def test_landlock_and_the_limits_deny_by_themselves(
    contain: Contain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other locks hold where the filter is not there: without them these would succeed."""
    if preflight().landlock is None:
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setattr("shardscope.engine.isolation.containment.confirmed", lambda pid: None)
    with contain("lying") as worker:
        assert text(worker.read(b"try:make a folder")) == "EACCES"
        assert text(worker.read(b"try:pipe")) == "EMFILE"


def test_a_worker_ends_with_its_parent(contain: Contain) -> None:
    seen: list[int] = []

    def start() -> None:
        worker = contain()
        worker.read(b"x")
        seen.append(worker_pid(worker))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        pid, status = os.waitpid(seen[0], os.WNOHANG)
        if pid:
            break
        time.sleep(0.01)

    assert os.WTERMSIG(status) == signal.SIGKILL

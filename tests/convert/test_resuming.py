"""Going on with an earlier run: what it finished is read again, what it did not is made, and nothing else is believed."""

import fcntl
import hashlib
import json
import os
import select
import shlex
import shutil
import signal
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from shardscope.engine.convert.disk.journal import read_journal
from shardscope.engine.convert.disk.names import JOURNAL, MARKER
from shardscope.engine.convert.disk.owner import seal_of
from shardscope.engine.convert.stage.promotion import promote
from shardscope.engine.convert.stage.resuming import holds, leaves_good, plan_digest
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.converting.preparing import prepare
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.manifest import RUN_NAME
from shardscope.engine.model.plan import PlanOptions
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.staging import FileRecord, Marker
from tests.app.terminal import Command, process, run
from tests.campaigns.bench import OPTIONS, Bench, bench
from tests.checkpoints import write_sharded
from tests.convert.targets import ALLOWED, OLD, fault, hidden, make, needs_root, read


@pytest.fixture(scope="module")
def work() -> Iterator[Bench]:
    with bench() as made:
        yield made


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def killed(work: Bench, name: str, step: str = "verify") -> Path:
    """Return a target beside which a run was killed at a step."""
    out = work.target(name)
    assert work.convert(out, step=step, signal=signal.SIGKILL).killed
    return out


def folder_of(out: Path) -> Path:
    (found,) = out.parent.glob(".out.shardscope-staging-*")
    return found


def words(work: Bench, out: Path, *options: str) -> tuple[str, ...]:
    return "convert", str(work.source), str(out), "--yes", *OPTIONS, *options


def test_what_was_finished_is_not_made_again(work: Bench, command: Command) -> None:
    out = killed(work, "finished")
    said = command(*words(work, out, "--resume"))
    record = json.loads((out / RUN_NAME).read_text())

    assert said.code == 0, said
    assert work.made(out) == work.new
    assert record["resumed_bytes"] == sum(
        len(data) for name, data in work.new.items() if name.endswith(".safetensors")
    )
    assert hidden(out.parent) == []


def test_a_run_without_resume_says_what_it_could_have_gone_on_with(work: Bench, command: Command) -> None:
    out = killed(work, "told")
    said = command(*[word for word in words(work, out) if word != "--quiet"])

    assert said.code == 0
    assert "An earlier run of this plan left " in said.err
    assert "Add --resume to go on" in said.err
    assert folder_of(out).exists()


def test_nothing_to_go_on_with_is_a_beginning(work: Bench, command: Command) -> None:
    out = work.target("fresh")
    said = command(*[word for word in words(work, out, "--resume") if word != "--quiet"])

    assert said.code == 0
    assert "this one began anew" in said.err
    assert work.made(out) == work.new


@pytest.mark.parametrize(
    "options",
    [
        ("--exclude", "layers.0.*"),
        ("--dtype", "keep"),
        ("--max-shard-size", "90KB"),
        ("--no-crc",),
        ("--no-carry",),
        ("--digest", "none"),
    ],
    ids=lambda options: options[0],
)
def test_another_plan_is_refused(work: Bench, command: Command, options: tuple[str, ...]) -> None:
    out = killed(work, "other")
    before = read(folder_of(out))
    said = command(*words(work, out, "--resume", *options))

    assert said.code == ExitCode.OUTPUT
    assert "resume.other_plan" in said.err
    assert read(folder_of(out)) == before


def test_what_changes_no_byte_may_change(work: Bench, command: Command) -> None:
    out = killed(work, "same")
    said = command(*words(work, out, "--resume", "--memory", "64MiB", "--workers", "1", "--verify", "full"))

    assert said.code == 0, said
    assert json.loads((out / RUN_NAME).read_text())["resumed_bytes"] > 0
    written = {name: data for name, data in work.new.items() if name.endswith(".safetensors")}
    assert {name: data for name, data in (work.made(out) or {}).items() if name in written} == written


def test_a_plan_is_known_by_what_it_writes(work: Bench) -> None:
    found = {
        plan_digest(prepare(work.source, options).plan)
        for options in (
            PlanOptions(),
            PlanOptions(workers=7, memory_bytes=1 << 20, verify="headers"),
            PlanOptions(dtype="F16"),
            PlanOptions(exclude=("layers.0.*",)),
        )
    }
    assert len(found) == 3


def test_a_source_that_was_touched_is_another_one(work: Bench, command: Command, tmp_path: Path) -> None:
    source = shutil.copytree(work.source, tmp_path / "source")
    out = work.target("touched")
    assert work.convert(out, source=source, step="verify", signal=signal.SIGKILL).killed
    os.utime(source / "config.json")
    said = command("convert", str(source), str(out), "--yes", *OPTIONS, "--resume")

    assert said.code == ExitCode.OUTPUT
    assert "resume.other_plan" in said.err


def test_without_digests_everything_is_made_again(work: Bench, command: Command) -> None:
    out = work.target("undigested")
    plain = (*OPTIONS, "--digest", "none")
    assert work.convert(out, plain=plain, step="verify", signal=signal.SIGKILL).killed
    said = command("convert", str(work.source), str(out), "--yes", *plain, "--resume")

    assert said.code == 0, said
    assert json.loads((out / RUN_NAME).read_text())["resumed_bytes"] == 0
    assert hidden(out.parent) == []


@needs_root
def test_what_others_made_or_could_have_written_is_not_believed(work: Bench, command: Command) -> None:
    out = killed(work, "foreign")
    folder = folder_of(out)
    folder.chmod(0o770)
    assert "resume.foreign" in command(*words(work, out, "--resume")).err
    folder.chmod(0o700)
    os.chown(folder, 65534, 65534)
    said = command(*words(work, out, "--resume"))
    assert said.code == ExitCode.OUTPUT
    assert "another user made it" in said.err


def test_a_folder_whose_process_still_runs_is_left_alone(work: Bench, command: Command) -> None:
    out = killed(work, "alive")
    path = folder_of(out) / os.fsdecode(MARKER)
    marker = msgspec.json.decode(path.read_bytes(), type=Marker)
    here = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
    owner = msgspec.structs.replace(marker.owner, pid=1, started=int(here))
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(marker, owner=owner)))
    said = command(*words(work, out, "--resume"))

    assert "resume.running" in said.err
    assert folder_of(out).exists()


def test_a_damaged_journal_is_refused(work: Bench, command: Command) -> None:
    out = killed(work, "damaged")
    journal = folder_of(out) / os.fsdecode(JOURNAL)
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([*lines[:2], b"{", *lines[2:]]))
    said = command(*words(work, out, "--resume"))

    assert said.code == ExitCode.OUTPUT
    assert "stage.journal_damaged" in said.err
    assert "shardscope clean" in said.err


@pytest.mark.parametrize(
    "name", ["../../escape", "/etc/passwd", "a/../b", "model-00001-of-00012.safetensors/x"]
)
def test_a_journal_that_names_something_else_leads_nowhere(work: Bench, command: Command, name: str) -> None:
    out = killed(work, "names")
    outside = out.parent / "escape"
    journal = folder_of(out) / os.fsdecode(JOURNAL)
    lines = journal.read_bytes().splitlines()
    journal.write_bytes(
        b"\n".join([*lines, lines[1].replace(json.loads(lines[1])["file"].encode(), name.encode())]) + b"\n"
    )
    outside.write_bytes(b"precious")
    said = command(*words(work, out, "--resume"))

    assert said.code == 0, said
    assert work.made(out) == work.new
    assert outside.read_bytes() == b"precious"


def test_links_in_place_of_files_are_removed_and_not_followed(work: Bench, command: Command) -> None:
    out = killed(work, "links")
    outside = make(out.parent / "precious", OLD)
    files = sorted((folder_of(out) / "output").glob("*.safetensors"))
    good = files[0].read_bytes()
    (out.parent / "copy").write_bytes(good)
    files[0].unlink()
    files[0].symlink_to(out.parent / "copy")  # its bytes would do, and yet it is no file of ours
    data = files[1].read_bytes()
    files[1].unlink()
    (out.parent / "copy2").write_bytes(data)
    os.link(out.parent / "copy2", files[1])
    (folder_of(out) / "output" / "folder").symlink_to(outside)
    (folder_of(out) / "attempts").symlink_to(outside)
    said = command(*words(work, out, "--resume"))

    assert said.code == 0, said
    assert work.made(out) == work.new
    assert read(outside) == OLD
    assert not any(path.is_symlink() for path in out.iterdir())
    assert (out / files[1].name).stat().st_nlink == 1


def test_what_a_failing_run_leaves_depends_on_what_was_asked_for(work: Bench) -> None:
    for options, kept in (((), False), (("--keep-staging",), True), (("--resume",), True)):
        out = work.target("asked", OLD)
        ended = work.convert(out, "--replace", *options, step="verify", call="pwrite", error="EIO")
        assert ended.code == ExitCode.OUTPUT
        assert (hidden(out.parent) != []) == kept
        assert ("To go on: shardscope convert " in ended.said) == kept
        assert read(out) == OLD


def test_the_command_to_go_on_with_is_the_one_that_works(work: Bench) -> None:
    out = work.target("a target; with $words")
    ended = work.convert(out, step="verify", signal=signal.SIGHUP)
    assert ended.code == ExitCode.CANCELLED
    (line,) = [line for line in ended.said.splitlines() if line.startswith("To go on: ")]
    said = run(*shlex.split(line.removeprefix("To go on: "))[1:])

    assert said.code == 0, said
    assert work.made(out) == work.new


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ((signal.SIGINT,), False),
        ((signal.SIGTERM,), False),
        ((signal.SIGHUP,), True),
        ((signal.SIGHUP, signal.SIGHUP), True),
        ((signal.SIGTERM, signal.SIGHUP), True),
        ((signal.SIGHUP, signal.SIGINT), False),
    ],
)
def test_only_a_lost_terminal_keeps_by_itself(
    work: Bench, numbers: tuple[signal.Signals, ...], kept: bool
) -> None:
    out = work.target("signals")
    ended = work.convert(out, step="verify", signals=[int(number) for number in numbers])

    assert ended.code == ExitCode.CANCELLED, ended.said
    assert (hidden(out.parent) != []) == kept
    work.resume(out)


def test_a_terminal_that_goes_away_leaves_what_is_finished(command: Command, tmp_path: Path) -> None:
    """As the kernel does it when an SSH session is lost."""
    source = tmp_path / "source"
    shape = (1024, 4096)
    write_sharded(source, {f"layers.{number}.weight": ("F32", shape) for number in range(8)}, shards=8)
    arguments = (
        "convert",
        str(source),
        str(tmp_path / "out"),
        "--yes",
        "--dtype",
        "bf16",
        "--max-shard-size",
        "17MB",
    )
    ours, theirs = os.openpty()
    with process(
        *arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as running:  # fmt: skip
        os.close(theirs)
        reader = threading.Thread(target=drain, args=(ours, stop := threading.Event()))
        reader.start()
        while sum(path.read_bytes().count(b"\n") for path in tmp_path.glob(".out.*/journal.jsonl")) < 3:
            assert running.poll() is None
            time.sleep(0.002)
        stop.set()
        reader.join()
        os.close(ours)
        assert running.wait(30) == ExitCode.CANCELLED
    assert not (tmp_path / "out").exists()
    assert [name.partition("-staging-")[0] for name in hidden(tmp_path)] == [".out.shardscope"]
    said = command(*arguments, "--resume", "--quiet")

    assert said.code == 0, said
    assert json.loads((tmp_path / "out" / RUN_NAME).read_text())["resumed_bytes"] > 0
    assert command("verify", str(tmp_path / "out"), "--against", str(source)).code == 0


def drain(terminal: int, stop: threading.Event) -> None:
    """Read what is written to a terminal, so that nobody waits for it to be read."""
    while not stop.is_set():
        if select.select([terminal], [], [], 0.01)[0]:
            os.read(terminal, 65536)


def test_a_run_that_had_finished_nothing_leaves_nothing(work: Bench) -> None:
    out = work.target("early")
    ended = work.convert(out, "--keep-staging", step="prove", signal=signal.SIGHUP)

    assert ended.code == ExitCode.CANCELLED
    assert hidden(out.parent) == []


def test_errors_that_speak_of_wrong_bytes_keep_nothing() -> None:
    for code in (
        "verify.value",
        "verify.digest",
        "convert.unsound",
        "convert.copies_differ",
        "torch.record_crc",
        "source.changed",
    ):
        assert not leaves_good(Fault(code))
    for error in (
        Fault("stage.no_space"),
        Fault("source.read_failed"),
        Cancelled(),
        KeyboardInterrupt(),
        OSError(),
    ):
        assert leaves_good(error)


def test_the_folder_in_which_most_is_finished_is_taken(work: Bench) -> None:
    out = killed(work, "two", "journal.append")
    assert work.convert(out, step="verify", signal=signal.SIGKILL).killed
    assert len(list(out.parent.glob(".out.shardscope-staging-*"))) == 2
    work.resume(out)

    assert len(list(out.parent.glob(".out.shardscope-staging-*"))) == 1
    assert json.loads((out / RUN_NAME).read_text())["resumed_bytes"] > 0


def test_a_journal_is_added_to_behind_its_last_whole_line(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED, keep=True, plan="p") as staging:
        staging.write_small("a", b"1")
        staging.write_small("b", b"2")
    journal = tmp_path / staging.file / os.fsdecode(JOURNAL)
    journal.write_bytes(journal.read_bytes()[:-5])
    with Staging(tmp_path / "out", allowed=ALLOWED, keep=True, plan="p", resume=True) as again:
        assert again.file == staging.file
        again.write_small("c", b"3")
        found = read_journal(again.folder)

    assert found is not None
    assert [record.file for record in found[1]] == ["a", "c"]


def test_an_old_output_is_never_gone_on_with(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=True, plan="p") as staging:
        staging.write_small("a", b"1")
        promote(staging)
    shutil.rmtree(tmp_path / "out")
    with Staging(tmp_path / "out", allowed=ALLOWED, plan="p", resume=True) as again:
        assert again.file != staging.file
    assert read(tmp_path / staging.file / "previous") == OLD


def test_staging_refuses_another_plan(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED, plan="p", keep=True):
        pass
    with fault("resume.other_plan"), Staging(tmp_path / "out", allowed=ALLOWED, plan="q", resume=True):
        pass
    with Staging(tmp_path / "out", allowed=ALLOWED, plan="p", resume=True):
        pass
    assert hidden(tmp_path) == []


def test_a_file_is_read_again_unless_the_kernel_saw_nobody_touch_it(tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    path = tmp_path / "file"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDWR)
    try:
        good = FileRecord(
            "file", len(data), hashlib.sha256(data).hexdigest(), "t", (), seal_of(os.fstat(descriptor))
        )
        assert good.seal is not None
        assert reads(descriptor, good) == (True, 0)
        other = msgspec.structs.replace(good.seal, boot="before the machine was started again")
        assert reads(descriptor, msgspec.structs.replace(good, seal=other)) == (True, len(data))
        assert reads(descriptor, msgspec.structs.replace(good, seal=None)) == (True, len(data))

        before = os.fstat(descriptor)
        time.sleep(0.02)
        os.pwrite(descriptor, bytes([data[7] ^ 1]), 7)
        os.utime(
            descriptor, ns=(before.st_atime_ns, before.st_mtime_ns)
        )  # as one does who wants it not to be seen
        assert reads(descriptor, good) == (False, len(data))
        os.pwrite(descriptor, data[7:8], 7)
        assert reads(descriptor, good) == (True, len(data))
        os.ftruncate(descriptor, 5)
        assert reads(descriptor, good) == (False, 0)
    finally:
        os.close(descriptor)


def reads(descriptor: int, record: FileRecord) -> tuple[bool, int]:
    """Return whether a file holds, and how much of it was read to know that."""
    seen = [0]
    return holds(descriptor, record, done=seen.append), seen[-1]

"""A folder that is watched while somebody writes into it, with a clock and pauses of the test's own."""

import errno
import itertools
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.documents import json_schema
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.schemas import WATCH
from shardscope.engine.model.source import Identity
from shardscope.engine.model.watch import Tally, WatchEvent
from shardscope.engine.watching.known import read_known
from shardscope.engine.watching.steps import (
    ITERATION,
    LATEST,
    Sight,
    Tracker,
    awaited,
    is_temporary,
    look_at,
    number_of,
)
from shardscope.engine.watching.watch import Senses, WatchOptions, watch
from tests.checkpoints import write_safetensors, write_sharded

FIXTURES = Path(__file__).parents[1] / "fixtures"
ZERO = FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint/global_step3"
DCP = FIXTURES / "dcp/fsdp2_flat_world2/checkpoint"
Step = Callable[[], object] | None
SCHEMA = json_schema(WATCH)
SETTLE = 3
"""Looks, a second apart, for which nothing may change."""


def nothing() -> None:
    """A second in which nobody writes."""


QUIET: list[Step] = [nothing] * (SETTLE + 1)


def seen(folder: Path, script: Sequence[Step] = (), **options: object) -> list[WatchEvent]:
    """Watch a folder: a step of the script after each look, a second each. The watch is stopped at the end of the script."""
    clock = itertools.count()
    now = [0.0]
    stop = threading.Event()
    steps = iter(script)

    def pause(seconds: float) -> None:
        now[0] += seconds
        step = next(steps, "over")
        if step == "over":
            stop.set()
        elif callable(step):
            step()

    senses = Senses(lambda: now[0], pause, lambda: f"2026-01-01T00:00:{next(clock):02}+00:00")
    settings: dict[str, object] = {"interval": 1.0, "settle": float(SETTLE), "patience": 100.0} | options
    events = list(watch(str(folder), msgspec.convert(settings, WatchOptions), cancel=stop, senses=senses))
    for event in events:
        jsonschema.validate(msgspec.json.decode(msgspec.json.encode(event)), SCHEMA)
    return events


def holes(file: Path) -> bool:
    """Tell whether the last byte of a file is known never to have been written."""
    with file.open("rb") as opened:
        try:
            os.lseek(opened.fileno(), file.stat().st_size - 1, os.SEEK_DATA)
        except OSError as error:
            return error.errno == errno.ENXIO
    return False


def words(events: Sequence[WatchEvent]) -> list[tuple[str, str | None]]:
    return [(event.event.value, event.folder) for event in events[:-1]]


def copies(source: Path, target: Path, order: Sequence[str], stall: int = 0) -> list[Step]:
    """Steps that copy files in an order, each in two halves, with seconds between."""

    def write(name: str, part: slice) -> None:
        target.mkdir(exist_ok=True)
        data = (source / name).read_bytes()
        half = len(data) // 2
        with (target / name).open("ab") as file:
            file.write(data[:half] if part.stop else data[half:])

    steps: list[Step] = []
    for name in order:
        for part in (slice(0, 1), slice(1, None)):
            steps += [lambda name=name, part=part: write(name, part), *[nothing] * stall]  # type: ignore[misc]
    return steps


# --- when a folder is complete


@pytest.mark.parametrize("stall", [0, SETTLE + 2])
def test_no_order_of_writing_and_no_stall_gives_a_half_written_verdict(tmp_path: Path, stall: int) -> None:
    source = write_sharded(tmp_path / "source", config=False)
    names = sorted(path.name for path in source.iterdir())
    for number, order in enumerate(itertools.permutations(names)):
        run = tmp_path / f"run{number}"
        run.mkdir()
        steps = copies(source, run / "checkpoint-10", order, stall)

        events = seen(run, [*steps, *QUIET])

        assert words(events) == [("complete", "checkpoint-10")], order
        assert events[0].bytes == sum((source / name).stat().st_size for name in names)


@pytest.mark.parametrize("fixture", ["hf/bin_sharded", "torch/zip_proto4"])
def test_half_a_torch_file_is_never_complete(tmp_path: Path, fixture: str) -> None:
    source = FIXTURES / fixture / "checkpoint"
    names = sorted((path.name for path in source.iterdir()), key=lambda name: not name.endswith(".json"))

    events = seen(tmp_path, [*copies(source, tmp_path / "step_7", names, SETTLE + 2), *QUIET])

    assert words(events) == [("complete", "step_7")]
    assert events[0].files == len(names)


@pytest.mark.parametrize("stall", [0, SETTLE + 2])
@pytest.mark.parametrize("first", ["__0_0.distcp", "__1_0.distcp"])
def test_dcp_is_complete_when_its_metadata_is_there(tmp_path: Path, first: str, stall: int) -> None:
    ranks = sorted((path.name for path in DCP.glob("*.distcp")), key=lambda name: name != first)
    steps = copies(DCP, tmp_path / "step_7", [*ranks, ".metadata"], stall)

    events = seen(tmp_path, [*steps, *QUIET])

    assert words(events) == [("complete", "step_7")]
    assert events[0].files == len(ranks) + 1


def test_a_tracker_that_comes_last_is_waited_for_though_every_rank_that_has_a_name_is_there(
    tmp_path: Path,
) -> None:
    names = sorted(path.name for path in ZERO.iterdir())
    assert "rank_3" in "".join(names)
    without_last = [name for name in names if "rank_3" not in name]
    late = copies(ZERO, tmp_path / "global_step3", [name for name in names if "rank_3" in name])
    stall: list[Step] = [nothing] * (SETTLE * 2)
    tell: Step = lambda: (tmp_path / "latest").write_text("global_step3")  # noqa: E731

    events = seen(
        tmp_path,
        [
            *copies(ZERO, tmp_path / "global_step3", without_last),
            *stall,
            *late,
            *stall,
            tell,
            nothing,
            nothing,
        ],
    )

    assert words(events) == [("complete", "global_step3")]
    assert "`latest` names it" in events[0].why
    assert events[0].files == len(names)
    assert words(seen(tmp_path, QUIET)) == [("complete", "global_step3")]
    (tmp_path / "latest").unlink()
    assert words(seen(tmp_path, QUIET)) == [("incomplete", "global_step3")]
    assert words(seen(tmp_path, QUIET, tracker=False)) == [("complete", "global_step3")]


IDENTITY = Identity(1, 2, 3, 4, 5)
SAYS = {name: Tracker(name, IDENTITY) for name in ("global_step3", "global_step9", "9", "release", "")}


@pytest.mark.parametrize(
    ("name", "wanted", "trackers", "before", "waits"),
    [
        ("global_step3", LATEST, {}, None, True),
        ("global_step3", LATEST, {LATEST: "global_step3"}, None, False),
        ("global_step9", LATEST, {LATEST: "global_step3"}, None, True),
        ("global_step3", LATEST, {LATEST: "global_step9"}, None, False),
        ("global_step3", LATEST, {LATEST: "global_step9"}, {LATEST: "global_step9"}, True),
        ("global_step3", LATEST, {LATEST: "global_step9"}, {LATEST: "global_step3"}, False),
        ("global_step3", LATEST, {LATEST: "global_step9"}, {}, False),
        ("global_step9", LATEST, {LATEST: "global_step9"}, {LATEST: "global_step9"}, False),
        ("global_step3", LATEST, {LATEST: ""}, None, True),
        ("mine", LATEST, {LATEST: "global_step9"}, None, True),
        ("checkpoint-10", None, {LATEST: "global_step9"}, None, False),
        ("checkpoint-10", None, {}, None, False),
        ("global_step_10", None, {ITERATION: "9"}, None, True),
        ("global_step_9", None, {ITERATION: "9"}, None, False),
        ("iter_0000009", ITERATION, {ITERATION: "9"}, None, False),
        ("iter_0000010", ITERATION, {ITERATION: "9"}, None, True),
        ("release", ITERATION, {ITERATION: "release"}, None, False),
    ],
)
def test_what_a_tracker_says_about_a_folder(
    name: str,
    wanted: str | None,
    trackers: Mapping[str, str],
    before: Mapping[str, str] | None,
    waits: bool,
) -> None:
    now = {key: SAYS[word] for key, word in trackers.items()}
    then = None if before is None else {key: SAYS[word] for key, word in before.items()}

    assert (awaited(name, wanted, now, then) is not None) == waits


def test_what_the_trainer_and_nemo_write_last_is_waited_for(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "checkpoint-5")
    (folder / "training_args.bin").write_bytes(b"")
    other = write_sharded(tmp_path / "step=9")
    (tmp_path / "step=9-unfinished").touch()

    events = seen(tmp_path, QUIET)
    assert words(events) == [("incomplete", "checkpoint-5"), ("incomplete", "step=9")]
    assert "trainer_state.json" in events[0].why[-1]
    assert "step=9-unfinished" in events[1].why[-1]

    (folder / "trainer_state.json").write_text("{}")
    (tmp_path / "step=9-unfinished").unlink()
    assert [word for word, _ in words(seen(tmp_path, QUIET))] == ["complete", "complete"]
    assert other.is_dir()


# --- names, renames, deletions


@pytest.mark.parametrize(
    "name", [".optimizer.pt.AbC12f", ".tmpnodR5a", "optimizer.pt.part", "x/optimizer.pt.incomplete"]
)
def test_a_file_that_is_still_being_copied_is_waited_for(tmp_path: Path, name: str) -> None:
    folder = write_sharded(tmp_path / "checkpoint-1")
    (folder / ".config.json").write_text("{}")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"half")

    def arrive() -> None:
        (folder / name).rename(folder / "optimizer.txt")

    (event, _) = seen(tmp_path, [*QUIET, *QUIET, arrive, *QUIET])

    assert (event.event.value, event.files, event.again) == ("complete", 5 + 1, False)
    assert event.content == look_at(str(folder), Limits()).content


def test_a_file_that_got_its_size_first_is_waited_for_to_its_last_byte(tmp_path: Path) -> None:
    whole = write_safetensors(tmp_path / "model.safetensors", {"a": ("F32", (1 << 18,))}).read_bytes()
    file = tmp_path / "run/checkpoint-1/model.safetensors"
    file.parent.mkdir(parents=True)
    with file.open("wb") as begun:
        begun.truncate(len(whole))
        begun.write(whole[:4096])
    if not holes(file):
        pytest.skip("the file system of the tests does not tell what was never written")

    def finish() -> None:
        file.write_bytes(whole)

    events = seen(file.parent.parent, [*QUIET, nothing, finish, *QUIET], patience=4.0)

    assert words(events) == [("incomplete", "checkpoint-1"), ("complete", "checkpoint-1")]
    assert events[0].why == ("`model.safetensors` ends in bytes that were never written",)


def test_a_folder_that_is_renamed_into_place_is_told_once_under_its_name(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    source = write_sharded(tmp_path / "source")
    for before in ("tmp-checkpoint-5", ".checkpoint-5", "checkpoint-5.tmp", "9.orbax-checkpoint-tmp-12"):
        assert is_temporary(before)
        copy = partial(shutil.copytree, source, run / before)
        move = partial((run / before).rename, run / "checkpoint-5")
        assert words(seen(run, [copy, *QUIET, *QUIET, move, *QUIET])) == [("complete", "checkpoint-5")], (
            before
        )
        shutil.rmtree(run / "checkpoint-5")
    assert not any(map(is_temporary, ("checkpoint-5", "step=5", "tmpfs_5", "iter_0000005", "epoch.5")))


def test_a_plain_rename_before_it_is_told_loses_and_doubles_nothing(tmp_path: Path) -> None:
    write_sharded(tmp_path / "wip1")
    events = seen(tmp_path, [nothing, lambda: (tmp_path / "wip1").rename(tmp_path / "checkpoint-1"), *QUIET])

    assert words(events) == [("complete", "checkpoint-1")]


def test_a_folder_that_grows_again_is_told_as_changed_and_then_again(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "checkpoint-5")
    deep = folder / "deep"
    deep.mkdir()
    grow: Step = lambda: write_safetensors(deep / "x.safetensors", {"x": ("F32", (2,))})  # noqa: E731

    events = seen(tmp_path, [*QUIET, grow, nothing, *QUIET])

    assert words(events) == [(word, "checkpoint-5") for word in ("complete", "changed", "complete")]
    assert [event.again for event in events[:-1]] == [False, True, True]
    assert events[0].content != events[2].content


def test_a_touch_that_leaves_the_files_as_they_are_is_no_change(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "checkpoint-5")

    def touch() -> None:
        (folder / "lock").touch()
        (folder / "lock").unlink()
        (folder / "config.json").chmod(0o600)

    assert words(seen(tmp_path, [*QUIET, touch, *QUIET])) == [("complete", "checkpoint-5")]


def test_deletion_in_between_is_told_and_never_taken_for_a_checkpoint(tmp_path: Path) -> None:
    write_sharded(tmp_path / "checkpoint-1")
    write_sharded(tmp_path / "checkpoint-2")
    half = next((tmp_path / "checkpoint-2").glob("*-00001-*"))

    events = seen(
        tmp_path,
        [
            nothing,
            half.unlink,
            *QUIET,
            lambda: shutil.rmtree(tmp_path / "checkpoint-2"),
            nothing,
            lambda: shutil.rmtree(tmp_path / "checkpoint-1"),
            nothing,
            lambda: write_sharded(tmp_path / "checkpoint-1"),
            *QUIET,
        ],
    )

    assert words(events) == [
        ("complete", "checkpoint-1"),
        ("gone", "checkpoint-2"),
        ("gone", "checkpoint-1"),
        ("complete", "checkpoint-1"),
    ]


def test_a_slow_deletion_of_what_was_told_ends_with_its_going(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "checkpoint-1")
    names = sorted(path.name for path in folder.iterdir())

    events = seen(
        tmp_path, [*QUIET, *[(folder / name).unlink for name in names], nothing, folder.rmdir, nothing]
    )

    assert words(events) == [
        ("complete", "checkpoint-1"),
        ("changed", "checkpoint-1"),
        ("gone", "checkpoint-1"),
    ]
    assert events[2].why == ("before it was complete again",)


def test_links_and_folders_that_are_no_checkpoint_are_counted_and_not_told(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_sharded(run / "checkpoint-1")
    (run / "logs").mkdir()
    (run / "logs/events.log").write_text("x")
    (run / "step_2").mkdir()
    (run / "checkpoint-9").symlink_to("checkpoint-1")
    inner = write_sharded(run / "checkpoint-3")
    (inner / "away").symlink_to(tmp_path)

    events = seen(run, QUIET)

    assert words(events) == [("complete", "checkpoint-1"), ("incomplete", "checkpoint-3")]
    assert "source.link_outside" in events[1].codes
    assert events[-1].tally == Tally(1, 1, 3)


# --- patience, ends, restarts


def test_what_stays_incomplete_is_told_after_the_patience_and_complete_when_it_is(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "checkpoint-5")
    part = next(folder.glob("*-00002-*"))
    kept = part.read_bytes()
    part.unlink()

    events = seen(tmp_path, [*QUIET, *QUIET, *QUIET, lambda: part.write_bytes(kept), *QUIET], patience=6.0)

    assert words(events) == [("incomplete", "checkpoint-5"), ("complete", "checkpoint-5")]
    assert any("-00002-" in clause for clause in events[0].why)
    assert events[-1].tally == Tally(1, 0, 0)


def test_once_ends_by_itself_when_everything_has_held_still(tmp_path: Path) -> None:
    write_sharded(tmp_path / "checkpoint-5")
    next(write_sharded(tmp_path / "checkpoint-6").glob("*-00001-*")).unlink()
    log = tmp_path / "logs"
    log.mkdir()

    def write() -> None:
        with (log / "log").open("a") as file:
            file.write("x")

    events = seen(tmp_path, [write] * 50, once=True)

    assert words(events) == [("complete", "checkpoint-5"), ("incomplete", "checkpoint-6")]
    assert events[-1].why == ()
    assert (log / "log").stat().st_size < 50
    empty = tmp_path / "empty"
    empty.mkdir()
    assert words(seen(empty, once=True)) == []


def test_until_ends_after_so_many(tmp_path: Path) -> None:
    for number in range(4):
        write_sharded(tmp_path / f"checkpoint-{number}")
    steps: list[Step] = [*QUIET, lambda: write_sharded(tmp_path / "checkpoint-9"), *[nothing] * 90]

    events = seen(tmp_path, steps, until=5)

    assert [folder for _, folder in words(events)] == [f"checkpoint-{number}" for number in (0, 1, 2, 3, 9)]
    assert events[-1].why == ()


def test_a_restart_tells_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for number in (1, 2, 3):
        write_sharded(run / f"checkpoint-{number}")
    first = seen(run, QUIET)
    assert [word for word, _ in words(first)] == ["complete"] * 3
    log = tmp_path / "events.jsonl"
    lines = [msgspec.json.encode(event) for event in first]
    log.write_bytes(b"\n".join(lines) + b"\n" + lines[0][:40])
    (run / "checkpoint-2/more.txt").write_text("more")
    shutil.rmtree(run / "checkpoint-3")
    write_sharded(run / "checkpoint-4")

    second = seen(run, QUIET, known=read_known(str(log)))

    assert words(second) == [
        ("gone", "checkpoint-3"),
        ("complete", "checkpoint-2"),
        ("complete", "checkpoint-4"),
    ]
    assert [(event.step, event.again) for event in second[:3]] == [(3, False), (2, True), (4, False)]
    assert second[-1].tally == Tally(3, 0, 0)


def test_known_events_end_with_what_was_told_last(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    assert read_known(str(log)) == {}
    write_sharded(tmp_path / "run/checkpoint-1")
    complete, ended = seen(tmp_path / "run", QUIET)
    gone = msgspec.json.encode(complete).replace(b'"complete"', b'"gone"', 1)

    def known(*lines: bytes) -> dict[str, str]:
        log.write_bytes(b"".join(line + b"\n" for line in lines))
        return read_known(str(log))

    line = msgspec.json.encode(complete)
    assert known(line, msgspec.json.encode(ended)) == {"checkpoint-1": complete.content}
    assert known(line, gone) == {}
    assert known(line, gone, b"", line) == {"checkpoint-1": complete.content}
    for bad in (b"{}", b"nonsense", line.replace(b"watch/1", b"watch/9")):
        with pytest.raises(Fault) as raised:
            known(line, bad)
        assert raised.value.finding.code == "watch.known_malformed"
        assert raised.value.finding.params["line"] == 2
    with pytest.raises(Fault) as raised:
        read_known(str(log), Limits(json_bytes=10))
    assert raised.value.finding.code == "limit.json_bytes"
    with pytest.raises(Fault):
        read_known(str(tmp_path))


def test_the_folder_itself_may_go_for_a_while_and_not_for_long(tmp_path: Path) -> None:
    run, away = tmp_path / "run", tmp_path / "away"
    write_sharded(run / "checkpoint-1")
    go: Step = lambda: run.rename(away)  # noqa: E731
    come: Step = lambda: away.rename(run)  # noqa: E731

    assert words(seen(run, [*QUIET, go, nothing, nothing, come, *QUIET])) == [("complete", "checkpoint-1")]
    with pytest.raises(Fault) as raised:
        seen(run, [*QUIET, go, *[nothing] * 20], patience=10.0)
    assert raised.value.finding.code == "source.missing"


def test_what_cannot_be_watched_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, code in ((tmp_path / "absent", "source.missing"), (file, "watch.not_folder")):
        with pytest.raises(Fault) as raised:
            seen(path)
        assert raised.value.finding.code == code
    for name in "abc":
        (tmp_path / name).mkdir()
    with pytest.raises(Fault) as raised:
        seen(tmp_path, limits=Limits(files=2))
    assert raised.value.finding.code == "limit.files"


def test_a_folder_that_cannot_be_read_is_told_after_the_patience_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sharded(tmp_path / "checkpoint-1")
    looked = look_at
    deaf = [True]

    def look(path: str, limits: Limits, cancel: threading.Event | None = None) -> Sight:
        if deaf[0]:
            raise Fault("source.unreadable", file=path, reason="Permission denied")
        return looked(path, limits, cancel)

    monkeypatch.setattr("shardscope.engine.watching.watch.look_at", look)
    events = seen(tmp_path, QUIET)
    assert words(events) == [("incomplete", "checkpoint-1")]
    assert "Permission denied" in events[0].why[0]

    def hear() -> None:
        deaf[0] = False

    events = seen(tmp_path, [*[nothing] * 10, hear, *QUIET], patience=5.0)

    assert words(events) == [("incomplete", "checkpoint-1"), ("complete", "checkpoint-1")]


def test_a_folder_beyond_a_limit_is_never_complete(tmp_path: Path) -> None:
    write_sharded(tmp_path / "checkpoint-1")
    events = seen(tmp_path, QUIET, limits=Limits(files=3))

    assert words(events) == [("incomplete", "checkpoint-1")]
    assert "limit.files" in events[0].codes


def test_the_number_of_a_step_is_the_last_in_its_name() -> None:
    names = ("checkpoint-500", "iter_0000010", "epoch=1-step=20", "global_step3_universal", "final", "9" * 40)
    assert [number_of(name) for name in names] == [500, 10, 20, 3, None, int("9" * 18)]

"""A folder that checkpoints appear in, looked at again and again: each step folder is told once, when it is complete.

Looking is all: no notification of the kernel is used, since none of them tells what other machines write to a shared file
system. A folder is complete when two looks at least a settle time apart saw the same, and `steps` finds nothing missing.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import Cancelled, check
from shardscope.engine.model.schemas import WATCH
from shardscope.engine.model.source import Entry, Identity, Kind
from shardscope.engine.model.text import display_name
from shardscope.engine.model.watch import Tally, WatchEvent, WatchWord
from shardscope.engine.source.children import children
from shardscope.engine.watching.steps import (
    UNFINISHED,
    Sight,
    Tracker,
    Verdict,
    awaited,
    is_temporary,
    judge,
    look_at,
    number_of,
    read_trackers,
)

_NOTHING = Sight(b"", "", 0, 0)


class WatchOptions(Struct, frozen=True):
    """What a watch goes by. Times in seconds."""

    interval: float = 10.0
    """Between two looks."""
    settle: float = 30.0
    """For which nothing of a folder may change before it is judged."""
    patience: float = 900.0
    """After which a folder that holds still and is not whole is told as incomplete."""
    once: bool = False
    """End when each folder has held still for the settle time; one that never does ends the watch after the patience, or after
    twice the settle time where its name has no number."""
    until: int | None = None
    """End after a look at the end of which this many were told as complete; those of `known` are not counted."""
    tracker: bool = True
    """Wait for the trackers beside the folders."""
    known: Mapping[str, str] = {}
    """Content by the (neutralised) name of folders that were told before: `known.read_known`. One that is not there is told as gone."""
    limits: Limits = Limits()


@dataclass(frozen=True)
class Senses:
    """What a test replaces."""

    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] | None = None
    """Waits for some seconds; by default on the event of `watch`, which ends it at once."""
    stamp: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="seconds")


class _State(Enum):
    WAITING = auto()
    INCOMPLETE = auto()
    COMPLETE = auto()


@dataclass
class _Folder:
    name: str
    entry: Entry
    before: Mapping[str, Tracker] | None
    """What the trackers said before it appeared; null where it was there from the start."""
    state: _State = _State.WAITING
    again: bool = False
    sight: Sight = _NOTHING
    seen: Identity | None = None
    """Of the folder itself when `sight` was taken."""
    since: float = 0.0
    """When it was first seen as it is now."""
    told: str = ""
    """The content that was told as complete."""
    verdict: Verdict | None = None
    """About what `sight` saw."""
    decided: bool = False
    """It held still for long enough and was judged, or cannot be looked at."""
    why: tuple[str, ...] = ("nothing of it was looked at yet",)


def watch(
    path: str,
    options: WatchOptions | None = None,
    *,
    cancel: threading.Event | None = None,
    senses: Senses | None = None,
) -> Iterator[WatchEvent]:
    """Yield what happens to the folders directly in `path`, and at the end what is still incomplete and a tally.

    Setting `cancel` ends it, with these last events. Raises `Fault` where `path` cannot be listed: at the first look, or for
    longer than the patience.
    """
    stop = cancel or threading.Event()
    watcher = _Watch(path, options or WatchOptions(), stop, senses or Senses())
    try:
        while True:
            yield from watcher.look()
            if watcher.is_over():
                break
            watcher.rest()
            check(stop)
    except Cancelled:
        pass
    yield from watcher.end()


@dataclass
class _Watch:
    path: str
    options: WatchOptions
    cancel: threading.Event
    senses: Senses
    folders: dict[str, _Folder] = field(default_factory=dict)
    others: int = 0
    trackers: dict[str, Tracker] | None = None
    started: float | None = None
    lost: float | None = None
    """Since when the folder itself could not be listed."""
    turn: int = 0
    """Which of the complete folders is looked at again."""
    count: int = 0

    def look(self) -> Iterator[WatchEvent]:
        """Look at everything once."""
        now = self.senses.now()
        first = self.started is None
        try:
            listed = children(self.path, self.options.limits, self.cancel)
        except Fault:
            self.lost = now if self.lost is None else self.lost
            if first or now - self.lost >= self.options.patience:
                raise
            return
        self.started, self.lost = (now if self.started is None else self.started), None
        entries = {entry.name: entry for entry in listed}
        trackers = read_trackers(self.path, entries, self.options.limits)
        yield from self._gone_before(entries) if first else self._gone(entries)
        self.others = 0
        for name in sorted(entries, key=lambda name: (number_of(name) or 0, name)):
            entry = entries[name]
            if entry.kind is Kind.LINK or (entry.kind is Kind.DIRECTORY and is_temporary(name)):
                self.others += 1
            elif entry.kind is Kind.DIRECTORY and name not in self.folders:
                before = None if first else (self.trackers or {})
                self.folders[name] = _Folder(name, entry, before, since=now)
        again = self._turn()
        for folder in list(self.folders.values()):
            entry = entries[folder.name]
            same = folder.seen == entry.identity
            folder.entry = entry
            if folder.state is not _State.COMPLETE or folder.name == again or not same:
                yield from self._see(folder, trackers, f"{folder.name}{UNFINISHED}" in entries)
        self.trackers = trackers

    def _gone(self, entries: Mapping[str, Entry]) -> Iterator[WatchEvent]:
        """Forget the folders that are no longer there. One that was renamed before it was told is told under its new name."""
        living = {(entry.identity.device, entry.identity.inode) for entry in entries.values()}
        for name in [each for each in self.folders if each not in entries or not _is_folder(entries[each])]:
            folder = self.folders.pop(name)
            inode = (folder.entry.identity.device, folder.entry.identity.inode)
            unheard = (
                folder.state is _State.WAITING and not folder.again
            )  # nothing was told that would have to be taken back
            if not unheard or (folder.sight.files and inode not in living):
                before = f"before it was complete{' again' if folder.again else ''}"
                yield self._event(
                    WatchWord.GONE, folder, () if folder.state is _State.COMPLETE else (before,)
                )

    def _gone_before(self, entries: Mapping[str, Entry]) -> Iterator[WatchEvent]:
        """Tell what an earlier watch told as complete and is not there when this one begins."""
        here = {display_name(name) for name, entry in entries.items() if _is_folder(entry)}
        nothing = _Folder("", Entry(b"", Kind.DIRECTORY, Identity(0, 0, 0, 0, 0), 0, 0), None)
        for name in self.options.known:
            if name not in here:
                event = self._event(WatchWord.GONE, nothing, ("while nothing watched",))
                yield replace(event, folder=name, step=number_of(name))

    def _turn(self) -> str | None:
        """Return the one complete folder that is walked in this look though nothing seems to have changed."""
        done = [folder.name for folder in self.folders.values() if folder.state is _State.COMPLETE]
        self.turn += 1
        return done[self.turn % len(done)] if done else None

    def _see(
        self, folder: _Folder, trackers: Mapping[str, Tracker], unfinished: bool
    ) -> Iterator[WatchEvent]:
        now = self.senses.now()
        try:
            sight = look_at(self._path(folder), self.options.limits, self.cancel)
        except Fault as fault:
            if fault.finding.code != "source.missing":  # the next look says that it is gone
                folder.decided = True
                folder.why = (blocker(fault.finding).message,)
                yield from self._impatient(folder, now)
            return
        same = (folder.seen, folder.sight) == (folder.entry.identity, sight)
        never = folder.seen is None
        folder.seen, folder.sight = folder.entry.identity, sight
        if folder.state is _State.COMPLETE:
            if sight.content != folder.told:
                self._restart(folder, now)
                folder.again = True
                yield self._event(
                    WatchWord.CHANGED, folder, ("its files are no longer those that were told",)
                )
            return
        if never and (told := self.options.known.get(display_name(folder.name))) is not None:
            folder.again = told != sight.content
            if not folder.again:
                folder.state, folder.told = _State.COMPLETE, sight.content
                return
        if not same:
            self._restart(folder, now)
        elif now - folder.since >= self.options.settle:
            yield from self._settled(folder, trackers, unfinished, now)

    def _restart(self, folder: _Folder, now: float) -> None:
        folder.state, folder.since, folder.verdict, folder.decided = _State.WAITING, now, None, False
        folder.why = ("it is still being written to, or was a moment ago",)

    def _settled(
        self, folder: _Folder, trackers: Mapping[str, Tracker], unfinished: bool, now: float
    ) -> Iterator[WatchEvent]:
        """Judge a folder that holds still."""
        folder.decided = True
        if folder.verdict is None:
            try:
                verdict = judge(self._path(folder), folder.name, self.options.limits, self.cancel)
            except Fault as fault:
                folder.why = (blocker(fault.finding).message,)
                yield from self._impatient(folder, now)
                return
            if verdict.sight != folder.sight:
                self._restart(folder, now)
                return
            folder.verdict = verdict
        verdict = folder.verdict
        missing = [*verdict.missing]
        if self.options.tracker:
            waits = awaited(folder.name, verdict.tracker, trackers, folder.before)
            missing += [] if waits is None else [waits]
        if unfinished:
            missing.append(f"`{display_name(folder.name)}{UNFINISHED}` is still there")
        if missing:
            folder.why = tuple(missing)
            yield from self._impatient(folder, now)
            return
        named = [
            name
            for name, said in trackers.items()
            if number_of(said.word) == number_of(folder.name) is not None
        ]
        folder.why = (
            verdict.says,
            f"nothing changed for {self.options.settle:g} s",
            *(f"`{name}` names it" for name in named if self.options.tracker),
        )
        folder.state, folder.told = _State.COMPLETE, folder.sight.content
        self.count += 1
        yield self._event(WatchWord.COMPLETE, folder, folder.why)

    def _impatient(self, folder: _Folder, now: float) -> Iterator[WatchEvent]:
        """Tell a folder as incomplete that has been so for long enough."""
        if folder.state is _State.WAITING and now - folder.since >= self.options.patience and _counts(folder):
            folder.state = _State.INCOMPLETE
            yield self._event(WatchWord.INCOMPLETE, folder, folder.why)

    def is_over(self) -> bool:
        """Tell whether what was asked for is done."""
        if self.options.until is not None and self.count >= self.options.until:
            return True
        if not self.options.once or self.started is None:
            return False
        now = self.senses.now()
        past = now - self.started
        if past >= self.options.patience:
            return True
        return all(
            folder.state is not _State.WAITING
            or folder.decided
            or (number_of(folder.name) is None and past >= 2 * self.options.settle)  # a log that never rests
            for folder in self.folders.values()
        )

    def rest(self) -> None:
        """Wait until the next look; what is to end soon does not wait longer than it has to."""
        settle = self.options.settle
        seconds = (
            min(self.options.interval, settle) if self.options.once and settle else self.options.interval
        )
        (self.senses.pause or self.cancel.wait)(seconds)

    def end(self) -> Iterator[WatchEvent]:
        """Tell what is still incomplete, then how many there are of each."""
        for folder in self.folders.values():
            if folder.state is _State.WAITING and _counts(folder):
                folder.state = _State.INCOMPLETE
                yield self._event(WatchWord.INCOMPLETE, folder, folder.why)
        states = [folder.state for folder in self.folders.values()]
        complete, incomplete = states.count(_State.COMPLETE), states.count(_State.INCOMPLETE)
        tally = Tally(complete, incomplete, self.others + len(states) - complete - incomplete)
        why = ("stopped",) if self.cancel.is_set() else ()
        nothing = _Folder("", Entry(b"", Kind.DIRECTORY, Identity(0, 0, 0, 0, 0), 0, 0), None)
        event = self._event(WatchWord.ENDED, nothing, why)
        yield replace(event, folder=None, step=None, content=None, tally=tally)

    def _event(self, word: WatchWord, folder: _Folder, why: tuple[str, ...]) -> WatchEvent:
        verdict = folder.verdict
        return WatchEvent(
            schema=WATCH,
            event=word,
            at=self.senses.stamp(),
            folder=display_name(folder.name),
            step=number_of(folder.name),
            format=None if verdict is None else verdict.format,
            whole=None if verdict is None else verdict.whole,
            files=folder.sight.files,
            bytes=folder.sight.bytes,
            content=folder.sight.content or None,
            again=folder.again,
            why=why,
            codes=() if verdict is None else verdict.codes,
            tally=None,
        )

    def _path(self, folder: _Folder) -> str:
        return f"{self.path.rstrip('/') or '/'}/{folder.name}"


def _is_folder(entry: Entry) -> bool:
    return entry.kind is Kind.DIRECTORY


def _counts(folder: _Folder) -> bool:
    """Tell whether a folder is to be a checkpoint: it is one in part, or is numbered like a step and does not seem empty."""
    recognised = folder.verdict is not None and folder.verdict.checkpoint
    unread = folder.seen is None and folder.decided
    return recognised or (number_of(folder.name) is not None and (folder.sight.files > 0 or unread))

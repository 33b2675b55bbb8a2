"""One step of a training run: the folder that a save is written into, and whether it is all there.

Names decide nothing about completeness except that some say "not yet": a save under a temporary name is told when it is
renamed. Whether what is there is whole is inspection's to say; what producers write last (index, tracker, state of the
trainer) has to be there beside it. docs/automating.md has the rule in words.
"""

import hashlib
import os
import re
import threading
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from shardscope.engine.inspecting.inspection import inspect
from shardscope.engine.model.blocker import Fault, Severity
from shardscope.engine.model.evidence import Status
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Entry, Identity, Inventory, Kind
from shardscope.engine.model.text import display_name
from shardscope.engine.model.wholeness import Whole, wholeness
from shardscope.engine.source.source import Source

LATEST, LATEST_UNIVERSAL, ITERATION = "latest", "latest_universal", "latest_checkpointed_iteration.txt"
TRACKERS: Final = (LATEST, LATEST_UNIVERSAL, ITERATION)
"""Files beside the folders of steps that name the newest one; producers write them after it (formats/trackers.py)."""
_TRACKER_OF: Final = {"deepspeed_zero": LATEST, "deepspeed_universal": LATEST_UNIVERSAL}
_TRACKER_BYTES: Final = 4096
_TEMPORARY: Final = re.compile(
    r"\A(?:\.|tmp[-_])|[-_.](?:tmp|temp|incomplete)\Z|\.part(?:ial)?\Z|checkpoint-tmp-"
)
_COPIED: Final = re.compile(r"\A\.(?:tmp[A-Za-z0-9]{6}|[^/]+\.[^./]+\.[A-Za-z0-9]{6})\Z")
"""Names under which safetensors (`.tmpXXXXXX`) and rsync (`.NAME.XXXXXX`) write a file until they rename it. Those of downloads are
errors of inspection."""
UNFINISHED: Final = "-unfinished"
"""NeMo puts a file of the checkpoint's name with this at its end beside it until all ranks have written."""
_LAST: Final = {
    "index.absent": "the index, which is written last, is not there",
    "deepspeed.no_latest": "`latest`, which is written last, is not there",
    "tracker.stale": "a tracker names a folder that is not there",
    "tracker.malformed": "a tracker says nothing yet",
}
"""Codes that no finished save has, and what they mean here."""
_ERRORS: Final = 3
"""Messages of errors among the reasons."""
_METADATA: Final = 64
"""Files of metadata that are looked at: a composite has a few."""
_TRAINER: Final = re.compile(r"checkpoint-\d+")
_NUMBER: Final = re.compile(r"\d{1,18}(?!\d)")


class Sight(Struct, frozen=True):
    """What one walk of a folder saw, in a few bytes."""

    activity: bytes
    """Digest of everything that a write could touch."""
    content: str
    """Digest of names, sizes and times of its files: the same after a restart and a new mount."""
    files: int
    bytes: int


class Verdict(Struct, frozen=True):
    """What inspection says about a folder that holds still."""

    sight: Sight
    """At the time of the inspection."""
    format: str
    checkpoint: bool
    """A layout was recognised, or some of it."""
    whole: Whole
    missing: tuple[str, ...]
    """What is not there yet, a clause each; nothing where it is complete by itself."""
    says: str
    """Why it is whole, as far as that can be told."""
    tracker: str | None
    """The tracker beside the folder that has to name it."""
    codes: tuple[str, ...]


class Tracker(Struct, frozen=True):
    """What a tracker says, and which writing of it that was."""

    word: str
    identity: Identity


def is_temporary(name: str) -> bool:
    """Tell whether a folder has a name under which a save is prepared."""
    return _TEMPORARY.search(name) is not None


def number_of(name: str) -> int | None:
    """Return the last number in a name."""
    found = _NUMBER.findall(name)
    return int(found[-1]) if found else None


def sight_of(inventory: Inventory) -> Sight:
    """Return the digests of a walk."""
    activity, content = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    files = size = 0
    for entry in inventory.entries:
        each = entry.identity
        path = b"%d %s\0" % (len(entry.path), entry.path)
        activity.update(path)
        activity.update(
            b"%s %d %d %d %d %d\0"
            % (entry.kind.encode(), each.device, each.inode, each.size, each.mtime_ns, each.ctime_ns)
        )
        content.update(path)
        if entry.kind is Kind.DIRECTORY:
            continue
        content.update(b"%s %d %d\0" % (entry.kind.encode(), each.size, each.mtime_ns))
        files += 1
        size += each.size
    return Sight(activity.digest(), content.hexdigest(), files, size)


def look_at(path: str, limits: Limits, cancel: threading.Event | None = None) -> Sight:
    """Walk a folder. Raises `Fault` where it cannot be listed, `Cancelled`."""
    with Source(path, limits=limits) as source:
        return sight_of(source.walk(cancel))


def judge(path: str, name: str, limits: Limits, cancel: threading.Event | None = None) -> Verdict:
    """Inspect a folder, headers only, and say what is missing of it. Raises `Fault`, `Cancelled`."""
    found = inspect(path, limits=limits, digest="none", cancel=cancel)
    descriptor, inventory = found.descriptor, found.inventory
    seen = descriptor.classification
    answer = wholeness(descriptor)
    present = {item.code for item in descriptor.blockers}
    missing = [_LAST[code] for code in _LAST if code in present]
    limited = any(code.startswith("limit.") for code in present)
    if answer.answer is Whole.NO or seen.status is not Status.CONDITIONAL or limited:
        errors = [item.message for item in descriptor.blockers if item.severity is Severity.ERROR]
        missing += [
            *errors[:_ERRORS],
            *([f"{len(errors) - _ERRORS:,} more"] if len(errors) > _ERRORS else []),
        ]
        missing += [] if errors else [answer.why]
    names = inventory.by_path
    if _TRAINER.fullmatch(name) and b"training_args.bin" in names and b"trainer_state.json" not in names:
        missing.append("`trainer_state.json`, which the Trainer writes last, is not there")
    missing += _in_copy(inventory)
    missing += _unwritten(path, inventory, limits)
    missing += _cut_short(path, inventory, limits)
    grave = (item.code for item in descriptor.blockers if item.severity is not Severity.INFO)
    tracker = _tracker_of(seen.format, name)
    return Verdict(
        sight_of(inventory),
        seen.format,
        seen.format not in ("empty", "unknown"),
        answer.answer,
        tuple(dict.fromkeys(missing)),
        answer.why,
        None if tracker is None or tracker.encode() in names else tracker,
        tuple(sorted(set(grave))),
    )


def _in_copy(inventory: Inventory) -> list[str]:
    """Return a clause for the first files that have the name of one that is still being written."""
    found = [entry for entry in inventory.files if _COPIED.search(entry.name)]
    return [f"`{entry.text}` has the name of a file that is still being written" for entry in found[:_ERRORS]]


def _unwritten(path: str, inventory: Inventory, limits: Limits) -> list[str]:
    """Return a clause for the first files that got their size and not yet their last bytes, where the file system tells."""
    suspects = [entry for entry in inventory.files if entry.allocated < entry.size]
    clauses: list[str] = []
    with Source(path, limits=limits) as source:
        for entry in suspects:
            with source.open(entry) as reader:
                if reader.hole_at(entry.size - 1):
                    clauses.append(f"`{entry.text}` ends in bytes that were never written")
            if len(clauses) == _ERRORS:
                break
    return clauses


def _cut_short(path: str, inventory: Inventory, limits: Limits) -> list[str]:
    """Return a clause where a DCP's metadata does not end with the byte that ends every pickle; nothing else of it is read."""
    found = [entry for entry in inventory.files if entry.path.rpartition(b"/")[2] == b".metadata"]
    return [
        f"`{entry.text}` is not written to its end"
        for entry in found[:_METADATA]
        if entry.size and _last_byte(os.path.join(path, os.fsdecode(entry.path)), limits) != b"."
    ]


def _last_byte(path: str, limits: Limits) -> bytes:
    with Source(path, limits=limits) as source:
        for file in source.walk().files:
            with source.open(file) as reader:
                return reader.pread(file.size - 1, 1)
    return b""  # it went meanwhile


def _tracker_of(format_: str, name: str) -> str | None:
    """Return the tracker that the producer of a folder writes beside it, whatever else is there."""
    if format_.startswith("megatron_") and re.fullmatch(r"iter_\d+|release", name):
        return ITERATION
    return _TRACKER_OF.get(format_)


def read_trackers(path: str, entries: Mapping[str, Entry], limits: Limits) -> dict[str, Tracker]:
    """Read the trackers among the entries of a folder. One that cannot be read just now says nothing."""
    found = {}
    for name in TRACKERS:
        entry = entries.get(name)
        if entry is None or entry.kind is not Kind.FILE or entry.size > _TRACKER_BYTES:
            continue
        try:
            with Source(os.path.join(path, name), limits=limits) as source:
                (file,) = source.walk().files
                with source.open(file) as reader:
                    word = reader.pread(0, _TRACKER_BYTES).decode("utf-8", "replace").strip()
        except (Fault, ValueError):
            continue
        found[name] = Tracker(word, file.identity)
    return found


def _speaks_of(name: str, tracker: str, said: Tracker) -> bool:
    """Tell whether a tracker names folders of this kind: `global_step4` says nothing about `checkpoint-500`."""
    stem = _NUMBER.sub("", name)
    if tracker == ITERATION:
        return stem in ("iter_", "global_step_")
    return number_of(name) is not None and _NUMBER.sub("", said.word) == stem


def awaited(
    name: str,
    wanted: str | None,
    trackers: Mapping[str, Tracker],
    before: Mapping[str, Tracker] | None,
) -> str | None:
    """Return what a folder waits for from the trackers beside it; null where they name it, or nothing has to.

    `wanted` is the tracker of its producer. `before` is what the trackers said before the folder appeared, null where that is not
    known: one that names a later step speaks for this one only if it was written since, as a run that went back shows.
    """
    number = number_of(name)
    there = (
        [wanted]
        if wanted is not None
        else [each for each in trackers if _speaks_of(name, each, trackers[each])]
    )
    for tracker in there:
        said = trackers.get(tracker)
        if said is None:
            return f"`{tracker}`, which is written last, is not there"
        if said.word == name:
            continue
        named = number_of(said.word)
        if number is not None and named == number:
            continue
        older = before is not None and before.get(tracker) == said
        if number is None or named is None or named < number or older:
            return f"`{tracker}` names {display_name(said.word, 80) or 'nothing'}, not yet this"
    return None

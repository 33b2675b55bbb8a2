"""Trackers: the small text files that say which step of a root is the newest.

`latest` and `latest_universal` hold the name of a folder (deepspeed `runtime/engine.py`); Megatron-LM's
`latest_checkpointed_iteration.txt` holds a number or `release` (`training/checkpointing.py`), and verl writes its step
into a file of the same name. A tracker is a hint: it never makes one of several saves the right one.
"""

import re
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import display_name

_FOLDER_NAMES: Final = ("latest", "latest_universal")
_ITERATION: Final = "latest_checkpointed_iteration.txt"
NAMES: Final = (*_FOLDER_NAMES, _ITERATION)
_LIMIT: Final = 4096
_PLAIN: Final = re.compile(r"[\w.+=@-]{1,255}", re.ASCII)


class Tracker(Struct, frozen=True):
    """A tracker that names a folder which is there."""

    entry: Entry
    target: bytes
    """Path of the folder it names, relative to the root."""

    @property
    def evidence(self) -> Evidence:
        """What it says."""
        says = f"names {display_name(self.target.decode('utf-8', 'surrogateescape'))}"
        return Evidence(EvidenceKind.TRACKER, self.entry.text, says, Basis.DECLARED)


def trackers_in(probe: Probe, folder: Folder) -> list[Tracker]:
    """Read the trackers of a folder; report those that name nothing that is there."""
    return [
        tracker
        for name in NAMES
        if (entry := folder.files.get(name)) is not None
        and (tracker := _read(probe, folder, entry)) is not None
    ]


def _iteration_folder(number: int, folder: Folder) -> str:
    """Return the folder of an iteration: Megatron-LM names it `iter_0000005`, verl `global_step_5` under the same tracker."""
    verl = f"global_step_{number}"
    return verl if verl in folder.folders else f"iter_{number:07d}"


def _read(probe: Probe, folder: Folder, entry: Entry) -> Tracker | None:
    if entry.size > _LIMIT:
        probe.report("tracker.malformed", entry, size=entry.size)
        return None
    text = probe.text(entry, _LIMIT)
    if text is None:
        return None
    word = text.strip()
    if entry.name == _ITERATION:
        if word.isascii() and word.isdigit() and len(word) <= 12:
            word = _iteration_folder(int(word), folder)
        elif word != "release":
            probe.report("tracker.malformed", entry, size=entry.size)
            return None
    elif not _PLAIN.fullmatch(word) or not word.strip("."):
        unsafe = bool(word) and ("/" in word or "\\" in word or ".." in word)
        probe.report("tracker.unsafe" if unsafe else "tracker.malformed", entry, size=entry.size)
        return None
    if word not in folder.folders:
        probe.report("tracker.stale", entry, target=word)
        return None
    prefix = folder.path + b"/" if folder.path else b""
    return Tracker(entry, prefix + word.encode())

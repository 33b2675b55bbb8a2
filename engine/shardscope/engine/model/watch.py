"""What `shardscope watch` tells: one event a line."""

from enum import StrEnum

from msgspec import Struct

from shardscope.engine.model.wholeness import Whole


class WatchWord(StrEnum):
    """What happened to a folder."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    """It stayed incomplete for the time that was given, or was so at the end."""
    CHANGED = "changed"
    """It had been told as complete, and its files are no longer the same."""
    GONE = "gone"
    ENDED = "ended"
    """The last line: of the watch, not of a folder."""


class Tally(Struct, frozen=True, forbid_unknown_fields=True):
    """How a watch ended. Folders of `--known` count as complete."""

    complete: int
    incomplete: int
    others: int
    """Folders that are no checkpoint, as far as they could be looked at, and links."""


class WatchEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `shardscope watch --json`."""

    schema: str
    event: WatchWord
    at: str
    """When it was told: UTC, ISO 8601."""
    folder: str | None
    """Its name in the folder that is watched, neutralised; null in the last line."""
    step: int | None
    """The last number in the name."""
    format: str | None
    """As in the descriptor; null where it was not looked at as a whole."""
    whole: Whole | None
    """What inspection says of it. `not known` is what a save in pickles gets without decoding."""
    files: int
    """Entries that are no folders."""
    bytes: int
    content: str | None
    """Digest of names, sizes and times of the files: by this `--known` knows a folder again."""
    again: bool
    """It had been told as complete before, and changed since."""
    why: tuple[str, ...]
    """Clauses: what speaks for it, or what is missing."""
    codes: tuple[str, ...]
    """Errors and warnings of the descriptor, each once."""
    tally: Tally | None
    """In the last line."""

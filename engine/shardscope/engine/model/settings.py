"""The settings of the explorer as a document: what is in force, and where each value comes from."""

from enum import StrEnum

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker


class Source(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


class SettingInForce(Struct, frozen=True, forbid_unknown_fields=True):
    """One setting."""

    name: str
    """As it stands in the file; `keys.` and the name of an action for a key."""
    value: str | bool | None
    """Null where the terminal decides."""
    source: Source
    line: int | None
    """Of the file, where it comes from there."""


class SettingsDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `shardscope config` prints."""

    schema: str
    path: str
    """Where the file is, or would be."""
    exists: bool
    settings: tuple[SettingInForce, ...]
    blockers: tuple[Blocker, ...]
    """What is wrong in the file."""

"""The settings that there are, each with what it takes and what it does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from shardscope.engine.model.blocker import Blocker

Glyphs = Literal["auto", "unicode", "ascii"]
Digest = Literal["auto", "all", "none"]


class Settings(Struct, frozen=True):
    """What holds for the explorer."""

    theme: str | None = None
    """None: by what the terminal can draw."""
    mouse: bool = True
    glyphs: Glyphs = "auto"
    digest: Digest = "auto"
    memory: int = 256 << 20
    """Bytes of buffers that a conversion starts with in the explorer."""
    recent: bool = False
    """Whether paths that were looked at are remembered."""
    keys: tuple[tuple[str, str], ...] = ()
    """Actions by their stable names, and their keys."""


class SettingsRead(Struct, frozen=True):
    """What the file says."""

    path: str
    exists: bool
    settings: Settings = Settings()
    lines: dict[str, int] = {}
    """Of each setting that the file gives; `keys.` and the name of an action for a key."""
    blockers: "tuple[Blocker, ...]" = ()
    """What is wrong, as far as it can be told without the explorer; `checks` tells the rest."""


class Setting(Struct, frozen=True):
    """One name of the file."""

    name: str
    takes: str
    """What it takes, in words that follow `takes`."""
    says: str
    """What it does."""
    read: Callable[[Any], Any]
    """Returns the value of the struct. Raises `ValueError`."""


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError
        return value

    return read


def _truth(value: Any) -> bool:
    if value is not True and value is not False:
        raise ValueError
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _bytes(value: Any) -> int:
    from click import BadParameter

    from shardscope.app.cli.planning import Size

    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError  # noqa: TRY004 - what a setting raises, whatever is wrong with its value
    try:
        return Size().convert(str(value), None, None)
    except BadParameter:
        raise ValueError from None


SETTINGS: Final = (
    Setting(
        "theme", "the name of a theme", "The colours. By default those that the terminal can draw.", _text
    ),
    Setting("mouse", "true or false", "Whether the explorer takes the mouse from the terminal.", _truth),
    Setting(
        "glyphs",
        '"auto", "unicode" or "ascii"',
        "The signs and borders. auto: ASCII unless the locale is UTF-8.",
        _one_of("auto", "unicode", "ascii"),
    ),
    Setting(
        "digest",
        '"auto", "all" or "none"',
        "Which files are hashed by themselves, as `inspect --digest` takes it.",
        _one_of("auto", "all", "none"),
    ),
    Setting(
        "memory",
        'a number of bytes such as "512MiB"',
        "The budget that a conversion is offered with, as `convert --memory` takes it.",
        _bytes,
    ),
    Setting(
        "recent",
        "true or false",
        "Whether the last twenty paths that were looked at are remembered, in $XDG_STATE_HOME/shardscope. Nothing is written "
        "without it.",
        _truth,
    ),
)
"""In the order of display. `[keys]` stands beside them."""

"""Everything that can be chosen on the way to an output: what it is called, how it is shown, and how a choice changes the draft.

Pure: a field takes a draft and returns another one.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from shardscope.widgets.plan_settings import Setting
from shardscope.widgets.safe import Part, Tone

D = TypeVar("D")
K = TypeVar("K")

MOST_DIGITS: Final = 15
"""Of a number that is typed."""


class Known(Struct, frozen=True):
    """What choices depend on beside the draft."""

    resumable: str | None = None
    """What an earlier run of this plan has left, in words."""


class UntakenError(ValueError):
    """What was typed cannot be taken; its text says what would be."""


class Field(Struct, Generic[D, K], frozen=True):
    """One choice of a draft, shown with what is known beside it."""

    name: str
    key: str
    label: str
    tooltip: str
    shown: Callable[[D, K], Part]
    option: str = ""
    """Of the command line."""
    turned: Callable[[D, int], D] | None = None
    """The draft with the next choice, or the one before; null where something is typed."""
    typed: Callable[[D, str], D] | None = None
    """The draft with what was typed. Raises `UntakenError`."""
    text: Callable[[D], str] = lambda _: ""
    """What stands in the line that is typed in."""
    there: Callable[[D, K], bool] = lambda *_: True
    """Whether it can be chosen now."""
    live: bool = True
    """Whether what is typed is taken at each key, and not at the end alone."""
    is_path: bool = False
    """Whether a path is typed, which tab completes."""


def settings(fields: Sequence[Field[D, K]], draft: D, known: K) -> list[Setting]:
    """Return the rows of some fields."""
    return [
        Setting(item.name, item.key, item.label, item.shown(draft, known))
        for item in fields
        if item.there(draft, known)
    ]


# How drafts change


def next_of(values: Sequence[Any], present: Any, by: int) -> Any:
    """Return the value that follows another, or comes before it, round and round."""
    return values[(values.index(present) + by) % len(values)]


def number_in(text: str, most: int | None = None) -> int:
    """Return the number that was typed. Raises `UntakenError`."""
    digits = text.strip().replace("_", "").replace(",", "")
    found = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS else 0
    if found < 1 or (most is not None and found > most):
        raise UntakenError(f"a number from 1 to {most}" if most is not None else "a number of 1 or more")
    return found


def bytes_of(text: str) -> int:
    """Return the bytes that were typed. Raises `UntakenError`."""
    from shardscope.app.cli.planning import bytes_in

    count = bytes_in(text)
    if count is None:
        raise UntakenError("a number of bytes such as 512MiB or 5GB")
    return count


def words_in(text: str) -> tuple[str, ...]:
    """Return the words that were typed."""
    return tuple(text.split())


def text_in(text: str) -> str | None:
    """Return what was typed; null where nothing was."""
    return text.strip() or None


# How they are shown


def given(text: str | None, otherwise: str) -> Part:
    """Return what was typed, or the quiet words for nothing."""
    return (otherwise, Tone.MUTED) if text is None else text

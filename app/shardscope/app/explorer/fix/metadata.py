"""The metadata of the headers as rows to be edited: each key once, with what the files say of it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.app.explorer.fix.draft import Draft
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.text import is_altered
from shardscope.widgets.figures import plural
from shardscope.widgets.safe import Part, Tone

FORMAT: Final = "format"
"""The key that stays when all others go: loaders ask for it."""
LONGEST: Final = 400
"""Characters of a value that are edited in a line; a longer one is written anew."""
VALUE: Final = 200


class KeyOf(Struct, frozen=True):
    """One key of metadata."""

    name: str
    """Exact."""
    values: tuple[str, ...]
    """Exact; those that differ."""
    files: int
    """That have it."""


def keys_of(headers: Iterable[Mapping[str, str]]) -> tuple[KeyOf, ...]:
    """Return the keys of some headers by name."""
    found: dict[str, list[str]] = {}
    for header in headers:
        for key, value in header.items():
            found.setdefault(key, []).append(value)
    return tuple(KeyOf(key, tuple(dict.fromkeys(found[key])), len(found[key])) for key in sorted(found))


def with_new(keys: tuple[KeyOf, ...], draft: Draft) -> tuple[KeyOf, ...]:
    """Return keys with those that a draft adds."""
    known = {key.name for key in keys}
    return (*keys, *(KeyOf(name, (), 0) for name, _ in draft.set if name not in known))


def value_of(draft: Draft, key: KeyOf) -> Part:
    """Return what becomes of a key, in few words."""
    new = dict(draft.set).get(key.name)
    if new is not None:
        return (f'= "{shown(new, VALUE, possible=True)}"  set', Tone.HERE)
    if key.name in draft.unset:
        return ("taken away", Tone.CAUTION)
    if draft.strip and key.name != FORMAT:
        return ("goes with the rest", Tone.CAUTION)
    if len(key.values) != 1:
        return f"{plural(len(key.values), 'value')} in {plural(key.files, 'file')}"
    return f'"{shown(key.values[0], VALUE, possible=True)}"'


def text_of(draft: Draft, key: KeyOf) -> str:
    """Return what stands in the line in which a value is edited: nothing where a terminal could not show it as it is."""
    new = dict(draft.set).get(key.name)
    text = new if new is not None else key.values[0] if len(key.values) == 1 else ""
    is_plain = len(text) <= LONGEST and not is_altered(text) and shown(text, possible=True) == text
    return text if is_plain else ""


def edited(draft: Draft, key: KeyOf, text: str) -> Draft:
    """Return a draft in which a key has another value; that of the files, or none, leaves it alone."""
    others = tuple((name, value) for name, value in draft.set if name != key.name)
    unset = tuple(name for name in draft.unset if name != key.name)
    if text in ("", *(key.values if len(key.values) == 1 else ())):
        return replace(draft, set=others, unset=unset)
    return replace(draft, set=(*others, (key.name, text)), unset=unset)


def taken_away(draft: Draft, key: KeyOf) -> Draft:
    """Return a draft in which a key goes, or stays where it was to go."""
    others = tuple((name, value) for name, value in draft.set if name != key.name)
    if key.name in draft.unset:
        return replace(draft, unset=tuple(name for name in draft.unset if name != key.name))
    if len(others) != len(draft.set) or not key.files:
        return replace(draft, set=others)
    return replace(draft, unset=(*draft.unset, key.name))

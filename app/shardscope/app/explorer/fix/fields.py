"""Everything that can be chosen of a fix: its operations, and under each that was chosen what it takes. Pure."""

import shlex
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from shardscope.app.explorer.fix.draft import Draft, with_operation
from shardscope.app.explorer.fix.metadata import KeyOf, edited, taken_away, text_of, value_of, with_new
from shardscope.app.explorer.output import fields
from shardscope.app.explorer.output.destination import size_word
from shardscope.app.explorer.output.fields import UntakenError, bytes_of
from shardscope.engine.model.repair import Repair
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural
from shardscope.widgets.fix_words import DOES
from shardscope.widgets.safe import Part, Tone

MOST_KEYS: Final = 500
"""Of metadata that are listed; more are edited by `--set` and `--unset` of the command."""
NAME: Final = 60
LABEL: Final = 11
"""Characters of a pattern, and of a key of metadata."""


class Known(fields.Known, frozen=True):
    """What choices depend on beside the draft."""

    wrong: tuple[tuple[Repair, int], ...] = ()
    """How much each operation would mend."""
    keys: tuple[KeyOf, ...] = ()


Field = fields.Field[Draft, Known]
KEYS: Final[dict[Repair, str]] = {
    "salvage": "s",
    "index": "i",
    "drop": "d",
    "rename": "r",
    "metadata": "m",
    "split": "p",
    "merge": "o",
    "header": "e",
}
"""What is pressed for each operation."""
SAYS: Final[dict[Repair, str]] = {"drop": "t", "rename": "x", "metadata": "z"}
"""What is pressed to say what an operation does that does nothing by itself."""


def words_in(text: str) -> tuple[str, ...]:
    """Return the words that were typed; quotes keep spaces together. Raises `UntakenError`."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        raise UntakenError("a second quote") from None


def words_of(words: tuple[str, ...]) -> str:
    """Return words as they are typed."""
    return " ".join(shlex.quote(word) if set(word) & set(" '\"\\\t") else word for word in words)


def pairs_in(text: str) -> tuple[tuple[str, str], ...]:
    """Return the names that were typed, old and new. Raises `UntakenError`."""
    pairs = [word.partition("=") for word in words_in(text)]
    if any(not sign or not old or not new for old, sign, new in pairs):
        raise UntakenError("OLD=NEW, with spaces between")
    return tuple((old, new) for old, _, new in pairs)


def _operation(repair: Repair) -> Field:
    def said(draft: Draft, known: Known) -> Part:
        mends = dict(known.wrong).get(repair, 0)
        is_chosen = repair in draft.chosen
        box = "[x]" if is_chosen else "[ ]"
        if repair in draft.lacking:
            return (f"{box} say what: {SAYS[repair]}", Tone.CAUTION)
        if mends:
            loses = ", at a loss" if repair == "salvage" else ""
            tone = Tone.OK if is_chosen and not loses else Tone.CAUTION
            return (f"{box} mends {mends:,}{loses}", tone)
        return (box, Tone.STRONG) if is_chosen else (box, Tone.MUTED)

    return Field(
        repair,
        KEYS[repair],
        repair,
        f"{DOES[repair][0].upper()}{DOES[repair][1:]}",
        said,
        turned=lambda draft, _: with_operation(draft, repair),
    )


def _with(repair: Repair) -> Callable[[Draft, Known], bool]:
    return lambda draft, _: repair in draft.chosen


def _listed(words: tuple[str, ...], otherwise: str) -> Part:
    return " ".join(shown(word, NAME) for word in words) if words else (otherwise, Tone.MUTED)


def _with_key(draft: Draft, text: str) -> Draft:
    if not text:
        return draft
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UntakenError("KEY=VALUE")
    return replace(draft, set=(*((name, old) for name, old in draft.set if name != key), (key, value)))


_AFTER: Final[dict[Repair, tuple[Field, ...]]] = {
    "drop": (
        Field(
            "tensors",
            "t",
            "  tensors",
            "Patterns on names of tensors that are left out, with spaces between",
            lambda draft, _: _listed(draft.drop, "no pattern yet"),
            typed=lambda draft, text: replace(draft, drop=words_in(text)),
            text=lambda draft: words_of(draft.drop),
            there=_with("drop"),
        ),
        Field(
            "untie",
            "a",
            "  tied ones",
            "Also drop a tensor that another name is tied to",
            lambda draft, _: ("dropped, too", Tone.CAUTION) if draft.untie else "refused",
            turned=lambda draft, _: replace(draft, untie=not draft.untie),
            there=_with("drop"),
        ),
    ),
    "rename": (
        Field(
            "rules",
            "f",
            "  rule file",
            "A file of ordered rules of renaming (`shardscope schema renames`)",
            lambda draft, _: (
                ("none", Tone.MUTED) if draft.rules_file is None else plural(len(draft.rules), "rule")
            ),
            text=lambda draft: draft.rules_file or "",
            there=_with("rename"),
            is_path=True,
        ),
        Field(
            "pairs",
            "x",
            "  names",
            "Single tensors as OLD=NEW, with spaces between",
            lambda draft, _: _listed(tuple(f"{old}={new}" for old, new in draft.pairs), "none"),
            typed=lambda draft, text: replace(draft, pairs=pairs_in(text)),
            text=lambda draft: words_of(tuple(f"{old}={new}" for old, new in draft.pairs)),
            there=_with("rename"),
        ),
        Field(
            "prefixes",
            "w",
            "  less prefix",
            "What names begin with and shall not, with spaces between",
            lambda draft, _: _listed(draft.prefixes, "none"),
            typed=lambda draft, text: replace(draft, prefixes=words_in(text)),
            text=lambda draft: words_of(draft.prefixes),
            there=_with("rename"),
        ),
    ),
    "metadata": (
        Field(
            "strip",
            "v",
            "  all keys",
            "Every key goes but format, which loaders ask for; then others are set",
            lambda draft, _: ("go but format", Tone.CAUTION) if draft.strip else "stay",
            turned=lambda draft, _: replace(draft, strip=not draft.strip),
            there=_with("metadata"),
        ),
        Field(
            "new_key",
            "z",
            "  new key",
            "A key of every header, as KEY=VALUE",
            lambda *_: ("KEY=VALUE", Tone.MUTED),
            typed=_with_key,
            live=False,
            there=_with("metadata"),
        ),
    ),
    "split": (
        Field(
            "size",
            "b",
            "  file size",
            "Bytes of tensors in one file",
            lambda draft, _: f"at most {size_word(draft.max_shard_bytes)}",
            typed=lambda draft, text: replace(draft, max_shard_bytes=bytes_of(text)),
            text=lambda draft: size_word(draft.max_shard_bytes),
            there=_with("split"),
        ),
    ),
}
FILES: Final = Field(
    "files",
    "u",
    "weight files",
    "Patterns on names of weight files that are taken as one set; empty: the one set there is",
    lambda draft, _: _listed(draft.files, "the one set"),
    typed=lambda draft, text: replace(draft, files=words_in(text)),
    text=lambda draft: words_of(draft.files),
)


def _of_key(number: int, key: KeyOf) -> Field:
    return Field(
        f"key {number}",
        "",
        f"  {shown(key.name, LABEL)}",
        "Enter edits its value, space takes it away",
        lambda draft, _: value_of(draft, key),
        turned=lambda draft, _: taken_away(draft, key),
        typed=lambda draft, text: edited(draft, key, text),
        text=lambda draft: text_of(draft, key),
        there=_with("metadata"),
    )


FIELDS: Final[tuple[Field, ...]] = (
    *(field for repair in KEYS for field in (_operation(repair), *_AFTER.get(repair, ()))),
    FILES,
)
"""All but the keys of metadata: those that have a key to press."""


def keys_listed(draft: Draft, known: Known) -> tuple[KeyOf, ...]:
    """Return the keys of metadata that have a row."""
    return with_new(known.keys, draft)[:MOST_KEYS]


def fields_of(draft: Draft, known: Known) -> dict[str, Field]:
    """Return the fields by name, those of the keys of metadata under their operation."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        found[field.name] = field
        if field.name == "new_key":
            found |= {
                item.name: item
                for item in (_of_key(number, key) for number, key in enumerate(keys_listed(draft, known)))
            }
    return found


def repair_of(name: str) -> Repair | None:
    """Return the operation that a row belongs to; null for that of the files."""
    if name.startswith("key "):
        return "metadata"
    for repair in KEYS:
        if name == repair or any(field.name == name for field in _AFTER.get(repair, ())):
            return repair
    return None

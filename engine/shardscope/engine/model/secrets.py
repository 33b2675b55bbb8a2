"""Secrets of a checkpoint kept out of every sentence: found by shape or by name, replaced by a visible mark.

Configurations carry tokens, home folders and host names of the people who wrote them. A message names the kind and
the place of such a value and never the value. What looks alike and is harmless (`hf_transformer`, `eos_token`, a
four-part version) stays readable, because a report of nothing but marks helps nobody.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from shardscope.engine.model.secret_rules import (
    POSSIBLE_RULES,
    RULES,
    Rule,
    SecretKind,
    compiled,
    is_telling,
    names_secret,
)
from shardscope.engine.model.text import UNSAFE, display_name

WINDOW: Final = 1 << 15
"""Of a longer text only this many characters at either end are looked at and shown."""


_ANCHORS: Final = tuple((anchor, number) for number, rule in enumerate(RULES) for anchor in rule.anchors)


class SecretHit(Struct, frozen=True, gc=False):
    """Something in a text that must not be repeated: its kind and where it stands, never what it is."""

    kind: SecretKind
    start: int
    end: int


def find_secrets(text: str, *, possible: bool = True) -> tuple[SecretHit, ...]:
    """Return what in `text` must not be repeated, in order and without overlaps.

    `possible` includes shapes that harmless values have too (40 hexadecimal digits, 40 characters of base64).
    Invisible characters inside a secret do not hide it, neither as they are nor as `display_name` shows them.
    """
    hits = _hits(text, possible)
    if _may_hide(text):
        marks = r"⟨U\+[0-9A-F]{4,6}⟩|\\x[0-9a-f]{2}|[\u2400-\u2421]"
        invisible = compiled(rf"(?![\t\n\r])(?:{UNSAFE.pattern}|{marks})")
        kept: list[int] = []  # for each character of the bare text, where it stands in the text
        end = 0
        for match in invisible.finditer(text):
            kept.extend(range(end, match.start()))
            end = match.end()
        if end:
            kept.extend(range(end, len(text)))
            bare = "".join([text[index] for index in kept])
            hits += [
                SecretHit(hit.kind, kept[hit.start], kept[hit.end - 1] + 1) for hit in _hits(bare, possible)
            ]
    return _merged(hits) if len(hits) > 1 else tuple(hits)


def redact(text: str, *, possible: bool = True) -> str:
    """Return `text` with a mark such as `[hf token]` in place of each hit of `find_secrets`."""
    return _redacted_short(text, possible) if len(text) <= 512 else _redacted(text, possible)


def _redacted(text: str, possible: bool) -> str:
    hits = find_secrets(text, possible=possible)
    if not hits:
        return text
    parts: list[str] = []
    end = 0
    for hit in hits:
        parts += (text[end : hit.start], f"[{hit.kind}]")
        end = hit.end
    return "".join((*parts, text[end:]))


_redacted_short: Final = lru_cache(2048)(_redacted)
"""A blocker quotes its subject in three places: looked at once, 5 microseconds become 0.1 for the other two."""


def shown(text: str, limit: int | None = None, *, possible: bool = False) -> str:
    """Return `text` as a sentence may quote it: without secrets, harmless, and within `limit` characters.

    Secrets go first: what `display_name` leaves of a token whose middle it elides would still be half a token.
    """
    if len(text) > 2 * WINDOW:
        text = f"{text[:WINDOW]}…{text[-WINDOW:]}"
    return display_name(redact(text, possible=possible), limit)


_Step = tuple["int | str", "_Step | None"]


class Leaf(NamedTuple):
    """One string of a JSON value and the way to it."""

    text: str
    name: str
    """The nearest key above it: that of the object which holds it, or of the list."""
    below_telling: bool
    """A key further up says that everything below it is secret."""
    way: _Step | None
    """The key or index of each level, innermost first."""
    is_key: bool = False

    @property
    def place(self) -> str:
        """The JSON pointer of the string, harmless to show; empty for the document itself."""
        parts: list[str] = []
        way = self.way
        while way is not None:
            key, way = way
            if isinstance(key, str):
                key = shown(key, 60, possible=True).replace("~", "~0").replace("/", "~1")
            parts.append(f"/{key}")
        return "".join(reversed(parts))


class SecretPlace(NamedTuple):
    """Something in a JSON value that must not be repeated."""

    kind: SecretKind
    leaf: Leaf

    @property
    def place(self) -> str:
        """A JSON pointer whose keys are harmless and shortened: safe to show."""
        return self.leaf.place


def find_secrets_in(value: Any) -> Iterator[SecretPlace]:
    """Yield what must not be repeated in a JSON value, keys included, in document order.

    `value` is made of `dict`, `list`, `str` and JSON's scalars. Strings below a telling key (`password`, `hub_token`)
    count whatever they look like; below a key that names a revision or a version, digits are what they seem.
    """
    for leaf in strings_in(value):
        kinds = dict.fromkeys(hit.kind for hit in find_secrets(leaf.text))
        if not leaf.is_key:
            name = leaf.name
            if kinds and (SecretKind.POSSIBLE in kinds or SecretKind.ADDRESS in kinds):
                for kind in _explained(name.lower()):
                    kinds.pop(kind, None)
            if not kinds and (names_secret(name, leaf.text) or (leaf.below_telling and leaf.text)):
                kinds[SecretKind.NAMED] = None
        for kind in kinds:
            yield SecretPlace(kind, leaf)


def strings_in(value: Any) -> Iterator[Leaf]:
    """Yield every string of a JSON value, keys included, in document order and without recursion."""
    stack: list[tuple[Any, str, bool, _Step | None]] = [(value, "", False, None)]
    while stack:
        item, name, telling, way = stack.pop()
        if isinstance(item, str):
            yield Leaf(item, name, telling, way)
        elif isinstance(item, dict):
            for key, held in reversed(item.items()):
                if isinstance(held, str | dict | list):
                    below = telling or (not isinstance(held, str) and is_telling(key))
                    stack.append((held, key, below, (key, way)))
            for key in item:
                yield Leaf(key, name, telling, (key, way), is_key=True)
        elif isinstance(item, list):
            for index in range(len(item) - 1, -1, -1):
                held = item[index]
                if isinstance(held, str | dict | list):
                    stack.append((held, name, telling, (index, way)))


def _may_hide(text: str) -> bool:
    """Tell whether the text could hold invisible characters, or the marks that `display_name` makes of them."""
    if not text.isascii() or "\\x" in text:
        return True
    return not text.isprintable() and compiled("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]").search(text) is not None


def _explained(name: str) -> Iterator[SecretKind]:
    if any(word in name for word in ("commit", "revision", "sha", "hash", "digest", "etag", "oid", "git_")):
        yield SecretKind.POSSIBLE
    if "version" in name:
        yield SecretKind.ADDRESS


def _hits(text: str, possible: bool) -> list[SecretHit]:
    lowered = text.lower()
    hits: list[SecretHit] = []
    for number in sorted({number for anchor, number in _ANCHORS if anchor in lowered}):
        hits += _matches(RULES[number], text)
    if possible and len(text) >= 40:
        for rule in POSSIBLE_RULES:
            hits += _matches(rule, text)
    return hits


def _matches(rule: Rule, text: str) -> Iterator[SecretHit]:
    for match in compiled(rule.pattern).finditer(text):
        if rule.accept is None or rule.accept(match):
            yield SecretHit(rule.kind, *match.span(match.lastindex or 0))


def _merged(hits: list[SecretHit]) -> tuple[SecretHit, ...]:
    # the sort keeps the order of the table among equals, so the more exact kind names the whole stretch
    merged: list[SecretHit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if merged and hit.start < merged[-1].end:
            last = merged[-1]
            if last.kind is SecretKind.URL_LOGIN and hit.kind is SecretKind.EMAIL:
                continue  # the end of the login and the public host behind it
            merged[-1] = SecretHit(last.kind, last.start, max(last.end, hit.end))
        else:
            merged.append(hit)
    return tuple(merged)

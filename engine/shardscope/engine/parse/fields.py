"""Fields of a configuration, one at a time: the type they should have, and nothing else kept.

What is wrong with a field becomes a finding that names the field, never its value: a token may stand where a number
belongs.
"""

import re
from typing import Any, Final

from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.secrets import find_secrets
from shardscope.engine.parse.json import kind_of

WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:+-]{0,127}")
VERSION: Final = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){0,5}[A-Za-z0-9_.+-]{0,64}")
MODULE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.*-]{0,255}")
KEPT: Final = 1_000
"""Entries of one declared list that are kept as facts."""


class Fields:
    """One object of a configuration, read field by field; what is wrong with a field becomes a finding."""

    def __init__(self, value: dict[str, Any], findings: list[Finding], prefix: str = "") -> None:
        self._value = value
        self._prefix = prefix
        self.findings = findings

    def wrong_type(self, field: str, expected: str, value: object) -> None:
        """Add that `field` holds another kind of value; the value is not quoted."""
        found = kind_of(value)
        if isinstance(value, list) and expected.startswith("a list"):
            found = "a list of other values"
        elif isinstance(value, float) and expected == "an integer":
            found = "a number that is no integer of 64 bits"
        params: dict[str, Param] = {"field": self._prefix + field, "expected": expected, "found": found}
        self.findings.append(Finding("config.field_type", params))

    def wrong_value(self, field: str, reason: str) -> None:
        """Add that `field` is of the right type and still cannot be."""
        self.findings.append(Finding("config.field_value", {"field": self._prefix + field, "reason": reason}))

    def declares(self, *endings: str) -> bool:
        """Tell whether a field whose name has one of these endings holds anything."""
        return any(key.endswith(endings) and held is not None for key, held in self._value.items())

    def first(self, names: tuple[str, ...]) -> tuple[str, Any] | None:
        """Return the first of `names` that is a field, with its value; a null only where nothing better follows."""
        there = [(name, self._value[name]) for name in names if name in self._value]
        return next((item for item in there if item[1] is not None), there[0] if there else None)

    def part(self, field: str) -> "Fields | None":
        """Return the object under `field`; anything else but null is a wrong type."""
        value = self._value.get(field)
        if isinstance(value, dict):
            return Fields(value, self.findings, f"{self._prefix}{field}.")
        if value is not None:
            self.wrong_type(field, "an object", value)
        return None

    def boolean(self, field: str) -> bool | None:
        """Return true or false, null where the field is absent or null."""
        value = self._value.get(field)
        if value is None or isinstance(value, bool):
            return value
        self.wrong_type(field, "true or false", value)
        return None

    def word(self, field: str, pattern: re.Pattern[str] = WORD, *, null: bool = True) -> str | None:
        """Return a word that is a name and no secret."""
        value = self._value.get(field)
        if isinstance(value, str):
            if pattern.fullmatch(value) and not find_secrets(value):
                return value
            self.wrong_value(field, "it is no name" if pattern is not VERSION else "it is no version number")
        elif value is not None or (not null and field in self._value):
            self.wrong_type(field, "a word", value)
        return None

    def words(self, field: str, pattern: re.Pattern[str] = WORD, *, null: bool = True) -> tuple[str, ...]:
        """Return a list of names; the whole list goes where one of them is none."""
        value = self._value.get(field)
        if value is None and (null or field not in self._value):
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.wrong_type(field, "a list of words", value)
            return ()
        kept = value[:KEPT]
        if not all(pattern.fullmatch(item) and not find_secrets(item) for item in kept):
            self.wrong_value(field, "one of its entries is no name")
            return ()
        return tuple(kept)

    def count(
        self,
        names: tuple[str, ...],
        ceiling: int,
        *,
        null: bool = True,
        zero: bool = False,
        per_layer: bool = False,
    ) -> int | None:
        """Return a positive number up to `ceiling`; of a list with one for each layer, the number that they share."""
        found = self.first(names)
        if found is None:
            return None
        field, value = found
        numbers = value if per_layer and isinstance(value, list) and value else [value]
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in numbers):
            if value is not None or not null:
                self.wrong_type(field, "an integer", value)
            return None
        lowest, highest = min(numbers), max(numbers)
        if lowest < 0:
            self.wrong_value(field, "it is negative")
        elif lowest == 0 and not zero and len(numbers) == 1:
            self.wrong_value(field, "it is zero")
        elif highest > ceiling:
            self.wrong_value(field, f"it is above {ceiling:,}")
        elif lowest == highest:
            return int(highest)
        return None

"""On which line of a TOML file each key stands.

The parser of the standard library keeps no positions. But a file is a row of statements (a table header, a key with its
value, a comment), and each of them is a whole document by itself: so the parser itself says where one ends. No grammar
is written down a second time here.
"""

import tomllib
from collections.abc import Iterator
from typing import Any, Final

LONGEST: Final = 200
"""Lines of one statement; where it goes on beyond, no lines are told from there on."""


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the first line, counted from 1, of each key of `text`, which is valid TOML. Keys are paths of names."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for line, said, is_header in _statements(text):
        paths = list(_paths(said))
        if is_header:
            table = paths[0] if paths else ()
            found.setdefault(table, line)
        else:
            for path in paths:
                found.setdefault(table + path, line)
    return found


def _statements(text: str) -> Iterator[tuple[int, dict[str, Any], bool]]:
    begun, lines = 1, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        lines.append(line)
        if len(lines) > LONGEST:
            return
        try:
            said = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError:  # it goes on
            continue
        if said:
            yield begun, said, lines[0].lstrip().startswith("[")
        begun, lines = number + 1, []


def _paths(said: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths to the values of one statement, dotted keys taken apart; a table that is empty counts as one."""
    for name, value in said.items():
        if isinstance(value, list) and value == [{}]:  # `[[name]]`
            yield (name,)
        elif isinstance(value, dict) and value:
            yield from ((name, *rest) for rest in _paths(value))
        else:
            yield (name,)

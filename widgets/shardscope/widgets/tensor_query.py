"""Searching and ordering a catalogue of tensors: plain functions over its columns, fit for a worker.

A query is words with spaces between them; a tensor must match all of them:

    lyqp            the name holds these characters in this order, upper and lower case alike (`~lyqp` is the same)
    'q_proj         the name holds it as it stands here
    *.q_proj.*      the whole name matches, `*` for anything and `?` for one character
    dtype:bf16      that dtype; `*` and `?` as above
    shape:4096      a dimension of 4096; `shape:3072x2048` for the whole shape
    file:embed      the file's path holds it; `*` and `?` as above
    shard:3         the file's name has the number 3 in it, leading zeros aside
    layer:0-3,7     of these layers: the first number that is a part of the name, with more behind it
    rank:tp=1       written by that rank; `rank:0,1` for a whole coordinate
    >1GiB  <10MB    larger, smaller; also `>=`, `<=` and `=`
    !word           not that, before any of the above; of a name it is what the name must not hold as it stands

`tensor_rank` puts what a query found in the order of relevance. Both functions check `cancel` every few milliseconds and never hold the interpreter longer than that, so that the screen
stays alive beside them.
"""

import fnmatch
import re
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import display_name
from shardscope.engine.model.topology import Topology

CHUNK: Final = 8_192
"""Rows between two looks at `cancel`."""
BUCKET: Final = 16_384
"""Rows that are sorted in one go: about ten milliseconds."""
PARTS: Final = 100_000
"""Distinct parts of names whose sort keys are remembered."""
_SIZE: Final = re.compile(r"(>=|<=|>|<|=)(\d+(?:\.\d+)?)([kmgtp]?)(i?)(b?)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_LAYER: Final = re.compile(r"(?:\A|\.)(0|[1-9][0-9]{0,8})\.")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
QUOTE: Final = "'"
"""Before a word that names must hold as it stands."""
_PREFIXES: Final = frozenset({"dtype", "shape", "file", "shard", "layer", "rank"})

COLUMNS: Final = ("name", "dtype", "shape", "bytes", "file")
"""What a catalogue can be ordered by."""

Ranks = Mapping[str, Container[str]]
"""By file, what `rank:` finds it by: `tp=1` for each axis, `0,1` for the whole coordinate."""
Select = Callable[[Iterable[int]], Iterable[int]]
"""Keeps the rows that match."""


def rank_labels(topology: Topology) -> Ranks:
    """Return what `rank:` finds the files of a topology by."""
    labels: dict[str, set[str]] = {}
    axes = {mesh.name: mesh.coordinate_axes for mesh in topology.meshes}
    for held in topology.rank_files:
        names = {",".join(map(str, held.coordinate))}
        for axis, place in zip(axes.get(held.mesh, ()), held.coordinate, strict=False):
            names |= {f"{axis.name}={place}", f"{axis.name}{place}"}
        for file in held.files:
            labels.setdefault(file, set()).update(names)
    return labels


def matching_rows(
    table: TensorTable,
    query: str,
    cancel: threading.Event | None = None,
    *,
    ranks: Ranks | None = None,
) -> Sequence[int]:
    """Return the rows of `table` that match `query`, in order: `array('L')`, or a `range` where the query is empty.

    Raises `Cancelled`.
    """
    count = len(table)
    # Terms about columns are quick, those about names are not: they get what the others leave.
    terms = sorted((_term(table, word, ranks or {}) for word in query.split()), key=lambda term: term[0])
    if not terms:
        return range(count)
    found = array("L")
    for begin in range(0, count, CHUNK):
        check(cancel)
        rows: Iterable[int] = range(begin, min(count, begin + CHUNK))
        for _, select in terms:
            rows = select(rows)
        found.extend(rows)
    return found


def _term(table: TensorTable, word: str, ranks: Ranks) -> tuple[int, Select]:
    """Return how dear a word of a query is, and what it keeps."""
    if word.startswith("!") and len(word) > 1:
        rest = word[1:]
        cost, select = _term(table, f"'{rest}" if loose_words(rest) and rest[0] != "~" else rest, ranks)
        return cost, _without(select)
    if word.startswith("~") and len(word) > 1:
        return _loose(table, word[1:])
    if size := _SIZE.fullmatch(word):
        return 1, _sized(table, size)
    prefix, colon, value = word.partition(":")
    if colon and value:
        match prefix.lower():
            case "dtype":
                return 0, _among(table, "dtype", _indices(table.dtypes, _pattern(value, whole=True)))
            case "shape":
                return 0, _among(table, "shape", _indices(table.shapes, _shaped(value)))
            case "file":
                return 0, _among(table, "file", _indices(table.files, _pattern(value)))
            case "shard":
                return 0, _among(table, "file", _indices(table.files, _numbered(value)))
            case "layer":
                return 2, _layered(table, value)
            case "rank":
                held = value.lower()
                return 0, _among(
                    table, "file", _indices(table.files, lambda file: held in ranks.get(file, ()))
                )
    names = table.names
    if _is_glob(word):
        matches = _pattern(word, whole=True)
        return 3, lambda rows: [row for row in rows if matches(names[row])]
    if not word.startswith(QUOTE) or len(word) == 1:
        return _loose(table, word)
    needle = word[1:].lower()
    shown = _shown(needle)
    return 2, lambda rows: [row for row in rows if needle in shown(names[row]).lower()]


def _loose(table: TensorTable, word: str) -> tuple[int, Select]:
    names, matches, shown = table.names, _fuzzy(word), _shown(word)
    return 3, lambda rows: [row for row in rows if matches(shown(names[row]))]


def _layered(table: TensorTable, value: str) -> Select:
    """Return what keeps the tensors of some layers: `3`, `0-3`, `0-3,7`."""
    ranges = [
        range(int(low), int(high or low) + 1)
        for low, high in (each.groups() for each in map(_RANGE.match, value.split(",")) if each is not None)
    ]
    names, layer = table.names, _LAYER.search

    def keep(rows: Iterable[int]) -> Iterable[int]:
        found = ((row, layer(names[row])) for row in rows)
        return [
            row for row, match in found if match is not None and any(int(match[1]) in each for each in ranges)
        ]

    return keep


def loose_words(query: str) -> list[str]:
    """Return the words of a query that are about names and whose characters need not stand together there."""
    found = []
    for word in query.split():
        prefix, colon, value = word.partition(":")
        if word.startswith("~") and len(word) > 1:
            found.append(word[1:])
        elif not (
            (word.startswith(("!", QUOTE)) and len(word) > 1)
            or _is_glob(word)
            or _SIZE.fullmatch(word)
            or (colon and value and prefix.lower() in _PREFIXES)
        ):
            found.append(word)
    return found


def _shown(needle: str) -> Callable[[str], str]:
    r"""Return what makes a name of what is searched: as it was shown, with `␛` or `\x9b` for what cannot be, if need be."""
    return _as_is if needle.isascii() and "\\" not in needle else display_name


def _as_is(text: str) -> str:
    return text


def _without(select: Select) -> Select:
    def keep(rows: Iterable[int]) -> Iterable[int]:
        rows = list(rows)
        gone = set(select(rows))
        return [row for row in rows if row not in gone]

    return keep


def _among(table: TensorTable, column: str, wanted: set[int]) -> Select:
    numbers = table.column(column)
    return lambda rows: [row for row in rows if numbers[row] in wanted]


def _indices(values: Sequence[Any], accept: Callable[[Any], bool]) -> set[int]:
    return {index for index, value in enumerate(values) if accept(value)}


def _sized(table: TensorTable, size: re.Match[str]) -> Select:
    sign, figure, prefix, binary, unit = size.groups()
    base = 1000 if prefix and unit and not binary else 1024  # `GB` is decimal, `GiB` and a bare `G` are not
    bound = float(figure) * base ** ("kmgtp".index(prefix.lower()) + 1 if prefix else 0)
    begins, ends = table.column("begin"), table.column("end")
    match sign:
        case ">":
            return lambda rows: [row for row in rows if ends[row] - begins[row] > bound]
        case "<":
            return lambda rows: [row for row in rows if ends[row] - begins[row] < bound]
        case ">=":
            return lambda rows: [row for row in rows if ends[row] - begins[row] >= bound]
        case "<=":
            return lambda rows: [row for row in rows if ends[row] - begins[row] <= bound]
    return lambda rows: [row for row in rows if ends[row] - begins[row] == bound]


def _is_glob(word: str) -> bool:
    return "*" in word or "?" in word


def _pattern(word: str, *, whole: bool = False) -> Callable[[str], bool]:
    """Return a test: a glob matches the whole text, anything else is a part of it (or all of it, if `whole`)."""
    lower = word.lower()
    if _is_glob(word):
        matches = re.compile(fnmatch.translate(lower.replace("[", "[[]"))).match
        return lambda text: matches(text.lower()) is not None
    return (lambda text: text.lower() == lower) if whole else (lambda text: lower in text.lower())


def _fuzzy(word: str) -> Callable[[str], bool]:
    steps = "".join(f"[^{re.escape(character)}]*{re.escape(character)}" for character in word.lower())
    matches = re.compile(steps).match
    return lambda text: matches(text.lower()) is not None


def _shaped(value: str) -> Callable[[tuple[int, ...]], bool]:
    numbers = tuple(map(int, _NUMBER.findall(value[:256])))
    whole = len(numbers) != 1 or "[" in value
    return lambda shape: shape == numbers if whole else numbers[0] in shape


def _numbered(value: str) -> Callable[[str], bool]:
    if not value.isdecimal():
        return _pattern(value)
    wanted = int(value[:18])
    return lambda file: wanted in {int(number[:18]) for number in _NUMBER.findall(file.rpartition("/")[2])}


def sorted_rows(
    table: TensorTable,
    rows: Sequence[int],
    column: str,
    cancel: threading.Event | None = None,
    *,
    descending: bool = False,
) -> "array[int]":
    """Return `rows` in the order of a column of `COLUMNS`; rows that are alike keep their order either way.

    Names and files go by the numbers in them (`layers.2` before `layers.10`), shapes by their elements. Raises
    `Cancelled`.
    """
    return _in_order(rows, _key(table, column), cancel, descending=descending)


def _key(table: TensorTable, column: str) -> Callable[[int], Any]:
    match column:
        case "name":
            names, natural = table.names, _Natural().key
            return lambda row: natural(names[row])
        case "bytes":
            begins, ends = table.column("begin"), table.column("end")
            return lambda row: ends[row] - begins[row]
        case "dtype":
            places = _places(table.dtypes, str)
        case "shape":
            places = _places(table.shapes, lambda shape: (prod(shape), shape))
        case "file":
            places = _places(table.files, _Natural().key)
        case _:
            raise ValueError(f"no such column: {column!r}")
    numbers = table.column(column)
    return lambda row: places[numbers[row]]


def _places(values: Sequence[Any], key: Callable[[Any], Any]) -> list[int]:
    """Return for each value its place among all of them."""
    places = [0] * len(values)
    for place, index in enumerate(sorted(range(len(values)), key=lambda index: key(values[index]))):
        places[index] = place
    return places


class _Natural(dict[str, str]):
    """Keys that put texts in the order of the numbers in them.

    Names are made of few distinct parts, so the key of each part is remembered: half a microsecond a name instead of four.
    """

    def key(self, text: str) -> str:
        if len(self) > PARTS:
            self.clear()
        return ".".join(map(self.__getitem__, text.split(".")))

    def __missing__(self, part: str) -> str:
        key = self[part] = _NUMBER.sub(lambda digits: digits.group().zfill(12), part.lower())
        return key


def _in_order(
    rows: Sequence[int],
    key: Callable[[int], Any],
    cancel: threading.Event | None,
    *,
    descending: bool,
) -> "array[int]":
    """Sort in buckets: one `sorted` of a million rows would hold the interpreter for a second."""
    count = len(rows)
    found = array("L")
    splits = sorted({key(rows[at]) for at in range(0, count, max(1, count // 1024))})
    splits = splits[:: max(1, len(splits) * BUCKET // max(1, count))] if count > BUCKET else []
    buckets = [array("L") for _ in range(len(splits) + 1)]
    for chunk in _chunks(rows):
        check(cancel)
        for row in chunk:
            buckets[bisect_right(splits, key(row))].append(row)
    for bucket in reversed(buckets) if descending else buckets:
        check(cancel)
        found.extend(sorted(bucket, key=key, reverse=descending))
    return found


def _chunks(rows: Sequence[int]) -> Iterator[Sequence[int]]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]

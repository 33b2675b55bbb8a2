"""One decoded tensor: what it is as a whole, and a table of the stretches of files that make it up."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from textual.content import Content

from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Shape
from shardscope.engine.model.shardmap import DeviceMesh
from shardscope.engine.model.tensors import array_bytes
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.safe import Part, Tone, content, visible
from shardscope.widgets.virtual_table import Column

LONGEST: Final = 512
"""Characters of a name that are shown in full."""
WIDEST: Final = 24
"""Cells of a column that holds what checkpoints write."""


def shape_words(shape: Shape) -> str:
    """Return a shape as it is written."""
    return f"[{', '.join(map(str, shape))}]"


class FragmentRows:
    """Fragments and their copies as rows of a table."""

    def __init__(self, tensor: LogicalTensor) -> None:
        self._tensor = tensor
        self._rows: Sequence[tuple[Fragment, bool]] = (
            *((each, False) for each in tensor.fragments),
            *((each, True) for each in tensor.replicas),
        )
        self._places = _places(tensor.mesh)

    @property
    def row_count(self) -> int:
        """How many fragments and copies there are."""
        return len(self._rows)

    def columns(self) -> list[Column]:
        """Return columns as wide as what stands in them; files get the room that is left."""
        rows = range(self.row_count)

        def width(column: int, least: int) -> int:
            return min(WIDEST, max([least, *(len(visible(self._words(row, column))) for row in rows)]))

        return [
            Column("rank" if self._tensor.mesh is not None else "part", width(0, 4)),
            Column("shape", width(1, 5)),
            Column("begins at", width(2, 9), right=True),
            Column("bytes", width(3, 5), right=True),
            Column("file", 12, grow=1, tail=0.7),
        ]

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        quiet = self._rows[row][1] or column == 4
        return self._words(row, column), Tone.MUTED if quiet else Tone.PLAIN

    def _words(self, row: int, column: int) -> str:
        fragment, copy = self._rows[row]
        match column:
            case 0:
                place = self._places.get(fragment.label, str(fragment.label))
                return f"{place} copy" if copy else place
            case 1:
                return _stored(fragment)
            case 2:
                return _begins(fragment)
            case 3:
                return size(self._bytes(fragment))
        return fragment.record.file

    def order(self, column: int) -> list[int]:
        """Return the rows in ascending order of a column."""
        keys: tuple[Callable[[Fragment], Any], ...] = (
            lambda each: each.label,
            lambda each: each.shape,
            lambda each: each.record.begin + each.offset,
            lambda each: self._bytes(each) or 0,
            lambda each: each.record.file,
        )
        return sorted(range(self.row_count), key=lambda at: keys[column](self._rows[at][0]))

    def file(self, row: int) -> str:
        """Return the file of a row."""
        return self._rows[row][0].record.file

    def _bytes(self, fragment: Fragment) -> int | None:
        return array_bytes(fragment.dtype or self._tensor.dtype, fragment.shape)


def _stored(fragment: Fragment) -> str:
    words = shape_words(fragment.shape)
    if fragment.dtype is not None:
        words += f" {fragment.dtype}"
    return words if fragment.strides is None else f"{words} strided"


def _begins(fragment: Fragment) -> str:
    record = fragment.record
    if record.coding == "plain":
        return f"{record.begin + fragment.offset:,}"
    return f"{fragment.offset:,} in {record.coding} at {record.begin:,}"


def _places(mesh: DeviceMesh | None) -> dict[int, str]:
    """Return where each label is on a mesh of more than one axis: `3: tp 1 dp 0`."""
    if mesh is None or len(mesh.axes) < 2:
        return {}
    total = prod(axis.size for axis in mesh.axes)
    labels = range(total) if mesh.ranks is None else mesh.ranks
    found = {}
    for place, label in enumerate(labels):
        words, rest = [], place
        for axis in reversed(mesh.axes):
            rest, at = divmod(rest, axis.size)
            words.append(f"{axis.name}\u00a0{at}")
        found[label] = f"{label}: {' '.join(reversed(words))}".replace("\u00a0", " ")
    return found


def tensor_words(tensor: LogicalTensor, glyphs: Glyphs) -> Content:
    """Return what a tensor is as a whole, in a few lines."""
    dot: Part = (f" {glyphs.dot} ", Tone.MUTED)
    whole = array_bytes(tensor.dtype, tensor.shape)
    lines = [
        content((visible(tensor.name, LONGEST), Tone.STRONG)),
        content(f"{tensor.dtype} {shape_words(tensor.shape)}", dot, size(whole), dot, _standing(tensor)),
    ]
    if tensor.stored_shape is not None:
        padded = f"stored as {shape_words(tensor.stored_shape)}: the writer padded it"
        lines.append(content((padded, Tone.CAUTION)))
    if tensor.alias_of is not None:
        alias = f"alias of {visible(tensor.alias_of, LONGEST)}: all bytes are shared"
        lines.append(content((alias, Tone.CAUTION)))
    if tensor.note is not None:
        lines.append(content(tensor.note))
    parts: list[Part] = [plural(len(tensor.fragments), "fragment")]
    if tensor.replicas:
        parts += [dot, plural(len(tensor.replicas), "further copy", "further copies")]
    files = len({each.record.file for each in (*tensor.fragments, *tensor.replicas)})
    parts += [" in ", plural(files, "file")]
    return Content("\n").join([*lines, content(*parts)])


def _standing(tensor: LogicalTensor) -> str:
    role = "" if tensor.role == "other" else f" {tensor.role}"
    return f"{tensor.component}{role}" + (", kept apart under a name made here" if tensor.apart else "")

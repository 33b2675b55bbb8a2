"""What the screen says around the numbers: what is in sight, the element of the cursor, and where it is stored."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shardscope.app.explorer.peek.sight import Sight
from shardscope.engine.model.tensors import DTYPES
from shardscope.widgets.figures import plural
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.value_statistics import index
from shardscope.widgets.value_words import Notation, cell_width, cell_words, special

if TYPE_CHECKING:
    from shardscope.engine.looking.slices import Selection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.peek import PackedWeight
    from shardscope.engine.model.piece import Lowered
    from shardscope.widgets.value_grid import Sheet


def slice_words(sight: Sight, tensor: "LogicalTensor", *, placed: bool) -> tuple[Part, ...]:
    """Return what is looked at: all that is selected, or `placed` the index of the matrix with the rows and columns in sight."""
    chosen, kept = sight.chosen, sight.chosen.kept
    parts: list[Part] = ["["]
    for dim, part in enumerate(chosen.parts):
        parts.append(", " if dim else "")
        place = kept.index(dim) if dim in kept else None
        if placed and place is not None and place < len(sight.lead):
            tone = Tone.HERE if place == sight.active else Tone.STRONG
            at = str(chosen.indices[dim][sight.lead[place]])
            parts += [(at, tone), (f"/{chosen.of[dim]}", Tone.MUTED)]
        else:
            parts.append(part)
    parts.append("]")
    if sight.empty:
        return (*parts, ("  no element", Tone.CAUTION))
    return (*parts, (f"  {_in_sight(sight) if placed else _size(chosen)}", Tone.MUTED), *_pieces(tensor))


def _pieces(tensor: "LogicalTensor") -> tuple[Part, ...]:
    """Return in how many pieces a tensor is stored, where it is more than one."""
    if len(tensor.fragments) < 2:
        return ()
    files = len({each.record.file for each in tensor.fragments})
    return ((f"  {plural(len(tensor.fragments), 'piece')} in {plural(files, 'file')}", Tone.MUTED),)


def _size(chosen: "Selection") -> str:
    """Return how much is selected."""
    shape = " x ".join(f"{extent:,}" for extent in chosen.shape) or "1"
    return f"{shape}{' elements' if len(chosen.shape) < 2 else ''}"


def _in_sight(sight: Sight) -> str:
    """Return which elements of the matrix are in sight."""
    chosen = sight.chosen
    rows, columns = sight.extent
    if sight.folded:
        size = chosen.shape[0]
        low, high = sight.top * sight.fold, min(sight.rows.stop * sight.fold, size)
        return f"elements {low:,} to {high - 1:,} of {size:,}"
    if not chosen.kept:
        return "one element"
    across = f"columns {sight.left:,} to {sight.columns.stop - 1:,} of {columns:,}"
    return f"rows {sight.top:,} to {sight.rows.stop - 1:,} of {rows:,}, {across}"


def element_words(sight: Sight) -> tuple[Part, ...]:
    """Return the element of the cursor in full: index, number, bits."""
    if sight.empty:
        return ()
    found = sight.number(sight.row, sight.column)
    where: Part = (f"{index(sight.index)}  ", Tone.HERE)
    if found is None:
        return (where, ("not read yet", Tone.MUTED))
    word, code = found
    named = special(word)
    meaning = "" if named is None or named[1] is Tone.MUTED else f" {named[0]}"
    shown: Part = (word, Tone.STRONG) if not meaning else (meaning.strip(), named[1] if named else Tone.PLAIN)
    bits = f"  0x{code.replace(' ', ' 0x')}"
    taken = "" if sight.bits is None else f"  numbers of {plural(sight.bits, 'bit')}, lowest first"
    return (where, shown, (bits, Tone.MUTED), (taken, Tone.MUTED))


def place_words(
    sight: Sight, tensor: "LogicalTensor", lowered: "Lowered | None", owners: Mapping[str, str]
) -> tuple[Part, ...]:
    """Return where the element of the cursor is stored: rank, file, byte."""
    from shardscope.engine.diffing.placing import place_in

    if sight.empty:
        return ()
    if lowered is None:
        files = tuple(dict.fromkeys(each.record.file for each in tensor.fragments))
        more = f" and {plural(len(files) - 1, 'more file')}" if len(files) > 1 else ""
        return ((f"{files[0]}{more}" if files else "", Tone.MUTED),)
    element = 0
    for at, extent in zip(sight.index, tensor.shape, strict=True):
        element = element * extent + at
    found = place_in(lowered, tensor, element, owners)
    if found is None:
        return (("no fragment holds it", Tone.CAUTION),)
    rank = "" if found.rank is None else f"{found.rank}  "
    offset = f"byte {found.offset:,} of " if found.offset is not None else ""
    return ((f"{rank}", Tone.STRONG), (f"{offset}{found.file}", Tone.MUTED))


def packing_words(packing: "PackedWeight") -> tuple[Part, ...]:
    """Return how the numbers are worked out."""
    return ((f"{packing.scheme}  ", Tone.STRONG), (packing.formula, Tone.MUTED))


def column_width(sight: Sight, dtype: str, notation: Notation) -> int:
    """Return the cells of a column: what numbers of the type need, and what those in sight do."""
    least = cell_width(dtype, notation)
    if notation == "hex" or DTYPES[dtype].kind not in ("int", "uint", "bool"):
        return least
    words = (found[0] for row in sight.rows for at in sight.columns if (found := _number(sight, row, at)))
    return max(least, *(len(word) for word in words), 0, 0)


def _number(sight: Sight, row: int, column: int) -> tuple[str, str] | None:
    return None if column >= sight.width_of(row) else sight.number(row, column)


def sheet(sight: Sight, dtype: str, notation: Notation, width: int, label: int) -> "Sheet":
    """Return what the grid draws of what is in sight."""
    from shardscope.widgets.value_grid import Sheet

    def part(row: int, column: int) -> tuple[str, Tone] | None:
        found = sight.number(row, column)
        return None if found is None else cell_words(*found, dtype, notation)

    cells = tuple(
        tuple(part(row, column) for column in sight.columns if column < sight.width_of(row))
        for row in sight.rows
    )
    return Sheet(
        rows=tuple(row_label(sight, row) for row in sight.rows),
        columns=tuple(_column_label(sight, column) for column in sight.columns),
        cells=cells,
        width=width,
        label=label,
        here=(sight.row - sight.top, sight.column - sight.left),
    )


def row_label(sight: Sight, row: int) -> str:
    """Return the index beside a line."""
    kept = sight.chosen.kept
    if not kept:
        return ""
    if sight.folded:
        return str(sight.chosen.indices[kept[0]][row * sight.fold])
    return str(sight.chosen.indices[kept[-2]][row])


def _column_label(sight: Sight, column: int) -> str:
    kept = sight.chosen.kept
    if not kept:
        return ""
    indices = sight.chosen.indices[kept[-1]]
    return f"+{column * indices.step}" if sight.folded else str(indices[column])


def label_width(sight: Sight) -> int:
    """Return the cells of the longest index beside a line."""
    if sight.empty:
        return 1
    return max(4, len(row_label(sight, sight.extent[0] - 1)))

"""The words around the picture: what is in front, what lies under the cursor, what is known of the whole."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.shardmap.words import short, standing
from shardscope.engine.geometry.drawing.atlas import piece_letter
from shardscope.widgets.paragraphs import Paragraph, heading
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.shard_map_words import piece_words, spot_words

if TYPE_CHECKING:
    from shardscope.app.explorer.shardmap.asking import Wish
    from shardscope.app.explorer.shardmap.sight import Sight
    from shardscope.app.explorer.shardmap.subject import Subject
    from shardscope.engine.model.shardview import Drawing

PIECES: Final = 8
"""Pieces of a shard that are listed at once, those around the cursor's."""


def head(sight: "Sight", wish: "Wish | None") -> list[Part]:
    """Return the line over the picture: the view, what runs where, and the side."""
    look = sight.look
    group = sight.guide.atlas.groups[look.group]
    parts: list[Part] = []
    match look.view:
        case "logical":
            parts += [("full tensor", Tone.STRONG), ("  rows down, columns across", Tone.MUTED)]
        case "shard":
            parts += [
                (f"shard of {sight.guide.who(group.ranks)}", Tone.STRONG),
                ("  by its pieces", Tone.MUTED),
            ]
        case _:
            parts += [("in its files", Tone.STRONG), ("  shards down, bytes of records across", Tone.MUTED)]
    if look.view != "files" and any(fold is not None for fold in sight.drawing.folds) and sight.extent[1] > 1:
        parts[-1] = ("  rows down and, where folded, across", Tone.MUTED)
    if sight.extent[1] == 1:
        parts[-1] = ("  elements in lines", Tone.MUTED)
    whole = (sight.drawing.window.rows, sight.drawing.window.columns) == sight.extent
    if not whole:
        parts.append(("  closer", Tone.HERE))
    if sight.target is not None and wish is not None:
        source, target = (Tone.MUTED, Tone.HERE) if sight.on_target else (Tone.HERE, Tone.MUTED)
        parts += [("   source ", source), (sight.source.mesh, source), (" | ", Tone.MUTED)]
        parts += [("target ", target), (wish.words, target)]
    return parts


def notes(subject: "Subject", sight: "Sight") -> list[Paragraph]:
    """Return what is said beside the picture."""
    guide, spot = sight.guide, sight.spot
    found = list(spot_words(spot, sight.holder, guide.who, guide.unit))
    if sight.look.view == "files" and sight.lanes:
        found += _neighbours(sight)
    held = sight.holding
    group = sight.group
    pieces = guide.atlas.groups[group].pieces
    if len(pieces) > 1:
        here = None if held is None else held.piece
        first = max(0, min((here or 0) - PIECES // 2, len(pieces) - PIECES))
        rows = guide.pieces(group, first, PIECES)
        title = f"pieces of {guide.who(guide.atlas.groups[group].ranks)}"
        found += piece_words(rows, len(pieces), here, title, piece_letter)
    found += heading("the whole")
    found += [Paragraph((part,), hang=2) for part in standing(subject, sight.chart)]
    return found


def _neighbours(sight: "Sight") -> Iterator[Paragraph]:
    before, behind = sight.lanes[sight.look.at[0]].neighbours
    yield Paragraph((("before it ", Tone.MUTED), before or "nothing that is listed"), hang=2)
    yield Paragraph((("behind it ", Tone.MUTED), behind or "nothing that is listed"), hang=2)


def foot(subject: "Subject", sight: "Sight", drawing: "Drawing") -> Sequence[Part]:
    """Return the line under the picture: the state, the pieces, what has to be known to read it."""
    pieces = sight.guide.atlas.pieces
    parts: list[Part] = [
        short(subject, sight.chart),
        (f"   {pieces:,} piece{'' if pieces == 1 else 's'}", Tone.MUTED),
    ]
    if drawing.note:
        parts.append((f"   {drawing.note}", Tone.MUTED))
    return parts

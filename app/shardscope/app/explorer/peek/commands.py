"""The options of `shardscope peek` that show what a view shows."""

from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.peek.frame import HEAT, HISTOGRAM, VALUES
from shardscope.app.explorer.target import quoted

if TYPE_CHECKING:
    from shardscope.app.explorer.peek.sight import Sight

MOST: Final = 64
"""Rows and columns that the command shows."""


def command_words(sight: "Sight | None", view: int, axis: int | None) -> list[str]:
    """Return the options; `axis` is the dimension of a heat map whose channels are shown, None for boxes."""
    if sight is None:
        return []
    shown = sight.seen if view == VALUES and not sight.empty else sight.chosen
    words = [] if shown.shape == shown.of else ["--slice", quoted(shown.words)]
    if sight.bits is not None:
        words += ["--bits", str(sight.bits)]
    if view == VALUES:
        rows, columns = (1, 1, *shown.shape)[-2:]
        return [*words, "--rows", str(min(rows, MOST)), "--columns", str(min(columns, MOST))]
    if view == HEAT:
        return [*words, "--heat" if axis is None else "--channels"]
    return [*words, "--histogram" if view == HISTOGRAM else "--stats"]

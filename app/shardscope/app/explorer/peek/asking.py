"""What a person types to go somewhere: an element, or a slice to look at alone."""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from shardscope.engine.looking.slices import Selection

EXAMPLE = "5, 17    0:4, ::8    ..., -1    :"


class Goal(Struct, frozen=True):
    """Where to go."""

    chosen: "Selection"
    """What is to be looked at; of an element, the whole tensor."""
    at: tuple[int, ...] | None = None
    """The element."""


def read_goal(text: str, shape: tuple[int, ...], name: str) -> Goal | str:
    """Return where a text leads, written as numpy has a slice; or a sentence on what is wrong with it.

    An index in every dimension is an element; nothing at all is everything.
    """
    from shardscope.engine.looking.slices import selection
    from shardscope.engine.model.blocker import Fault, blocker

    text = text.strip().strip("[]").strip()
    try:
        chosen = selection(text or None, shape, name)
    except Fault as fault:
        return blocker(fault.finding).message
    if shape and not chosen.kept:
        return Goal(selection(None, shape, name), tuple(each.start for each in chosen.indices))
    return Goal(chosen)

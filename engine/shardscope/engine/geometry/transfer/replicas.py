"""Which of the ranks that hold an element is read. The lowest, unless a selector says otherwise and says it validly."""

from collections.abc import Callable, Hashable, Iterable, Mapping

from shardscope.engine.geometry.pieces.wellformed import named
from shardscope.engine.model.blocker import Fault

Holders = tuple[int, ...]
"""Source ranks that hold the same elements, sorted."""

Selector = Callable[[Holders, int], int]
"""Given the holders and the target rank that needs their elements: the one to read from. It has to be a function of these
two alone; it is asked once for each pair that occurs, in order."""

Choice = tuple[tuple[Holders, int], ...]
"""For each set of holders the rank to read from, sorted."""


def lowest(holders: Holders, target: int) -> int:  # noqa: ARG001 - the signature of a selector
    """Return the lowest rank: the same answer everywhere."""
    return holders[0]


def near(source: Mapping[int, Hashable], target: Mapping[int, Hashable]) -> Selector:
    """Return a selector that prefers a holder in the same place (a host, a rack) as the target rank, the lowest of them.

    `source` and `target` name the place of each rank. Without a holder in the same place, or for a rank without one, the
    lowest rank is read.
    """

    def choose(holders: Holders, rank: int) -> int:
        place = target.get(rank)
        here = (holder for holder in holders if place is not None and source.get(holder) == place)
        return next(here, holders[0])

    return choose


def choices(held: Iterable[Holders], ranks: Iterable[int], choose: Selector) -> dict[Choice, tuple[int, ...]]:
    """Return the choices that a selector makes for target ranks, each with the ranks that it makes it for.

    Raises `Fault` `map.replica_choice` for an answer that is none of the holders.
    """
    sets = sorted(held)
    found: dict[Choice, tuple[int, ...]] = {}
    for rank in ranks:
        choice = tuple((holders, _valid(choose(holders, rank), holders, rank)) for holders in sets)
        found[choice] = (*found.get(choice, ()), rank)
    return found


def _valid(answer: object, holders: Holders, rank: int) -> int:
    if type(answer) is not int or answer not in holders:
        said = f"rank {answer}" if type(answer) is int else type(answer).__name__
        raise Fault("map.replica_choice", holders=named(holders), rank=rank, found=said)
    return answer

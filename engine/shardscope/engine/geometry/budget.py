"""What planning and checking may spend. An exhausted budget refuses the whole: a truncated plan is worse than none."""

from msgspec import Struct

from shardscope.engine.model.blocker import Fault


class Budgets(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on the work of geometry, for one tensor."""

    axes: int = 8
    """Dimensions of a tensor, and axes of a mesh."""
    pieces: int = 65_536
    """Pieces of one map, all ranks together."""
    pair_checks: int = 4_194_304
    """Pairs of boxes that are compared."""
    segments: int = 262_144
    """Segments of one transfer plan."""
    cells: int = 4_194_304
    """Visits of boxes while coverage is counted."""
    explicit_bytes: int = 64 << 20
    """Bytes of the index arrays of `Explicit` nodes, eight for each index."""


DEFAULT = Budgets()


class Budget:
    """What is left of the budgets of one piece of work."""

    def __init__(self, budgets: Budgets = DEFAULT) -> None:
        self.limits = budgets
        self.spent: dict[str, int] = {}

    def spend(self, what: str, amount: int) -> None:
        """Take `amount` of a budget.

        Raises `Fault` `map.budget` where it is exhausted.
        """
        total = self.spent.get(what, 0) + amount
        self.spent[what] = total
        limit: int = getattr(self.limits, what)
        if total > limit:
            raise Fault("map.budget", budget=what, limit=limit, found=total)

"""What planning and checking may spend. An exhausted budget refuses the whole: a truncated plan is worse than none."""

from msgspec import Struct

from shardscope.engine.model.blocker import Fault


class Budgets(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on the work of geometry, for one tensor."""

    axes: int = 8
    """Dimensions of a tensor, and axes of a mesh."""
    ranks: int = 65_536
    """Ranks of a mesh."""
    pieces: int = 65_536
    """Pieces of one map, all ranks together."""
    pair_checks: int = 4_194_304
    """Pairs of boxes that are compared."""
    slices: int = 16_384
    """Slices that blocks are written out into where their steps do not divide each other."""
    segments: int = 262_144
    """Segments of one transfer plan."""
    cells: int = 4_194_304
    """Visits of boxes while coverage is counted."""
    plan_bytes: int = 64 << 20
    """Bytes of one transfer plan as JSON, without its indexed segments."""
    explicit_bytes: int = 4 << 20
    """Bytes of the index arrays of `Explicit` nodes and of elements that are walked because of them, eight for each.
    Planning with one costs some 50 microseconds and a kilobyte of memory.
    """


DEFAULT = Budgets()

INDEX_BYTES = 8

_WALKING = {"pieces": 1, "slices": 1, "pair_checks": 64, "segments": 1, "cells": 64}
"""What an element that is walked may cost, beside the budgets of pieces."""


class Budget:
    """What is left of the budgets of one piece of work."""

    def __init__(self, budgets: Budgets = DEFAULT) -> None:
        self.limits = budgets
        self.spent: dict[str, int] = {}
        self._walked = 0

    def spend(self, what: str, amount: int) -> None:
        """Take `amount` of a budget.

        Raises `Fault` `map.budget` where it is exhausted.
        """
        total = self.spent.get(what, 0) + amount
        self.spent[what] = total
        limit: int = getattr(self.limits, what)
        if total > limit + self._walked * _WALKING.get(what, 0):
            raise Fault("map.budget", budget=what, limit=limit, found=total)

    def bound(self, what: str, found: int) -> None:
        """Hold a size against its limit; nothing is used up.

        Raises `Fault` `map.budget` where it is larger.
        """
        self.spent[what] = max(self.spent.get(what, 0), found)
        limit: int = getattr(self.limits, what)
        if found > limit:
            raise Fault("map.budget", budget=what, limit=limit, found=found)

    def index(self, entries: int) -> None:
        """Take the bytes of `entries` indices of an `Explicit` node.

        Raises `Fault` `map.budget`.
        """
        self.spend("explicit_bytes", INDEX_BYTES * entries)

    def walk(self, elements: int) -> None:
        """Allow `elements` to be looked at one by one: they are bounded by `explicit_bytes`, and by nothing else.

        Raises `Fault` `map.budget`.
        """
        self.index(elements)
        self._walked += elements

"""Planning a whole model: equal maps are lowered, checked and composed once. A model of 723 tensors has about ten."""

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget, Budgets
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.geometry.transfer.replicas import Selector
from shardscope.engine.model.mapcheck import Checked
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import DeviceMesh, Node, TensorMap
from shardscope.engine.model.transfer import TransferPlan


class Planner:
    """Lowers, checks and composes maps, each different one once. The budgets are those of one tensor.

    `choose` and `factors` are those of `compose`. Every method raises what the function of its name raises, again for
    every map that equals a refused one.
    """

    def __init__(
        self, budgets: Budgets = DEFAULT, choose: Selector | None = None, *, factors: bool = True
    ) -> None:
        self._budgets = budgets
        self._choose = choose
        self._factors = factors
        self._lowered: dict[tuple[tuple[int, ...], Node, DeviceMesh], Lowered] = {}
        self._checked: dict[int, tuple[Lowered, Checked]] = {}
        self._plans: dict[tuple[int, int], tuple[Lowered, Lowered, TransferPlan]] = {}

    def lower(self, tensor: TensorMap, mesh: DeviceMesh) -> Lowered:
        """Return the normal form of a map: the same object for equal maps."""
        key = (tensor.shape, tensor.map, mesh)
        found = self._lowered.get(key)
        if found is None:
            found = self._lowered[key] = lower(tensor, mesh, Budget(self._budgets))
        return found

    def check(self, lowered: Lowered) -> Checked:
        """Return what is wrong with a map."""
        found = self._checked.get(id(lowered))
        if found is None:
            found = self._checked[id(lowered)] = (lowered, check(lowered, Budget(self._budgets)))
        return found[1]

    def compose(self, target: Lowered, source: Lowered) -> TransferPlan:
        """Return the copies that make the target's shards from the source's."""
        key = (id(target), id(source))
        found = self._plans.get(key)
        if found is None:
            budget = Budget(self._budgets)
            plan = compose(target, source, budget, self._choose, factors=self._factors)
            found = self._plans[key] = (target, source, plan)
        return found[2]

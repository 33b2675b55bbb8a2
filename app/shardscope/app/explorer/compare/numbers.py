"""From a row of the Compare screen to the numbers of its tensor in A, or in B."""

from typing import TYPE_CHECKING

from shardscope.app.explorer.peek.subject import Subject
from shardscope.app.explorer.target import Asked, Target

if TYPE_CHECKING:
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.difference import TensorDifference


def numbers_of(
    item: "TensorDifference", sides: "tuple[Side, Side]", target: Target, *, of_b: bool, decoded: bool
) -> Subject | None:
    """Return what to look at, at the first difference where that is known; None where the side has no such tensor.

    `target` is A; what limits it limits B, too.
    """
    side = sides[1] if of_b else sides[0]
    if (item.b if of_b else item.a) is None:
        return None
    path = str(side.path)
    first = None if item.values is None else item.values.first
    return Subject(
        target=Target(path, target.limits, target.hf_cache, target.decode_limits) if of_b else target,
        inspection=side.found,
        name=item.name_b or item.name if of_b else item.name,
        part_of=item.part_of,
        side=side,
        at=None if first is None else first.index,
        asked=Asked() if decoded else None,
    )

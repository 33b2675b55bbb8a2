"""From a row of the Compare screen to the shard map of its tensor in A, or in B."""

from typing import TYPE_CHECKING

from shardscope.app.explorer.shardmap.subject import Subject
from shardscope.app.explorer.target import Asked, Target

if TYPE_CHECKING:
    from shardscope.engine.comparing.compared import Compared


def map_of(compared: "Compared", number: int, target: Target, *, of_b: bool, decoded: bool) -> Subject | None:
    """Return what to draw of the tensor of a difference; None where the side has no such tensor.

    `target` is A; what limits it limits B, too.
    """
    tensor = compared.tensors[number][1 if of_b else 0]
    if tensor is None:
        return None
    side = compared.second if of_b else compared.first
    return Subject(
        target=Target(str(side.path), target.limits, target.hf_cache, target.decode_limits)
        if of_b
        else target,
        inspection=side.found,
        tensor=tensor,
        is_decoded=True,
        asked=Asked() if decoded else None,
    )

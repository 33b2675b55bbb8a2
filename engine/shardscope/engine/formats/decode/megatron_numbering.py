"""Layers and experts counted through the whole model, where each rank counts its own from zero.

Layers go to the stages of a pipeline in order: all stages of the first virtual round, then those of the second
(`megatron/core/transformer/transformer_layer.py`, `get_transformer_layer_offset`). Experts go to expert-parallel ranks in
equal runs (`megatron/core/transformer/moe/moe_layer.py`).
"""

from collections.abc import Mapping

from msgspec import Struct

from shardscope.engine.formats.decode.megatron_args import Args
from shardscope.engine.model.blocker import Fault

Round = tuple[int, int]
"""A virtual round, and a pipeline stage in it: the order of the layers."""


class Numbering(Struct, frozen=True):
    """Where the counts of a rank begin."""

    layers: dict[Round, int]
    experts: int | None
    """Of one expert-parallel rank; null where nothing tells."""

    def layer(self, at: Round, local: int) -> int:
        """Return the number of a layer in the model."""
        return self.layers[at] + local

    def expert(self, ep: int, local: int) -> int:
        """Return the number of an expert in its layer. Raises `Fault` `megatron.experts_uneven`."""
        if self.experts is None:
            if ep == 0:
                return local
            raise Fault("megatron.args_missing", fact="number of experts")
        if local >= self.experts:
            reason = f"a rank holds expert {local:,} of its own, of {self.experts:,}"
            raise Fault("megatron.experts_uneven", experts=self.experts, reason=reason)
        return ep * self.experts + local


def numbering(args: Args, held: Mapping[Round, int], rounds: int, stages: int, ep: int) -> Numbering:
    """Return where counting begins on each stage.

    `held` tells how many layers each stage of each round was seen to hold; a stage that is not in it is missing.

    Raises `Fault`: `megatron.layers_uneven`, `megatron.experts_uneven`.
    """
    each: int | None = None
    if args.experts is not None:
        if args.experts % ep:
            reason = f"they do not divide among {ep:,} expert-parallel ranks"
            raise Fault("megatron.experts_uneven", experts=args.experts, reason=reason)
        each = args.experts // ep
    every = [(turn, stage) for turn in range(rounds) for stage in range(stages)]
    missing = [at for at in every if at not in held]
    if missing:
        return Numbering(_declared(args, held, every), each)
    starts: dict[Round, int] = {}
    count = 0
    for at in every:
        starts[at] = count
        count += held[at]
    if args.layers is not None and count != args.layers:
        raise Fault(
            "megatron.layers_uneven", layers=args.layers, reason=f"its stages hold {count:,} together"
        )
    return Numbering(starts, each)


def _declared(args: Args, held: Mapping[Round, int], every: list[Round]) -> dict[Round, int]:
    """Return the starts where stages are missing: as an even division has them."""
    layers = args.layers
    if layers is None or args.uneven or layers % len(every):
        reason = "a stage is missing, and the division of the layers is not an even one"
        raise Fault("megatron.layers_uneven", layers=layers or 0, reason=reason)
    share = layers // len(every)
    if any(count > share for count in held.values()):
        reason = f"a stage holds {max(held.values()):,} instead of {share:,}"
        raise Fault("megatron.layers_uneven", layers=layers, reason=reason)
    return {at: number * share for number, at in enumerate(every)}

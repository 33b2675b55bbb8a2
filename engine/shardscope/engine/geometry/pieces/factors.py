"""What is known of a piece's factor without looking at a value."""

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.piece import Lowered


def power_of_two(scale: tuple[int, int]) -> bool:
    """Tell whether a factor in lowest terms is a power of two, of either sign: only the exponent of a float changes."""
    above, below = abs(scale[0]), scale[1]
    return above & (above - 1) == 0 and below & (below - 1) == 0


def factor(scale: tuple[int, int]) -> str:
    """Return a factor for a message."""
    above, below = scale
    if max(above.bit_length(), below.bit_length()) > 64:
        return "a fraction of more than 64 bits"
    return f"{above:,}" if below == 1 else f"{above:,}/{below:,}"


def rounding(lowered: Lowered) -> tuple[Finding, ...]:
    """Return a note for each factor that is no power of two: values then come back to within rounding only."""
    factors = {piece.scale for shard in lowered.ranks for piece in shard.held}
    return tuple(
        Finding("map.scale_rounds", {"factor": factor(scale)})
        for scale in sorted(factors)
        if not power_of_two(scale)
    )

"""What a PEFT `adapter_config.json` says of the arithmetic of its update: scales of single modules, and what makes it another formula.

peft reads the keys of a pattern as regular expressions that match the end of a module's name. They are kept as text here, and
nothing runs them.
"""

from collections.abc import Callable
from typing import Any, Final

from shardscope.engine.parse.fields import KEPT, Fields

VARIANTS: Final = (
    "use_dora",
    "use_qalora",
    "use_bdlora",
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "monteclora_config",
    "layer_replication",
    "target_parameters",
    "trainable_token_indices",
)
"""Fields under which the update of a module is not the product of two factors, or not of one module."""
_FROM_BASE: Final = ("pissa", "olora", "corda", "loftq")
"""Ways of making factors out of the base's weights, which are then no longer those of the base."""
_LONGEST: Final = 256


def variants(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the fields that make it another formula than `scale * B @ A`."""
    return tuple(field for field in VARIANTS if value.get(field))


def initialised(value: dict[str, Any]) -> str | None:
    """Return how factors were made, where it takes something off the base's weights; null where it does not."""
    word = value.get("init_lora_weights")
    return next((known for known in _FROM_BASE if isinstance(word, str) and word.startswith(known)), None)


def ranks(fields: Fields, value: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the ranks of single modules, in their order."""
    return _pattern(fields, value, "rank_pattern", lambda found: isinstance(found, int))


def alphas(fields: Fields, value: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return what the updates of single modules scale with, in their order."""
    found = _pattern(fields, value, "alpha_pattern", lambda found: isinstance(found, int | float))
    return tuple((key, float(number)) for key, number in found)


def _pattern(
    fields: Fields, value: dict[str, Any], field: str, fits: Callable[[object], bool]
) -> tuple[tuple[str, Any], ...]:
    pattern = value.get(field)
    if pattern is None:
        return ()
    good = isinstance(pattern, dict) and all(
        fits(found) and not isinstance(found, bool) and 0 < found < 1e18 and len(key) <= _LONGEST
        for key, found in pattern.items()
    )
    if not good or len(pattern) > KEPT:
        fields.wrong_type(field, f"an object of up to {KEPT:,} numbers", pattern)
        return ()
    return tuple(pattern.items())

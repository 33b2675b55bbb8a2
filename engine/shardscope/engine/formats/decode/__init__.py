"""What each family makes of its files once pickles are decoded: a module a family, in one closed table, loaded when asked for."""

from collections.abc import Callable
from typing import TypeAlias

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts

Decode: TypeAlias = Callable[[Decoder, Claim, Facts], Facts]
"""`decode(decoder, claim, facts)`: adds the claim's tensors to the decoder, reports what is wrong, and returns the facts of the
safe plane with what decoding knows better: confidence, topology, state, producer, and `opaque` without the files that were
decoded."""


def decode_of(format_name: str) -> Decode | None:
    """Return how a family is decoded; null for one that holds nothing that could be."""
    return None

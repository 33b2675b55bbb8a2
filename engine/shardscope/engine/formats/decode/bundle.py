"""A bundle, as a catalogue: the safe plane has read and checked all of it. No pickle is read."""

from shardscope.engine.formats.bundle import bundle_of
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the tensors that hold together; what is wrong with the others was reported."""
    bundle = bundle_of(decoder.probe, claim)
    for tensor in bundle.tensors() if bundle is not None else ():
        decoder.add(tensor)
    return facts

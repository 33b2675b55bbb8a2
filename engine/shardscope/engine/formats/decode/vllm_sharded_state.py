"""vLLM's sharded_state, as a catalogue: what each rank stored, and no whole tensor. No pickle is read.

The safe plane's `vllm.geometry` says that nothing records how the parts make a whole, and stands in the way of converting.
"""

from msgspec.structs import replace

from shardscope.engine.formats.decode.ranks import part_of_rank
from shardscope.engine.formats.decode.whole_safetensors import listed
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.vllm_sharded_state import rank_of


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the tensors of every rank, each labelled with its rank."""
    ranks = {entry.text: rank for entry in claim.files if (rank := rank_of(entry.name)) is not None}
    for tensor in listed(decoder.probe.tensors, claim.files):
        for item in tensor.fragments:
            rank = ranks[item.record.file]
            fragment = replace(item, label=rank)
            decoder.add(part_of_rank(tensor.name, tensor.dtype, tensor.shape, fragment, rank))
    return facts

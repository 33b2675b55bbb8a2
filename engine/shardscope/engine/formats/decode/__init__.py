"""What each family makes of its files once pickles are decoded: one closed table, a module loaded when it is asked for."""

from collections.abc import Callable
from typing import TypeAlias

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts

Decode: TypeAlias = Callable[[Decoder, Claim, Facts], Facts]
"""`decode(decoder, claim, facts)`: adds the claim's tensors to the decoder, reports what is wrong, and returns the facts of the
safe plane with what decoding knows better: confidence, topology, state, producer, and `opaque` without the files that were
decoded."""


def decode_of(format_name: str) -> Decode | None:  # noqa: C901 - one case a family
    """Return how a family lists its tensors; null for one that has no catalogue."""
    match format_name:
        case "torch_save":
            from shardscope.engine.formats.decode import torch_save

            return torch_save.decode
        case "hf_safetensors" | "mistral_consolidated" | "accelerate_offload":
            from shardscope.engine.formats.decode import whole_safetensors

            return whole_safetensors.decode
        case "hf_torch":
            from shardscope.engine.formats.decode import hf_torch

            return hf_torch.decode
        case "meta_consolidated":
            from shardscope.engine.formats.decode import meta_consolidated

            return meta_consolidated.decode
        case "nemo":
            from shardscope.engine.formats.decode import nemo

            return nemo.decode
        case "torch_dcp_safetensors":
            from shardscope.engine.formats.decode import dcp_safetensors

            return dcp_safetensors.decode
        case "vllm_sharded_state":
            from shardscope.engine.formats.decode import vllm_sharded_state

            return vllm_sharded_state.decode
        case "peft_adapter":
            from shardscope.engine.formats.decode import whole_safetensors

            return whole_safetensors.decode_adapter
        case "torch_dcp":
            from shardscope.engine.formats.decode import dcp

            return dcp.decode
        case "megatron_legacy":
            from shardscope.engine.formats.decode import megatron_legacy

            return megatron_legacy.decode
        case "deepspeed_zero":
            from shardscope.engine.formats.decode import deepspeed_zero

            return deepspeed_zero.decode
        case "deepspeed_universal":
            from shardscope.engine.formats.decode import deepspeed_universal

            return deepspeed_universal.decode
        case "megatron_dist":
            from shardscope.engine.formats.decode import megatron_dist

            return megatron_dist.decode
        case "fsdp_rank_files":
            from shardscope.engine.formats.decode import fsdp

            return fsdp.decode
        case "bundle":
            from shardscope.engine.formats.decode import bundle

            return bundle.decode
        case "accelerate_state":
            from shardscope.engine.formats.decode import accelerate_state

            return accelerate_state.decode
        case "gguf":
            from shardscope.engine.formats.decode import headers_only

            return headers_only.decode_gguf
        case "zarr":
            from shardscope.engine.formats.decode import zarr_chunks

            return zarr_chunks.decode_zarr
        case "orbax":
            from shardscope.engine.formats.decode import zarr_chunks

            return zarr_chunks.decode_orbax
        case "numpy":
            from shardscope.engine.formats.decode import headers_only

            return headers_only.decode_numpy
        case _:
            return None

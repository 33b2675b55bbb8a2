"""The closed list of format names, each with what a person calls it."""

from typing import Final

FORMAT_TITLES: Final = {
    "hf_safetensors": "Hugging Face safetensors",
    "hf_torch": "Hugging Face torch weights",
    "torch_save": "torch.save file",
    "peft_adapter": "PEFT adapter",
    "torch_dcp": "PyTorch distributed checkpoint (DCP)",
    "torch_dcp_safetensors": "PyTorch distributed checkpoint in safetensors",
    "fsdp_rank_files": "FSDP rank files",
    "accelerate_state": "Accelerate training state",
    "accelerate_offload": "Accelerate offload folder",
    "megatron_legacy": "Megatron-LM, one file a rank",
    "megatron_dist": "Megatron distributed checkpoint",
    "deepspeed_zero": "DeepSpeed ZeRO",
    "deepspeed_universal": "DeepSpeed Universal Checkpoint",
    "meta_consolidated": "Meta consolidated weights",
    "mistral_consolidated": "Mistral consolidated weights",
    "vllm_sharded_state": "vLLM sharded state",
    "bundle": "shardscope bundle",
    "gguf": "GGUF",
    "nemo": "NeMo archive",
    "orbax": "Orbax checkpoint",
    "numpy": "NumPy arrays",
    "zarr": "Zarr arrays",
    "tensorflow": "TensorFlow checkpoint",
    "keras": "Keras model",
    "onnx": "ONNX model",
    "composite": "Several checkpoints side by side",
    "ambiguous": "Ambiguous: several formats fit",
    "unknown": "Not a checkpoint format known here",
    "empty": "Nothing here",
}
"""By the name that `classification.format` carries."""

RECOGNISED_ONLY: Final = frozenset({"nemo", "tensorflow", "keras", "onnx"})
"""Formats whose files are told by names and first bytes, and which nothing here reads further."""

HEADERS_ONLY: Final = frozenset({"gguf", "numpy", "zarr", "orbax"})
"""Formats whose tensors are listed from headers, and which nothing here converts."""

NOT_CONVERTED: Final = RECOGNISED_ONLY | HEADERS_ONLY

DECODED: Final = (frozenset(FORMAT_TITLES) - NOT_CONVERTED | {"nemo"}) - {
    "composite",
    "ambiguous",
    "unknown",
    "empty",
}
"""Formats whose tensors decoding lists, so that it is worth asking for."""

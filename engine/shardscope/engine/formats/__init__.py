"""The checkpoint families, in one closed tuple.

Specific formats come first and claim their files; general ones look only at what is left. Nothing is discovered at run
time: a family that is not in this tuple does not exist.
"""

from typing import Final

from shardscope.engine.formats.accelerate_offload import ACCELERATE_OFFLOAD
from shardscope.engine.formats.accelerate_state import ACCELERATE_STATE
from shardscope.engine.formats.bundle import BUNDLE_FORMAT
from shardscope.engine.formats.dcp import TORCH_DCP
from shardscope.engine.formats.dcp_safetensors import TORCH_DCP_SAFETENSORS
from shardscope.engine.formats.deepspeed_universal import DEEPSPEED_UNIVERSAL
from shardscope.engine.formats.deepspeed_zero import DEEPSPEED_ZERO
from shardscope.engine.formats.fsdp import FSDP_RANK_FILES
from shardscope.engine.formats.gguf import GGUF
from shardscope.engine.formats.hf_safetensors import HF_SAFETENSORS
from shardscope.engine.formats.hf_torch import HF_TORCH
from shardscope.engine.formats.keras import KERAS
from shardscope.engine.formats.megatron_dist import MEGATRON_DIST
from shardscope.engine.formats.megatron_legacy import MEGATRON_LEGACY
from shardscope.engine.formats.meta_consolidated import META_CONSOLIDATED
from shardscope.engine.formats.mistral_consolidated import MISTRAL_CONSOLIDATED
from shardscope.engine.formats.nemo import NEMO
from shardscope.engine.formats.numpy_arrays import NUMPY_ARRAYS
from shardscope.engine.formats.onnx import ONNX
from shardscope.engine.formats.orbax import ORBAX
from shardscope.engine.formats.peft_adapter import PEFT_ADAPTER
from shardscope.engine.formats.protocol import Format
from shardscope.engine.formats.tensorflow import TENSORFLOW
from shardscope.engine.formats.torch_save import TORCH_SAVE
from shardscope.engine.formats.vllm_sharded_state import VLLM_SHARDED_STATE
from shardscope.engine.formats.zarr_arrays import ZARR_ARRAYS

FORMATS: Final[tuple[Format, ...]] = (
    BUNDLE_FORMAT,
    DEEPSPEED_UNIVERSAL,
    DEEPSPEED_ZERO,
    MEGATRON_LEGACY,
    MEGATRON_DIST,
    ACCELERATE_STATE,
    ACCELERATE_OFFLOAD,
    FSDP_RANK_FILES,
    TORCH_DCP,
    TORCH_DCP_SAFETENSORS,
    META_CONSOLIDATED,
    MISTRAL_CONSOLIDATED,
    VLLM_SHARDED_STATE,
    NEMO,
    ORBAX,
    TENSORFLOW,
    KERAS,
    ONNX,
    GGUF,
    PEFT_ADAPTER,
    HF_TORCH,
    HF_SAFETENSORS,
    NUMPY_ARRAYS,
    ZARR_ARRAYS,
    TORCH_SAVE,
)
"""Every family that inspection can recognise."""

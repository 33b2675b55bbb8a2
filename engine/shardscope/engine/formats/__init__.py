"""The checkpoint families, in one closed tuple.

Specific formats come first and claim their files; general ones look only at what is left. Nothing is discovered at run
time: a family that is not in this tuple does not exist.
"""

from typing import Final

from shardscope.engine.formats.hf_safetensors import HF_SAFETENSORS
from shardscope.engine.formats.hf_torch import HF_TORCH
from shardscope.engine.formats.peft_adapter import PEFT_ADAPTER
from shardscope.engine.formats.protocol import Format
from shardscope.engine.formats.torch_save import TORCH_SAVE

FORMATS: Final[tuple[Format, ...]] = (
    PEFT_ADAPTER,
    HF_TORCH,
    HF_SAFETENSORS,
    TORCH_SAVE,
)
"""Every family that inspection can recognise."""

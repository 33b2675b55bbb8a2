"""The names that Accelerate gives the parts of a saved state (`checkpointing.py`, `utils/fsdp_utils.py`, `utils/constants.py`)."""

import re
from typing import Final

from shardscope.engine.formats.folder import Folder

RANDOM: Final = re.compile(r"random_states_(?P<rank>\d{1,9})\.pkl")
SHARDED: Final = re.compile(r"(?P<part>pytorch_model_fsdp|optimizer)_\d{1,9}")
"""Folders, each with a distributed save in it."""
FULL: Final = re.compile(r"pytorch_model_fsdp(_\d{1,9})?\.bin")
OTHER: Final = re.compile(
    r"(optimizer|scheduler|sampler|dl_state_dict)(_\d{1,9})?\.bin|scaler\.pt|custom_checkpoint_\d{1,9}\.pkl"
)
WEIGHTS: Final = re.compile(
    r"model([-_.].*)?\.safetensors(\.index(\.[\w-]+)?\.json)?|pytorch_model([-_.].*)?\.bin(\.index(\.[\w-]+)?\.json)?"
)
"""Hugging Face weights, as a state without FSDP holds them."""


def is_state(folder: Folder) -> bool:
    """Tell whether the names of a folder are those of a saved state.

    Random states are in every one of them, the FSDP names in no other layout. An optimizer beside weights is not enough: other
    trainers leave that, too.
    """
    return (
        any(RANDOM.fullmatch(name) for name in folder.named("pkl"))
        or any(FULL.fullmatch(name) for name in folder.named("bin"))
        or any(SHARDED.fullmatch(name) and name.startswith("pytorch") for name in folder.folders)
    )

"""What a file is for, as far as its name tells. Roles never decide a format; they sort the inventory for a person."""

import re
from functools import lru_cache
from typing import Final

from shardscope.engine.parse.sniff import unfinished_download

_NAMES: Final = {
    "index": r".+\.(safetensors|bin)\.index(\.[\w-]+)?\.json",
    "adapter config": r"adapter_config\.json",
    "adapter": r"adapter_model\.(safetensors|bin|pt)",
    "config": (
        r"(config|params|generation_config|model_index|quantize_config|preprocessor_config|processor_config"
        r"|fsdp_config|model_config|configuration)\.(json|ya?ml)"
    ),
    "tokenizer": (
        r"tokenizer.*|vocab.*|merges\.txt|special_tokens_map\.json|added_tokens\.json|spiece\.model"
        r"|sentencepiece.*\.model|.*\.tiktoken|chat_template.*"
    ),
    "tracker": r"latest|latest_universal|latest_checkpointed_iteration\.txt",
    "metadata": r"\.metadata|__\d+\.metadata|metadata\.json|common\.pt|\.metadata\.tmp",
    "progress": r"trainer_state\.json|training_args\.bin|train_state.*",
    "optimizer": r"optimizer.*\.(bin|pt|pth)|.*_optim_states\.pt|distrib_optim\.pt|optim_.*\.pt",
    "scheduler": r"scheduler.*\.(bin|pt|pth)",
    "rng": r"rng_state.*\.pth|random_states_\d+\.pkl",
    "scaler": r"scaler\.pt",
    "data position": r"sampler.*\.bin|dl_state_dict.*\.bin|dataloader.*",
    "weights": r".+\.(safetensors|bin|pt|pth|ckpt|distcp|gguf|npz|npy|h5|hdf5|keras|onnx|msgpack|nemo|pdparams)",
    "pickle": r".+\.(pkl|pickle|joblib|dill)",
    "code": r".+\.(py|pyc|so|sh|ipynb)",
    "document": r".+\.(md|txt|rst|pdf|html)|licen[cs]e.*|readme.*|notice.*|use_policy.*",
    "version control": r"\.git(attributes|ignore|modules)?",
}
_TABLE: Final = tuple(
    (role, re.compile(pattern, re.ASCII | re.IGNORECASE)) for role, pattern in _NAMES.items()
)
"""The first role whose pattern is the whole name."""

COMPANIONS: Final = frozenset({"optimizer", "scheduler", "rng", "scaler", "progress", "data position"})
"""Roles of files that stand beside weights and are part of the same save."""


_COMPANION: Final = re.compile(
    "|".join(f"(?:{_NAMES[role]})" for role in sorted(COMPANIONS)), re.ASCII | re.IGNORECASE
)


def is_companion(name: str) -> bool:
    """Tell whether a name has one of the roles in `COMPANIONS`; ten times as fast as asking for the role of every file."""
    return _COMPANION.fullmatch(name) is not None and role_of(name) in COMPANIONS


@lru_cache(maxsize=4096)
def role_of(name: str) -> str:
    """Return the role of a file by its name alone; `other` where it says nothing."""
    if unfinished_download(name) is not None:
        return "unfinished"
    return next((role for role, pattern in _TABLE if pattern.fullmatch(name)), "other")

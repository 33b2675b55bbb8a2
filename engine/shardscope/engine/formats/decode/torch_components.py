"""Which part of a training state a tensor of a torch.save file is of, by the keys at the top of the file."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from shardscope.engine.formats.roles import role_of
from shardscope.engine.model.decoded import Component

_OPTIMIZER: Final = re.compile(r"(\w+_)?optim(izer)?s?(_?states?)?(_?dicts?)?", re.IGNORECASE)
_MODEL: Final = re.compile(
    r"(model|module|net|network|weights)(_?states?)?(_?dict)?|state_?dict", re.IGNORECASE
)
_OTHER: Final = re.compile(
    r".*(rng|random).*|.*sched(uler)?s?(_?states?)?(_?dicts?)?|.*scaler(_?state)?(_?dict)?|loops|callbacks"
    r"|hyper_?parameters|args|hparams|config|sampler.*|dataloader.*",
    re.IGNORECASE,
)
_OWN_FILES: Final[Mapping[str, Component]] = {
    "optimizer": "optimizer",
    "scheduler": "other",
    "rng": "other",
    "scaler": "other",
    "progress": "other",
    "data position": "other",
}
_OPTIMIZER_KEYS: Final = frozenset({"state", "param_groups"})


_PARTS: Final[Mapping[str, re.Pattern[str]]] = {
    part: re.compile(pattern, re.IGNORECASE)
    for part, pattern in (
        ("scheduler", r"(.*_)?sched(uler)?s?(_?states?)?(_?dicts?)?"),
        ("rng", r".*(rng|random)(_?states?)?(_?dicts?)?"),
        ("scaler", r"(.*_)?scaler(_?state)?(_?dict)?"),
        ("progress", r"(last_)?(epoch|step|iteration|iter)s?|global_?steps?|loops|train_?state"),
        ("data_position", r"(data_?)?sampler(_?state)?(_?dict)?|data_?loader(_?state)?(_?dict)?"),
    )
}
"""Keys at the top of a training state, by the part of a state scope that they are."""


def parts_of(top: Iterable[str]) -> dict[str, str]:
    """Return the parts of a state scope that keys at the top of a file are named for, each with its first key."""
    found: dict[str, str] = {}
    for key in top:
        for part, pattern in _PARTS.items():
            if pattern.fullmatch(key):
                found.setdefault(part, key)
    return found


class Components:
    """The parts of one file. `top` are the keys at its top, each with whether its value holds others."""

    def __init__(self, file: str, top: Mapping[str, bool]) -> None:
        self._whole = _OWN_FILES.get(role_of(file))
        if self._whole is None and top.keys() >= _OPTIMIZER_KEYS:
            self._whole = "optimizer"
        self._held = any(held and _MODEL.fullmatch(key) for key, held in top.items())
        self._top = top
        self._known: dict[str | None, Component] = {}

    def of(self, key: str | None) -> Component:
        """Return the part of what lies under a key at the top; null is a file that is no mapping.

        Where a key is named like a model, nothing else is one; otherwise all is that is not named for something else.
        """
        if key not in self._known:
            self._known[key] = self._of(key)
        return self._known[key]

    def _of(self, key: str | None) -> Component:
        if self._whole is not None:
            return self._whole
        if key is None:
            return "model"
        held = self._top.get(key, False)
        if held and _OPTIMIZER.fullmatch(key):
            return "optimizer"
        if self._held:
            return "model" if held and _MODEL.fullmatch(key) else "other"
        return "other" if _OTHER.fullmatch(key) and "." not in key else "model"

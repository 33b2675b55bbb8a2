"""The state scope as far as the roles of files tell: opaque files are never called present, silence never absent."""

from collections.abc import Iterable, Sequence

import msgspec

from shardscope.engine.formats.roles import role_of
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted

_PARTS = {
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "rng": "rng",
    "scaler": "scaler",
    "progress": "progress",
    "data position": "data_position",
}
_SHOWN = 8


def scope_of(files: Iterable[Entry], weights: StatePart, *, inside: str | None = None) -> StateScope:
    """Return the state scope of a checkpoint whose weights are known and whose other parts only have names.

    `inside` is the reason why a part without a file of its own can be in opaque files all the same: it is then unknown.
    """
    by_part: dict[str, list[Entry]] = {}
    for entry in files:
        part = _PARTS.get(role_of(entry.name))
        if part is not None:
            by_part.setdefault(part, []).append(entry)
    parts = {part: _named(part, by_part.get(part, [])) for part in _PARTS.values()}
    if inside is not None:
        hidden = StatePart(Presence.UNKNOWN, Basis.UNKNOWN, inside)
        parts = {part: found if part in by_part else hidden for part, found in parts.items()}
    return msgspec.structs.replace(StateScope(weights=weights), **parts)


def _named(part: str, files: list[Entry]) -> StatePart:
    words = part.replace("_", " ")
    if not files:
        return StatePart(Presence.ABSENT, Basis.INFERRED, f"no file is named like {words} state")
    names = tuple(entry.text for entry in files[:_SHOWN])
    readable = [entry for entry in files if entry.name.endswith(".json")]
    if readable:
        return StatePart(Presence.PRESENT, Basis.OBSERVED, f"{readable[0].text} is readable JSON", names)
    return StatePart(
        Presence.OPAQUE,
        Basis.INFERRED,
        f"{counted(len(files), 'file')} named like {words} state, not examined",
        names,
    )


def opaque_part(files: Sequence[Entry], what: str) -> StatePart:
    """Return the part that some files hold, unseen; `what` tells what they are: "of model states"."""
    if not files:
        return StatePart(Presence.ABSENT, Basis.INFERRED, f"no file {what}")
    says = f"{counted(len(files), 'file')} {what}, not examined"
    return StatePart(Presence.OPAQUE, Basis.INFERRED, says, tuple(entry.text for entry in files[:_SHOWN]))

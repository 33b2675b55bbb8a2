"""What can be looked at alone: the saves that stand side by side in a folder, or the parts of a composite one."""

import re
from typing import Final

from msgspec import Struct

from shardscope.engine.model.descriptor import Component, Descriptor
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.source import Inventory, Kind

CANDIDATE: Final = "candidate"
"""The kind of a component that is one of several saves, of which nothing says which is meant."""
COMPOSITE: Final = "composite"
_NUMBERS: Final = re.compile(r"\d+")


class PartOf(Struct, frozen=True):
    """One save or one part."""

    name: str
    kind: str
    format: str
    """What a person calls its format; empty for companions such as a tokenizer."""
    size: int
    files: str
    """How many files it has."""
    named_by: str
    """The tracker that names it; empty where none does."""
    path: bytes | None
    """What to open for it, relative to the root; None where it shares its folder with others or has no format."""

    @property
    def is_save(self) -> bool:
        """Whether it is one of several saves, and no part."""
        return self.kind == CANDIDATE


def parts_of(descriptor: Descriptor, inventory: Inventory) -> tuple[PartOf, ...]:
    """Return the saves in the order of the numbers in their names, or the parts of a composite checkpoint, or nothing."""
    saves = [each for each in descriptor.components if each.kind == CANDIDATE]
    if not saves and descriptor.classification.format != COMPOSITE:
        return ()
    paths: dict[str, bytes | None] = {}
    for entry in inventory.entries:
        wanted = Kind.DIRECTORY if saves else Kind.FILE
        if entry.kind is wanted:
            # Two names that look alike cannot be told apart by what is shown: neither is opened.
            paths[entry.text] = None if entry.text in paths else entry.path
    if saves:
        found = [_part(each, each.note or "", paths.get(each.name)) for each in saves]
        return tuple(sorted(found, key=lambda each: _natural(each.name)))
    return tuple(_part(each, _files(each), _alone(each, descriptor, paths)) for each in descriptor.components)


def recommended(parts: tuple[PartOf, ...]) -> int:
    """Return where a cursor starts: on the save that a tracker names, or the last one; on the first part."""
    if not parts or not parts[0].is_save:
        return 0
    return next((at for at, each in enumerate(parts) if each.named_by), len(parts) - 1)


def _part(component: Component, files: str, path: bytes | None) -> PartOf:
    formats = (component.format or "").split(" and ")
    title = " and ".join(FORMAT_TITLES.get(each, each) for each in formats)
    named_by = component.named_by or ""
    return PartOf(component.name, component.kind, title, component.bytes, files, named_by, path)


def _files(component: Component) -> str:
    count = len(component.files)
    return f"{count:,} file{'' if count == 1 else 's'}"


def _alone(component: Component, descriptor: Descriptor, paths: dict[str, bytes | None]) -> bytes | None:
    """Return the folder that holds a part and no other, or its single file."""
    if component.format is None or not component.files:
        return None
    files = [paths.get(file) for file in component.files]
    own = [file for file in files if file is not None]
    if len(own) < len(files):
        return None
    folder = _common_folder(own)
    others = (
        paths.get(file) or b""
        for each in descriptor.components
        if each is not component
        for file in each.files
    )
    if folder and not any(file.startswith(folder + b"/") for file in others):
        return folder
    return own[0] if len(own) == 1 else None


def _common_folder(paths: list[bytes]) -> bytes:
    first, last = min(paths).split(b"/")[:-1], max(paths).split(b"/")[:-1]
    common = []
    for one, other in zip(first, last, strict=False):
        if one != other:
            break
        common.append(one)
    return b"/".join(common)


def _natural(name: str) -> str:
    return _NUMBERS.sub(lambda digits: digits.group().zfill(12), name)

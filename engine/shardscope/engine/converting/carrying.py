"""Configuration, tokenizer and licences that come along with an output: copied as they are, never run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.formats.roles import role_of
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.plan import CarriedFile
from shardscope.engine.model.source import Entry, Inventory
from shardscope.engine.source.source import Source

ROLES: Final = frozenset({"config", "adapter config", "tokenizer"})
"""Files that loaders read as data. Code never comes along."""
DOCUMENTS: Final = frozenset({"LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", "USE_POLICY.md"})
MOST_BYTES: Final = 256 << 20
"""Of one carried file: a vocabulary is large, weights are larger."""
FOLDERS: Final = (b"", b"huggingface", b"hf_weights", b"context")
"""Where configuration stands, relative to a checkpoint."""


class Beside(Struct, frozen=True):
    """A folder that a person named for configuration, as it was when the plan was made."""

    path: str
    inventory: Inventory


def beside(path: str, limits: Limits | None = None) -> Beside:
    """Return the folder at `path`. Raises `Fault`: those of `Source`, `convert.config_folder`."""
    with Source(path, limits=limits or Limits()) as source:
        inventory = source.walk()
    if inventory.root_is_file:
        raise Fault("convert.config_folder", file=path)
    return Beside(path, inventory)


def carried_files(inventory: Inventory) -> tuple[CarriedFile, ...]:
    """Return what comes along from a folder; the first of a name counts."""
    found: dict[str, CarriedFile] = {}
    for folder in FOLDERS:
        for entry in inventory.by_folder.get(folder, ()):
            if carries(entry) and entry.name not in found:
                found[entry.name] = CarriedFile(entry.name, entry.text, entry.size)
    return tuple(found.values())


def carries(entry: Entry) -> bool:
    """Tell whether a file comes along: a plain name, a role of configuration or a licence, and no more bytes than such files have."""
    if entry.size > MOST_BYTES or not entry.name.isascii() or not entry.name.isprintable():
        return False
    return role_of(entry.name) in ROLES or entry.name in DOCUMENTS


@contextmanager
def opening(folder: Beside | None, here: Opener) -> Iterator[Opener]:
    """Give what opens carried files: those of a named folder, or with null those of the source, by `here`."""
    if folder is None:
        yield here
        return
    entries = {entry.text: entry for entry in folder.inventory.files}
    with Source(folder.path, limits=Limits()) as source:
        yield lambda name: source.open(entries[name])

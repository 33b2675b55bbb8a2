"""Short words for tests of formats: look at a checkpoint, list its codes."""

import shutil
from pathlib import Path

from shardscope.engine import inspect
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.descriptor import Descriptor

FIXTURES = Path(__file__).parents[1] / "fixtures"


def look(path: Path) -> Descriptor:
    """Inspect without digests."""
    return inspect(path, digest="none").descriptor


def codes(descriptor: Descriptor) -> set[str]:
    """Return the codes of all blockers."""
    return {item.code for item in descriptor.blockers}


def errors(descriptor: Descriptor) -> set[str]:
    """Return the codes of the blockers that are errors."""
    return {item.code for item in descriptor.blockers if item.severity == "error"}


def the(descriptor: Descriptor, code: str) -> Blocker:
    """Return the first blocker of that code."""
    return next(item for item in descriptor.blockers if item.code == code)


def copied(fixture: str, to: Path) -> Path:
    """Copy the checkpoint of a fixture (`family/name`) into the folder `to`, to break it there; return `to`."""
    return shutil.copytree(FIXTURES / fixture / "checkpoint", to, dirs_exist_ok=True)

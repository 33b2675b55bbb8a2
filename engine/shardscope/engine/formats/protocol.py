"""The protocol of every checkpoint family: recognise a folder, then describe it.

A format is a module that holds one object with a `name`, a `recognise` and a `describe`. `recognise` looks at names and
at as few bytes as it needs to say what it sees; `describe` reads what it needs to list tensors, topology and state. All
contact with files goes through the `Probe`, which bounds, remembers and reports every read.
"""

from typing import Protocol

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Alternative, Confidence, Evidence
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import StateScope
from shardscope.engine.model.topology import Topology


class Claim(Struct, frozen=True):
    """A format says: these files are mine, and here is why."""

    format: str
    folder: bytes
    files: tuple[Entry, ...]
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    owned: tuple[bytes, ...] = ()
    """Folders below `folder` that belong to this claim with everything in them: no other format looks there."""


class Facts(Struct, frozen=True):
    """What a format found out about its claim. Tensors and blockers went to the probe on the way."""

    confidence: Confidence
    """The confidence after looking closer: higher where headers and index agree, lower where they do not."""
    evidence: tuple[Evidence, ...] = ()
    components: tuple[Component, ...] = ()
    producer: tuple[ProducerFact, ...] = ()
    topology: Topology = Topology()
    state: StateScope = StateScope()
    opaque: tuple[Entry, ...] = ()
    """Files whose content is not examined in the safe plane."""
    code_references: tuple[str, ...] = ()
    weight_bytes: int | None = None
    """Bytes of the model weights as full tensors; null where they cannot be known without decoding."""
    weight_reason: str | None = None
    """One clause: why `weight_bytes` is null, where it is not for opaque files."""
    model: ModelFacts | None = None
    """What the checkpoint declares of its model, for mapping tables."""


class Hint(Struct, frozen=True):
    """What a folder must hold for a format to be asked about it: one file of a suffix, or one folder of a name.

    Most folders of a large tree hold neither, and cost nothing then. A hint that is too wide costs time, one that is too
    narrow hides a format.
    """

    suffixes: tuple[str, ...] = ()
    """As in `Folder.suffixes`, up to the first hyphen: `data` stands for `data-00000-of-00002`."""
    folders: tuple[str, ...] = ()
    """How the name of a folder begins."""


class Format(Protocol):
    """One checkpoint family."""

    name: str
    """The name that the descriptor uses."""
    general: bool
    """A general format looks only at what the specific ones left."""
    hint: Hint

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Return a claim, or why this format was considered and rejected, or None where nothing hints at it."""
        ...

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Read what the claim's files tell in the safe plane."""
        ...

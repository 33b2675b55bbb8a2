"""Capabilities and checkpoints made for the tests of the diagnostic: none of them is qualified."""

from typing import Any

import msgspec

from shardscope.engine.model.capability import Capability, Requirement
from shardscope.engine.model.descriptor import ProducerFact
from shardscope.engine.model.evidence import Basis, Classification, Confidence, Status
from shardscope.engine.version import __version__

DCP = Capability(
    schema="shardscope.capability/1",
    id="dcp-torch-2.9.1-llama",
    format="torch_dcp",
    producer="torch",
    producer_version="2.9.1",
    model_family="llama",
    adapter_version="0.1.0",
    extra="dcp",
    project_version=__version__,
    requires=(Requirement("torch", "2.9.1"),),
    producer_revision=None,
)
INSTALLED = {"torch": "2.9.1"}


def capability(**changes: Any) -> Capability:
    """Return the capability with some fields replaced."""
    return msgspec.structs.replace(DCP, **changes)


def as_document(**changes: Any) -> dict[str, Any]:
    """Return the capability as JSON would hold it, with some fields replaced."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(DCP))
    return document | changes


def found(format_name: str = "torch_dcp", status: Status = Status.CONDITIONAL) -> Classification:
    """Return what inspection would have found."""
    return Classification(format_name, status, Confidence.LOW, (), ())


def wrote(name: str, version: str | None, basis: Basis = Basis.DECLARED) -> ProducerFact:
    """Return a fact about the producer."""
    return ProducerFact(name, version, basis, "a field of the checkpoint")

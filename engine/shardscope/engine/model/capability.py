"""One exact capability: which adapter reads what one exact version of one exact producer wrote.

A capability is a statement about software. It says nothing about the checkpoint in front of us, and naming one
installs nothing, opens nothing and makes no claim of support.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from shardscope.engine.model import schemas
from shardscope.engine.model.qualification import Qualification

Id = Annotated[str, Meta(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$(?!\n)", max_length=80)]
"""Lower-case words joined by dots, hyphens or underscores: harmless wherever it is shown."""
DistributionName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$(?!\n)", max_length=100)
]
"""The name of a distribution (PEP 508)."""
ExactVersion = Annotated[str, Meta(pattern=r"^[0-9][0-9A-Za-z.!+_-]*$(?!\n)", max_length=64)]
"""One version. A range, a comparison or a wildcard is no exact version and does not fit."""
Revision = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$(?!\n)")]
"""The commit of a source tree, in full."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$(?!\n)", max_length=80)]

PINNED_BY_REVISION: Final = ("deepspeed_",)
"""Formats, by the beginning of their names, whose layout moves between releases of the producer, so that a version
alone does not pin it (DeepSpeed, `deepspeed/utils/zero_to_fp32.py`)."""


class Requirement(Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution that the adapter needs, in one exact version."""

    distribution: DistributionName
    version: ExactVersion


class Capability(Struct, frozen=True, forbid_unknown_fields=True):
    """One adapter for one exact producer, version and family of models. There is no generic one."""

    schema: Literal["shardscope.capability/1"]
    id: Id
    format: str
    """A name of the closed list of formats."""
    producer: Name
    """As descriptors spell it under `producer`: `torch`, `megatron-core`, `deepspeed`, ..."""
    producer_version: ExactVersion
    model_family: Name
    adapter_version: ExactVersion
    extra: Id
    """The extra of shardscope that would bring the adapter: `shardscope[EXTRA]`."""
    project_version: ExactVersion
    """The version of shardscope that the adapter was made for."""
    requires: tuple[Requirement, ...]
    producer_revision: Revision | None
    """The exact source of the producer, where a version does not pin the layout."""


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the registry: a capability and the seven items that were retained when it was qualified."""

    capability: Capability
    retained: Qualification


SCHEMA: Final = schemas.CAPABILITY

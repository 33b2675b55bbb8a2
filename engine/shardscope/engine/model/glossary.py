"""Eight terms that are all called sharding, and that mean eight different things."""

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from shardscope.engine.model.sources import SourceId

Text = Annotated[str, Meta(min_length=1, max_length=600)]


class Reading(StrEnum):
    """Whose words a meaning rests on."""

    DOCUMENTED = "documented"
    """The sources that are cited say so."""
    OURS = "our reading"
    """This project's interpretation, marked as such."""


class Term(Struct, frozen=True, forbid_unknown_fields=True):
    """One term: what it means, and what shardscope does with it today."""

    id: Annotated[str, Meta(pattern=r"^[a-z]+(-[a-z]+)*$(?!\n)")]
    term: Text
    meaning: Text
    relevance: Text
    reading: Reading
    sources: Annotated[tuple[SourceId, ...], Meta(min_length=1)]


class Glossary(Struct, frozen=True, forbid_unknown_fields=True):
    """The eight terms."""

    schema: Literal["shardscope.glossary/1"]
    version: Text
    terms: Annotated[tuple[Term, ...], Meta(min_length=8, max_length=8)]

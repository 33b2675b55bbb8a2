"""The data that this package carries: the support matrix, the glossary and the register of sources.

They are read with the same bounded parser and the same strict types as anything from outside.
"""

from functools import cache
from importlib.resources import files
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from shardscope.engine.model import schemas
from shardscope.engine.model.glossary import Glossary
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.matrix import SupportMatrix
from shardscope.engine.model.sources import SourceRegister
from shardscope.engine.parse.json import parse_json

D = TypeVar("D", bound=Struct)

MATRIX: Final = "support-matrix.json"
GLOSSARY: Final = "glossary.json"
SOURCES: Final = "sources.json"
SCHEMA_FILES: Final = {
    "support-matrix.schema.json": schemas.MATRIX,
    "glossary.schema.json": schemas.GLOSSARY,
    "sources.schema.json": schemas.SOURCES,
    "capability.schema.json": schemas.CAPABILITY,
}
"""The JSON Schemas that stand beside the data, and the document that each is for."""


def packaged(name: str) -> bytes:
    """Return a file of the package's data."""
    return files(__package__).joinpath("data", name).read_bytes()


def _read(name: str, kind: type[D]) -> D:
    return msgspec.convert(parse_json(packaged(name), Limits()).value, kind)


@cache
def support_matrix() -> SupportMatrix:
    """Return what is claimed of each subject: the authority for every table that shows it."""
    return _read(MATRIX, SupportMatrix)


@cache
def glossary() -> Glossary:
    """Return the eight terms."""
    return _read(GLOSSARY, Glossary)


@cache
def sources() -> SourceRegister:
    """Return the register that every claim cites."""
    return _read(SOURCES, SourceRegister)

"""The mapping tables that this package carries, and those that a person gives: one closed list, read like anything from outside."""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapping import MappingDocument
from shardscope.engine.parse.json import parse_json

MEGATRON: Final = "megatron-core"
VLLM: Final = "vllm-sharded"
META: Final = "meta-release"
NAMES: Final = (
    MEGATRON,
    VLLM,
    META,
    "hf-llama",
    "hf-mixtral",
    "hf-gpt2",
    "megatron-llama",
    "megatron-mixtral",
    "megatron-gpt2",
    "vllm-llama",
    "meta-llama",
)
"""Every packaged table: layouts first."""


@cache
def table(name: str) -> MappingDocument:
    """Return a packaged table. Raises `KeyError` for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise KeyError(name)
    return read_table(files(__package__).joinpath("data", f"{name}.json").read_bytes(), Limits())


def tables() -> tuple[MappingDocument, ...]:
    """Return every packaged table."""
    return tuple(table(name) for name in NAMES)


def read_table(data: bytes, limits: Limits) -> MappingDocument:
    """Return the table that a JSON document holds. What it says of templates and sections is checked where it is put to use.

    Raises `Fault`: those of JSON, and `mapping.invalid`.
    """
    try:
        return msgspec.convert(parse_json(data, limits).value, MappingDocument)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at ")
        raise Fault("mapping.invalid", table="", place=place or "$", reason=reason) from None

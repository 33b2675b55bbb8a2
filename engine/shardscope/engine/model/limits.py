"""Every bound on what inspection reads, in one struct whose every field is a promise.

A limit that is reached ends in the blocker `limit.<field>`, never in a truncated answer. The values in force
are printed in each descriptor.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Positive = Annotated[int, Meta(ge=1)]


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on reading. Units are in the field's name: `_bytes`, otherwise a count."""

    files: Positive = 1_000_000
    """Entries (files, folders, links) in one inventory."""
    path_depth: Positive = 64
    """Folders between the root and a file."""
    path_bytes: Positive = 4_096
    """Bytes of one path relative to the root."""
    json_bytes: Positive = 128 << 20
    """Bytes of one JSON file."""
    json_depth: Positive = 64
    """Nested arrays and objects in one JSON document."""
    json_nodes: Positive = 5_000_000
    """Values in one JSON document."""
    header_bytes: Positive = 100_000_000
    """Bytes of one safetensors header: the reference parser's own ceiling."""
    header_bytes_total: Positive = 4 << 30
    """Bytes of all safetensors headers of one inspection."""
    tensors: Positive = 5_000_000
    """Tensors in one inspection."""
    tensor_rank: Positive = 64
    """Dimensions of one tensor."""
    zip_directory_bytes: Positive = 64 << 20
    """Bytes of one zip central directory."""
    zip_entries: Positive = 1_000_000
    """Entries of one zip central directory."""
    fragment_steps: Positive = 20_000_000
    """Steps of proving that the fragments of all tensors cover them: one for each fragment on each stretch it lies on."""
    digest_bytes: Positive = 1 << 30
    """Bytes hashed in one inspection by `--digest auto`."""
    findings: Positive = 1_000
    """Findings reported for one file; the rest is counted."""
    parses_in_flight: Positive = 4
    """Files parsed at once, at the most. Inspection parses one after the other, so it never gets near."""


def with_overrides(limits: Limits, overrides: dict[str, int]) -> Limits:
    """Return `limits` with some fields replaced.

    Raises `msgspec.ValidationError` for an unknown field or a value below 1.
    """
    return msgspec.convert(msgspec.to_builtins(limits) | overrides, Limits)


def limit_names() -> tuple[str, ...]:
    """Return the names that `--limit NAME=VALUE` accepts."""
    return Limits.__struct_fields__


class DecodeLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on reading the opcodes of one pickle stream, and on what else decoding reads. In force only where it was asked for.

    Built memory is an estimate that depends on nothing but the bytes: 40 bytes for each opcode, long texts and integers by
    their length, and what facts repeat.
    """

    pickle_bytes: Positive = 512 << 20
    """Bytes of one stream."""
    pickle_opcodes: Positive = 50_000_000
    """Opcodes of one stream."""
    pickle_stack: Positive = 10_000_000
    """Objects on the stack at once, marks included."""
    pickle_memo: Positive = 50_000_000
    """Objects that one pickle keeps for reuse."""
    pickle_depth: Positive = 1_000
    """Open marks, and containers within containers. Python's own pickler stops near this."""
    pickle_elements: Positive = 10_000_000
    """Elements of one list, tuple, set or mapping; a mapping counts its keys and its values."""
    pickle_string_bytes: Positive = 128 << 20
    """Bytes of one text or one run of bytes."""
    pickle_integer_bytes: Positive = 65_536
    """Bytes of one integer, or digits of one that is written in text."""
    pickle_nodes: Positive = 20_000_000
    """Facts that one stream comes to: shared ones count once."""
    pickle_built_bytes: Positive = 2 << 30
    """Estimated memory of everything that is built."""
    pickle_seconds: Positive = 300
    """Seconds on the clock, looked at every few thousand opcodes."""
    decompressed_bytes: Positive = 256 << 30
    """Bytes that compressed items of one save are decompressed to, to learn where their tensors lie."""
    worker_bytes: Positive = 2 << 30
    """Address space of the worker that reads them, its interpreter included."""
    reply_bytes: Positive = 256 << 20
    """Bytes of what the worker says of one stream."""


def decode_limit_names() -> tuple[str, ...]:
    """Return the names of the limits on decoding."""
    return DecodeLimits.__struct_fields__

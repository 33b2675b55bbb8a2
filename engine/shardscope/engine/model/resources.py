"""How many bytes there are and how many a conversion would need: figures of the checkpoint, not of this host."""

from msgspec import Struct

from shardscope.engine.model.evidence import Basis


class Estimate(Struct, frozen=True):
    """A number of bytes with its basis. `bytes` is null where it cannot be known; it is never guessed."""

    bytes: int | None
    basis: Basis
    note: str


class Resources(Struct, frozen=True):
    """The five figures of R105, each with its basis or null."""

    source_bytes: Estimate
    """What the files hold."""
    logical_bytes: Estimate
    """What the full tensors hold."""
    output_bytes: Estimate
    """What canonical safetensors of the model weights would hold."""
    temporary_bytes: Estimate
    """What staging needs beside the output."""
    peak_ram_bytes: Estimate

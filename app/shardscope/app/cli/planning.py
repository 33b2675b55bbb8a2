"""The options that plan, convert and their like share, and what they come to."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shardscope.app.cli.examine import split_limits
from shardscope.app.cli.limit import UNITS
from shardscope.app.cli.text import TEXT

if TYPE_CHECKING:
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.escalation import Operation
    from shardscope.engine.model.limits import Limits
    from shardscope.engine.model.plan import PlanOptions, RenameRule

F = TypeVar("F", bound=Callable[..., object])

DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
CASTS = {"keep": "keep", "bf16": "BF16", "f16": "F16", "f32": "F32"}


class Size(click.ParamType[int]):
    """A number of bytes, which may carry a unit: `5GB` (decimal), `512MiB` (binary)."""

    name = "size"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        """Return what help shows in place of the value."""
        return "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        if isinstance(value, int):
            return value
        count = bytes_in(str(value))
        if count is None:
            self.fail("give a number of bytes of 1 or more, such as 512MiB or 5GB.", param, ctx)
        return count


def bytes_in(text: str) -> int | None:
    """Return the bytes that a person wrote; null where that is no number of 1 or more."""
    found = re.fullmatch(r"([0-9][0-9_]{0,30})\s*([KMGT]i?B)?", text.strip(), re.IGNORECASE)
    unit = "" if found is None else (found[2] or "").upper()
    count = 0 if found is None else int(found[1]) * {**UNITS, **DECIMAL}[unit]
    return count if count >= 1 else None


def choosing(command: F) -> F:
    """Add the options that say what is written, and how."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_SIZES = (
    click.option(
        "--memory",
        type=Size(),
        default="256MiB",
        show_default=True,
        help="Bytes of buffers, all workers together.",
    ),
    click.option(
        "--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Threads that copy."
    ),
    click.option(
        "--digest",
        type=click.Choice(["sha256", "none"]),
        default="sha256",
        show_default=True,
        help="Of the output files.",
    ),
    click.option(
        "--digest-source",
        is_flag=True,
        help="Hash the source, too, before and after, and record it in the manifest.",
    ),
)
_ALONG = (
    click.option(
        "--config",
        metavar="DIR",
        type=click.Path(),
        help="Carry configuration and tokenizer from here, not from beside the source.",
    ),
    click.option(
        "--carry/--no-carry",
        default=True,
        show_default=True,
        help="Copy configuration and tokenizer files along.",
    ),
)


def _verify(default: str) -> Callable[[F], F]:
    return click.option(
        "--verify",
        type=click.Choice(["full", "sample", "headers"]),
        default=default,
        show_default=True,
        help="How much of the staged output is compared with the source before it is promoted.",
    )


def copying(command: F) -> F:
    """Add the options of a command that copies tensors as they are: what it may take, what it compares, what comes along."""
    for option in reversed((*_SIZES, _verify("full"), *_ALONG)):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--decode",
        is_flag=True,
        help="Read pickles as data in a contained worker, for this run. Nothing is executed; see docs/decoding.md.",
    ),
    click.option(
        "--component",
        type=click.Choice(["model", "optimizer", "other", "all"]),
        default="model",
        show_default=True,
        help="Which tensors are written.",
    ),
    click.option(
        "--include",
        metavar="GLOB",
        type=TEXT,
        multiple=True,
        help="Only names of the source that match; may be repeated.",
    ),
    click.option(
        "--exclude", metavar="GLOB", type=TEXT, multiple=True, help="Not names that match; may be repeated."
    ),
    click.option(
        "--rename",
        metavar="FILE",
        type=click.Path(),
        help="Ordered rules of renaming, see `shardscope schema renames`.",
    ),
    click.option(
        "--mapping",
        metavar="NAME|FILE",
        help="A mapping table that makes a model's own names of a producer's.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(list(CASTS)),
        default="keep",
        show_default=True,
        help="Cast floats, round to nearest even. Integers, booleans and floats of eight bits and less stay.",
    ),
    click.option("--vocab-size", type=click.IntRange(1), help="Rows of the vocabulary without its padding."),
    click.option(
        "--ties",
        type=click.Choice(["once", "both"]),
        default="once",
        show_default=True,
        help="Tied tensors: under one name, or under each.",
    ),
    click.option(
        "--max-shard-size",
        type=Size(),
        default="5GB",
        show_default=True,
        help="Bytes of tensors in one file.",
    ),
    *_SIZES,
    _verify("sample"),
    click.option(
        "--crc/--no-crc", default=True, show_default=True, help="Check the checksums that zip records carry."
    ),
    *_ALONG,
)


def options_of(given: dict[str, Any]) -> "PlanOptions":
    """Return what the options come to. Takes what is its own out of `given`."""
    from shardscope.engine.model.plan import PlanOptions

    return PlanOptions(
        component=given.pop("component"),
        include=given.pop("include"),
        exclude=given.pop("exclude"),
        renames=rules_of(given.pop("rename")),
        dtype=CASTS[given.pop("dtype")],  # type: ignore[arg-type]  # its values are those of Cast
        max_shard_bytes=given.pop("max_shard_size"),
        ties=given.pop("ties"),
        vocab_size=given.pop("vocab_size"),
        mapping=given.pop("mapping"),
        carry=given.pop("carry"),
        memory_bytes=given.pop("memory"),
        workers=given.pop("workers"),
        digest=given.pop("digest"),
        digest_source=given.pop("digest_source"),
        verify=given.pop("verify"),
        check_crc=given.pop("crc"),
    )


def rules_of(file: str | None) -> "tuple[RenameRule, ...]":
    """Return the rules of renaming in a file; none without one."""
    if file is None:
        return ()
    from shardscope.engine import read_renames

    return read_renames(file)


def bounds_of(limits: Sequence[tuple[str, int]]) -> "Limits":
    """Return the bounds on reading that `--limit` sets, decoding's apart."""
    bounds, _ = split_limits(limits)
    return bounds


def decoding_of(
    operation: "Operation", limits: Sequence[tuple[str, int]], *, decode: bool, compares_all: bool = True
) -> "Decoding | None":
    """Return the wish to decode that `--decode` is; null without it.

    `compares_all` is false where nothing is written or verified yet: numbers that are there twice are then sampled.
    """
    if not decode:
        return None
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.escalation import Intent

    _, bounds = split_limits(limits)
    return Decoding(Intent(operation, "command line"), "all", bounds, compares_all=compares_all)

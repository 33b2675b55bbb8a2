"""One call of the engine from the command line, with progress for who watches and an end for who stops it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from shardscope.app.cli.limit import Limit
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching

if TYPE_CHECKING:
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import DigestMode, Inspection
    from shardscope.engine.model.capability import Capability
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.limits import DecodeLimits, Limits

F = TypeVar("F", bound=Callable[..., object])


def bounds(command: F) -> F:
    """Add the options that say how far to look."""
    command = click.option(
        "--limit",
        "limits",
        type=Limit(decoding=True),
        multiple=True,
        help="Set a bound on reading; may be repeated. See docs/limits.md, or `limits` in any descriptor.",
    )(command)
    return click.option(
        "--hf-cache",
        is_flag=True,
        help="Admit the links of a Hugging Face cache snapshot into its own blobs folder.",
    )(command)


def reading(command: F) -> F:
    """Add the argument and the options of a command that reads a checkpoint and prints something."""
    return click.argument("path", type=click.Path())(reading_options(command))


def reading_options(command: F) -> F:
    """Add the options of a command that reads checkpoints and prints something."""
    command = click.option(
        "--progress/--no-progress",
        default=None,
        help="Progress on standard error. By default on a terminal, but not with --json.",
    )(command)
    return bounds(command)


def decoding(command: F) -> F:
    """Add the options of a command that may decode. They hold for one invocation: nothing sets or remembers them."""
    command = click.option(
        "--component",
        type=click.Choice(["model", "optimizer", "other", "all"]),
        help="With --decode: which tensors are listed (model by default).",
    )(command)
    return click.option(
        "--decode",
        is_flag=True,
        help="Read pickles as data in a contained worker, for this run. Nothing is executed; see docs/decoding.md.",
    )(command)


def wish(
    decode: bool,
    component: "Listed | None",
    limits: Sequence[tuple[str, int]],
    *,
    checksums: bool = False,
    outlines: bool = False,
) -> "Decoding | None":
    """Return what the options ask to have decoded; null without `--decode`."""
    if not decode:
        for option, given in (("--component", component is not None), ("--checksums", checksums)):
            if given:
                raise click.UsageError(f"{option} needs --decode.", click.get_current_context())
        return None
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.escalation import Intent

    _, in_force = split_limits(limits)
    intent = Intent("inspect", "command line")
    return Decoding(intent, component or "model", in_force, checksums, outlines=outlines)


def split_limits(limits: Sequence[tuple[str, int]]) -> "tuple[Limits, DecodeLimits]":
    """Return the bounds on looking and those on decoding that the options set."""
    from msgspec import convert

    from shardscope.engine.model.limits import (
        DecodeLimits,
        Limits,
        decode_limit_names,
        limit_names,
        with_overrides,
    )

    looking = {name: value for name, value in limits if name in limit_names()}
    decoding = {name: value for name, value in limits if name in decode_limit_names()}
    return with_overrides(Limits(), looking), convert(decoding, DecodeLimits)


def examine(
    session: Session,
    path: str,
    *,
    limits: Sequence[tuple[str, int]],
    hf_cache: bool,
    digest: "DigestMode",
    progress: bool | None,
    machine: bool,
    capabilities: "Sequence[Capability]" = (),
    decode: bool = False,
    component: "Listed | None" = None,
    checksums: bool = False,
    outlines: bool = False,
    with_catalogue: bool = False,
) -> "Inspection":
    """Inspect `path`. `machine` tells that a document is asked for, which keeps progress away unless it was asked for too.

    Raises `Fault` when nothing could be examined and `Cancelled` when it was stopped.
    """
    from shardscope import engine

    asked = wish(decode, component, limits, checksums=checksums, outlines=outlines)
    bounds_in_force, _ = split_limits(limits)
    with session.interrupt.cooperative() as cancel, watching(session, progress, machine=machine) as report:
        return engine.inspect(
            path,
            limits=bounds_in_force,
            digest=digest,
            hf_cache=hf_cache,
            capabilities=capabilities,
            decoding=asked,
            with_catalogue=with_catalogue,
            cancel=cancel,
            progress=report,
        )

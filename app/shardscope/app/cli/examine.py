"""One call of the engine from the command line, with progress for who watches and an end for who stops it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from shardscope.app.cli.limit import Limit
from shardscope.app.cli.session import Session

if TYPE_CHECKING:
    from shardscope.engine.inspect import DigestMode, Inspection

F = TypeVar("F", bound=Callable[..., object])


def reading(command: F) -> F:
    """Add the argument and the options of a command that reads a checkpoint."""
    for option in (
        click.argument("path", type=click.Path()),
        click.option(
            "--hf-cache",
            is_flag=True,
            help="Admit the links of a Hugging Face cache snapshot into its own blobs folder.",
        ),
        click.option(
            "--limit",
            "limits",
            type=Limit(),
            multiple=True,
            help="Set a bound on reading; may be repeated. `shardscope schema descriptor` lists them.",
        ),
        click.option(
            "--progress/--no-progress",
            default=None,
            help="Progress on standard error. By default on a terminal, but not with --json.",
        ),
    ):
        command = option(command)
    return command


def examine(
    session: Session,
    path: str,
    *,
    limits: Sequence[tuple[str, int]],
    hf_cache: bool,
    digest: "DigestMode",
    progress: bool | None,
    machine: bool,
) -> "Inspection":
    """Inspect `path`. `machine` tells that a document is asked for, which keeps progress away unless it was asked for too.

    Raises `Fault` when nothing could be examined and `Cancelled` when it was stopped.
    """
    from shardscope.app.cli.progress import watching
    from shardscope.engine.inspect import inspect
    from shardscope.engine.model.limits import Limits, with_overrides

    bounds = with_overrides(Limits(), dict(limits)) if limits else Limits()
    with session.interrupt.cooperative() as cancel, watching(session, progress, machine=machine) as report:
        return inspect(path, limits=bounds, digest=digest, hf_cache=hf_cache, cancel=cancel, progress=report)

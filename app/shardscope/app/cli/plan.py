"""`shardscope plan`: what a conversion would write, decide and need."""

from typing import Any

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.plan_shown import print_plan
from shardscope.app.cli.planning import bounds_of, choosing, decoding_of, options_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode

EXITS = (
    ExitCode.OK,
    ExitCode.BLOCKED,
    ExitCode.USAGE,
    ExitCode.UNREADABLE,
    ExitCode.LIMIT,
    ExitCode.CHANGED,
    ExitCode.DENIED,
    ExitCode.NEEDS_DECODING,
    ExitCode.UNSUPPORTED,
    ExitCode.INTERNAL,
    ExitCode.CANCELLED,
)


@command(
    "plan",
    short_help="Say what a conversion would write, decide and need.",
    examples=(
        ("shardscope plan ./ckpt --decode", "Every file, every decision, every figure; nothing is written."),
        (
            "shardscope plan ./ckpt --decode --json > plan.json",
            "A plan to edit, and to run with convert --plan.",
        ),
        ("shardscope plan ./ckpt --dtype bf16 --max-shard-size 2GB", "Another type, smaller files."),
        ("shardscope plan ./ckpt --to ./out", "Held against the file system of the target."),
    ),
    notes="""A plan is data: its list of files is what convert --plan carries out. It is bound to its source by the size and times of
    every file, and checked again before anything starts.""",
    exits=EXITS,
)
@reading
@choosing
@click.option(
    "--to",
    "target",
    metavar="PATH",
    type=click.Path(),
    help="The target, for the figures of its file system.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON document.")
@click.pass_obj
def plan(
    session: Session,
    /,
    path: str,
    target: str | None,
    decode: bool,
    config: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Say what a conversion of PATH to Hugging Face safetensors would write, what was decided and why, and what it needs.

    Nothing is written. Exit 6 where admission is denied or unknown, and the code of the first blocker where one stops it.
    """
    from shardscope.engine import prepare
    from shardscope.engine.converting.preparing import admitted_here

    with session.interrupt.cooperative() as cancel, watching(session, progress, machine=as_json) as report:
        prepared = prepare(
            path,
            options_of(given),
            decoding=decoding_of("convert", limits, decode=decode, compares_all=False),
            config=config,
            limits=bounds_of(limits),
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )
    found = admitted_here(prepared.plan, target)
    return print_plan(session, found, found if as_json else None)

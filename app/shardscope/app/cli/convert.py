"""`shardscope convert`: plan, admission, confirmation, staging, verification, promotion."""

import threading
from typing import TYPE_CHECKING, Any

import click

from shardscope.app.cli.carrying_out import Job, carry_out, carrying_out
from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.plan import EXITS
from shardscope.app.cli.planning import bounds_of, choosing, decoding_of, options_of
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.progress import OnProgress

WORD = "convert"
"""What a person types to start."""


@command(
    "convert",
    short_help="Convert a checkpoint to Hugging Face safetensors.",
    examples=(
        ("shardscope convert ./ckpt ./out --decode", "Plan, show the admission, ask, convert."),
        (
            "shardscope convert ./ckpt ./out --decode --yes",
            "In a script: confirmed, never past the admission.",
        ),
        (
            "shardscope convert ./ckpt ./out --decode --dtype bf16 --max-shard-size 2GB",
            "Another type, smaller files.",
        ),
        (
            "shardscope convert ./ckpt ./out --plan plan.json --decode",
            "A plan that was printed, looked at and perhaps edited.",
        ),
        (
            "shardscope convert ./ckpt ./out --decode --replace",
            "Exchange an existing output for the new one, in one step.",
        ),
        (
            "shardscope convert ./ckpt ./out --decode --scheduler tls://node0:8786",
            "Let the machines of a Dask cluster copy.",
        ),
    ),
    notes="""The output is staged beside OUT, read back and compared with the source, and appears by one rename: whole or not at all. The
    source is never changed. Besides the weights it has an index where there are several files, configuration and tokenizer
    files that stood beside the source, shardscope-manifest.json, which is equal for equal runs, and shardscope-run.json.

    A run that was killed, or lost its terminal, leaves finished files in a hidden folder beside OUT. The same command with
    --resume verifies them and makes the rest; `shardscope clean` removes them. Ctrl-C and
    SIGTERM leave nothing behind, and neither does a failure, unless --keep-staging or --resume was given.

    --yes confirms; it does not override a denied or unknown admission. Without a terminal and without --yes nothing starts.""",
    exits=(*EXITS[:-2], ExitCode.OUTPUT, *EXITS[-2:]),
)
@reading
@choosing
@click.argument("target", metavar="OUT", type=click.Path())
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(),
    help="Carry out this plan; the options of choice are then its own.",
)
@carrying_out
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as one JSON document.")
@click.pass_obj
def convert(
    session: Session,
    /,
    path: str,
    target: str,
    plan_file: str | None,
    decode: bool,
    config: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Convert the checkpoint at PATH to canonical Hugging Face safetensors in the new folder OUT.

    Nothing of it is executed, and no framework is needed. Buffers stay within --memory whatever the size of a tensor.
    """
    from shardscope.engine import prepare, read_plan

    bounds = bounds_of(limits)
    plan = None if plan_file is None else read_plan(plan_file)
    options = options_of(given) if plan is None else plan.options

    def planned(cancel: threading.Event, report: "OnProgress | None") -> "Prepared":
        return prepare(
            path,
            options,
            decoding=decoding_of("convert", limits, decode=decode),
            plan=plan,
            config=config,
            limits=bounds,
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )

    job = Job(path, target, WORD, bounds, hf_cache, decode, progress, as_json)
    return carry_out(session, job, given, planned)

"""`shardscope peek`: the numbers of one tensor."""

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading_options
from shardscope.app.cli.planning import Size, bounds_of, decoding_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.text import TEXT
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode

MOST = 64


@command(
    "peek",
    short_help="Look at the numbers of one tensor.",
    examples=(
        ("shardscope peek ./ckpt model.norm.weight", "The edges of it."),
        ("shardscope peek ./ckpt lm_head.weight --slice '5,:8'", "The first numbers of one row."),
        ("shardscope peek ./ckpt lm_head.weight --stats --histogram", "What all of them come to."),
        ("shardscope peek ./ckpt lm_head.weight --heat", "Where they are large, and where small."),
        ("shardscope peek ./ckpt lm_head.weight --channels", "Rows and columns that stand out."),
        ("shardscope peek ./gptq model.layers.0.mlp.up_proj --logical", "A packed weight, as numbers."),
        ("shardscope peek ./zero embed.weight --decode --stats --json", "For a program."),
    ),
    notes="""A slice is written as numpy has it: an index, START:STOP:STEP, `...`; steps are above zero. Only the stretches of files
    that hold what was selected are read, through the shard map of the tensor: it is never put together.

    NaN and infinite numbers are counted, and have no part in other figures. A complex element is two numbers. Sums are taken in 64
    bits. An exponent is that of the number: 2^e <= |number| < 2^(e + 1). A heat map shows root mean squares of boxes: the last dimension
    across, all others down.""",
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.OUTPUT, ExitCode.BLOCKED)],
)
@click.argument("path", type=click.Path())
@click.argument("tensor", type=TEXT)
@reading_options
@click.option(
    "--slice", "part", metavar="SLICE", help="Which elements, such as `0:4,-1,::2`. All by default."
)
@click.option(
    "--stats", is_flag=True, help="Minimum, maximum, mean, deviation, and what is zero or not finite."
)
@click.option("--histogram", is_flag=True, help="How many numbers have each sign and exponent; with --stats.")
@click.option("--heat", is_flag=True, help="A map of root mean squares.")
@click.option("--channels", is_flag=True, help="Root mean squares by index of each dimension; the largest.")
@click.option("--rows", type=click.IntRange(1, MOST), default=10, show_default=True, help="Rows of the grid.")
@click.option(
    "--columns",
    type=click.IntRange(1, MOST),
    default=6,
    show_default=True,
    help="Columns of the grid; text has those that fit.",
)
@click.option(
    "--bits",
    type=click.Choice(["1", "2", "4"]),
    help="Take packed integers apart into numbers of so many bits, from the lowest bit on.",
)
@click.option(
    "--logical",
    is_flag=True,
    help="Of a packed weight, the numbers that it stands for, by its name or that of its module.",
)
@click.option("--rank", type=click.IntRange(0), help="Of several tensors of one name, that of this rank.")
@click.option("--decode", is_flag=True, help="Read pickles as data in a contained worker, for this run.")
@click.option("--memory", type=Size(), default="64MiB", show_default=True, help="Bytes of buffers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def peek(
    session: Session,
    path: str,
    tensor: str,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    part: str | None,
    stats: bool,
    histogram: bool,
    heat: bool,
    channels: bool,
    rows: int,
    columns: int,
    bits: str | None,
    logical: bool,
    rank: int | None,
    decode: bool,
    memory: int,
    as_json: bool,
) -> int:
    """Show numbers of TENSOR, by its exact name, of the checkpoint at PATH; with --stats what all of them come to.

    The grid has the edges of the last two dimensions, at the first index of those before.
    """
    from shardscope import engine

    options = engine.PeekOptions(
        slice=part,
        bits=None if bits is None else int(bits),
        logical=logical,
        rank=rank,
        statistics=stats or histogram,
        histogram=histogram,
        heat=heat,
        profiles=channels,
        rows=rows,
        columns=columns,
        memory_bytes=memory,
    )
    with (
        session.interrupt.cooperative() as cancel,
        watching(session, progress, machine=as_json) as report,
    ):
        found = engine.peek(
            path,
            tensor,
            options,
            decoding=decoding_of("verify", limits, decode=decode),
            limits=bounds_of(limits),
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )
    if as_json:
        session.out.write_document(found)
        return ExitCode.OK
    from shardscope.app.cli.peek_text import text_lines

    session.out.write_text("".join(f"{line}\n" for line in text_lines(found)))
    return ExitCode.OK

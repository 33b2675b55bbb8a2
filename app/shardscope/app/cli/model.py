"""`shardscope model`: what a model is made of."""

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import examine, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode, most_specific

DTYPES = ("F32", "BF16", "F16", "F8_E4M3", "F8_E5M2", "I8", "I4", "F4")


@command(
    "model",
    short_help="Say what a model is made of.",
    examples=(
        ("shardscope model ./ckpt", "Parameters, layers, sizes against config.json, packing, memory."),
        (
            "shardscope model ./ckpt --dtype BF16 --dtype I4 --context 32768 --devices 4",
            "Arithmetic for a case.",
        ),
        ("shardscope model ./adapter --base ./base", "Whether a LoRA adapter fits its base."),
        ("shardscope model ./zero --decode", "With the tensors behind pickles."),
        ("shardscope model ./ckpt --json | jq '.parameters.total'", "For a program."),
    ),
    notes="""What a code means is `shardscope explain CODE`; this command is about the model.

    Figures of memory are arithmetic on bytes, each with its formula. They say nothing of activations, buffers or the program, and
    are no promise that a model fits or runs.""",
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.OUTPUT)],
)
@reading
@click.option("--decode", is_flag=True, help="Read pickles as data in a contained worker, for this run.")
@click.option("--base", metavar="PATH", type=click.Path(), help="The model that an adapter is for.")
@click.option(
    "--dtype",
    "dtypes",
    type=click.Choice(DTYPES),
    multiple=True,
    help="Count the weights in this type, too; may be repeated. BF16 where none is named.",
)
@click.option(
    "--context",
    type=click.IntRange(1, 1 << 40),
    metavar="TOKENS",
    help="Length of the sequence whose cache is counted. By default what the configuration declares.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1 << 20),
    default=1,
    show_default=True,
    help="Sequences of that length at one time.",
)
@click.option(
    "--cache-dtype",
    type=click.Choice(DTYPES),
    default="BF16",
    show_default=True,
    help="Type of cached keys and values.",
)
@click.option(
    "--devices",
    type=click.IntRange(1, 1 << 20),
    default=1,
    show_default=True,
    help="Divide by so many devices.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def model(
    session: Session,
    path: str,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    decode: bool,
    base: str | None,
    dtypes: tuple[str, ...],
    context: int | None,
    batch: int,
    cache_dtype: str,
    devices: int,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Say what the model at PATH is made of: parameters, layers and experts, sizes held against the configuration, packing, an adapter,
    and the bytes that weights and cache come to.

    Exit 1 where weights and configuration contradict each other.
    """
    from shardscope import engine
    from shardscope.app.cli.tensors import refuse_unlisted
    from shardscope.engine.model.blocker import Severity
    from shardscope.engine.modelling import wants_catalogue

    def look(where: str, *, with_catalogue: bool) -> engine.Inspection:
        return examine(
            session,
            where,
            limits=limits,
            hf_cache=hf_cache,
            digest="none",
            progress=progress,
            machine=as_json,
            decode=decode,
            with_catalogue=with_catalogue,
        )

    found = look(path, with_catalogue=base is not None)
    if wants_catalogue(found):
        found = look(path, with_catalogue=True)
    refuse_unlisted(found, path, decode=decode)
    options = engine.ModelOptions(
        dtypes=dtypes or ("BF16",), context=context, batch=batch, cache_dtype=cache_dtype, devices=devices
    )
    document = engine.describe_model(
        found, options, base=None if base is None else look(base, with_catalogue=True)
    )
    if as_json:
        session.out.write_document(document)
    else:
        from shardscope.app.cli.model_text import text_lines

        lines = text_lines(document, path, everything=session.verbose > 0)
        session.out.write_text("".join(f"{line}\n" for line in lines))
    broken = any(item.severity is Severity.ERROR for item in document.findings)
    return most_specific([found.exit_code(None), ExitCode.BLOCKED if broken else ExitCode.OK])

"""`shardscope verify`: an output against its manifest, and against the checkpoint it was made from."""

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.plan import EXITS
from shardscope.app.cli.planning import bounds_of, decoding_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode

SHOWN = 20
"""Differences that are listed before the rest is counted."""


@command(
    "verify",
    short_help="Hold an output against its manifest and its source.",
    examples=(
        ("shardscope verify ./out", "Headers, index, and the digests of its manifest."),
        ("shardscope verify ./out --against ./ckpt --decode", "Every byte of every tensor, too."),
        ("shardscope verify ./step-1 --against ./step-2 --decode", "Any two checkpoints, tensor by tensor."),
    ),
    notes="""Tensors are matched by the manifest of PATH, and by name where there is none. What the conversion cast is compared after the
    same cast, and a vocabulary that it trimmed row by row. Memory stays bounded whatever the size of a tensor.""",
    exits=[code for code in EXITS if code is not ExitCode.DENIED],
)
@reading
@click.option(
    "--against", metavar="SRC", type=click.Path(), help="The checkpoint that its tensors have to be those of."
)
@click.option(
    "--decode", is_flag=True, help="Read pickles of both as data in a contained worker, for this run."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def verify(
    session: Session,
    path: str,
    against: str | None,
    decode: bool,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    as_json: bool,
) -> int:
    """Hold the output at PATH against its manifest, and with --against every byte of its tensors against another checkpoint.

    Exit 0 where everything holds, 1 where something differs.
    """
    from shardscope.engine import verify as compare

    with session.interrupt.cooperative() as cancel, watching(session, progress, machine=as_json) as report:
        found = compare(
            path,
            against,
            decoding=decoding_of("verify", limits, decode=decode),
            decoding_against=decoding_of("verify", limits, decode=decode),
            limits=bounds_of(limits),
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )
    if as_json:
        session.out.write_document(found)
    else:
        from shardscope.app.cli.paragraphs import wrapped
        from shardscope.engine.model.secrets import shown

        lines = [
            line
            for item in found.validation
            for line in wrapped(item.says, 26, first=f"{item.what:<12}{item.result}")
        ]
        lines += [
            f"  {shown(item.name)}: {item.problem}"
            + ("" if item.offset is None else f", first at element {item.offset:,}")
            for item in found.differences[:SHOWN]
        ]
        if len(found.differences) > SHOWN:
            lines.append(f"  ... and {len(found.differences) - SHOWN:,} more (--json)")
        session.out.write_text("".join(f"{line}\n" for line in lines))
    return ExitCode.OK if found.same else ExitCode.BLOCKED

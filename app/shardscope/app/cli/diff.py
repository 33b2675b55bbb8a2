"""`shardscope diff`: two checkpoints held against each other."""

from typing import TYPE_CHECKING, Literal

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import bounds
from shardscope.app.cli.planning import Size, bounds_of, decoding_of, rules_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode, most_specific

if TYPE_CHECKING:
    from shardscope.engine.comparing.compared import Compared
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.difference import DiffDocument, State

STATES = ("changed", "missing", "extra", "renamed", "same")


@command(
    "diff",
    short_help="Hold two checkpoints against each other.",
    examples=(
        ("shardscope diff ./step-100 ./step-200", "Names, shapes and types of their tensors."),
        ("shardscope diff ./ckpt ./export --decode --values", "Every number, whatever the layouts."),
        ("shardscope diff ./zero-8 ./zero-16 --decode --component optimizer", "Optimizer states."),
        ("shardscope diff ./adapter ./base", "Whether a LoRA adapter fits a model."),
        ("shardscope diff ./base ./merged --adapter ./adapter --values", "Whether it was merged right."),
        ("shardscope diff ./a ./b --only missing --only extra --json", "For a program."),
    ),
    notes="""Tensors are matched by name, by --rename, by the manifest that a conversion left, and by the mapping table of a producer
    where one fits. What is left over is put together by the ends of names, then by shape, type and position: such pairs are suggestions,
    marked `>`, and count as different.

    Values of one type are the same where every bit is. Of two types numbers are compared: NaN is NaN, 0.0 is -0.0. Relative
    errors are |a - b| / max(|a|, |b|). Of tensors of different heights the rows that both have are compared.

    With --adapter a tensor of B is as it should be where it is that of A plus scale times B @ A of the adapter, as near as rounding to
    the types of weights and factors allows; what the adapter does not change has to be the same, every bit.""",
    exits=[code for code in ExitCode if code not in (ExitCode.DENIED, ExitCode.OUTPUT)],
)
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@bounds
@click.option("--values", is_flag=True, help="Compare every number, too, tile by tile.")
@click.option(
    "--decode", is_flag=True, help="Read pickles of both as data in a contained worker, for this run."
)
@click.option(
    "--component",
    type=click.Choice(["model", "optimizer", "other", "all"]),
    default="model",
    show_default=True,
    help="Which tensors are compared.",
)
@click.option(
    "--only",
    type=click.Choice(STATES),
    multiple=True,
    help="List tensors in this state alone; may be repeated. By default all but the same.",
)
@click.option(
    "--adapter",
    "adapters",
    metavar="PATH",
    type=click.Path(),
    multiple=True,
    help="A LoRA adapter that was merged into B: B is held against A plus its updates. May be repeated.",
)
@click.option("--rename", metavar="FILE", type=click.Path(), help="Rules that make names of B of those of A.")
@click.option(
    "--mapping",
    metavar="NAME|FILE",
    default="auto",
    show_default=True,
    help="A mapping table for the side whose producer it is for; `none` for none.",
)
@click.option(
    "--memory", type=Size(), default="64MiB", show_default=True, help="Bytes of buffers for --values."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="What is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress on standard error. By default on a terminal, but not with --json.",
)
@click.pass_obj
def diff(
    session: Session,
    first: str,
    second: str,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    values: bool,
    decode: bool,
    component: "Listed",
    adapters: tuple[str, ...],
    only: "tuple[State, ...]",
    rename: str | None,
    mapping: str,
    memory: int,
    form: Literal["text", "json", "markdown"],
    as_json: bool,
    progress: bool | None,
) -> int:
    """Say what is different between the checkpoints A and B: tensors, and with --values numbers. They may be of any two families.

    Letters tell the state of a tensor: = the same, ~ changed, - missing in B, + extra in B, > renamed, as it seems. Exit 0 where A
    and B are the same, 1 where they differ, 8 where nothing differs and some values could not be compared.
    """
    from shardscope.engine.comparing.compared import DiffOptions
    from shardscope.engine.comparing.diff import diff as compare

    if as_json and form == "markdown":
        raise click.UsageError("Choose one of --json and --format.", click.get_current_context())
    if adapters and component not in ("model", "all"):
        raise click.UsageError("An adapter changes the model: --adapter goes with --component model.")
    form = "json" if as_json else form
    options = DiffOptions(
        component=component,
        renames=rules_of(rename),
        mapping=None if mapping == "none" else mapping,
        memory_bytes=memory,
    )
    with (
        session.interrupt.cooperative() as cancel,
        watching(session, progress, machine=form == "json") as report,
    ):
        found = compare(
            first,
            second,
            options,
            adapters=adapters,
            decoding=lambda: decoding_of("verify", limits, decode=decode),
            values=values,
            limits=bounds_of(limits),
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )
    _write(session, found, only, form, (first, second, *adapters))
    sides = [side.found.exit_code(None) for side in found.sides]
    return most_specific([*sides, _answer(found.document)])


def _answer(document: "DiffDocument") -> ExitCode:
    """Return 0 only where everything that was asked for was compared. Whether an adapter fits is a question of structure."""
    if not document.same:
        return ExitCode.BLOCKED
    unknown = document.uncompared > 0 and document.kind != "adapter"
    return ExitCode.UNSUPPORTED if unknown else ExitCode.OK


def _write(
    session: Session, found: "Compared", only: "tuple[State, ...]", form: str, paths: tuple[str, ...]
) -> None:
    from shardscope.engine.comparing.compared import filtered
    from shardscope.engine.model.difference import DIFFERENT

    states = only or DIFFERENT
    if form == "json":
        session.out.write_document(filtered(found.document, states))
        return
    from shardscope.app.cli.diff_text import markdown_lines, text_lines
    from shardscope.engine.diffing.folding import folded

    folds = folded(found.document.tensors, states)
    everything = session.verbose > 0
    lines = (
        markdown_lines(found.document, folds, everything=everything)
        if form == "markdown"
        else text_lines(found.document, folds, paths, everything=everything)
    )
    session.out.write_text("".join(f"{line}\n" for line in lines))

"""`shardscope fix`: what is wrong with safetensors mended in a new output, every change shown before."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from shardscope.app.cli.carrying_out import Job, carry_out, carrying_out
from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.plan import EXITS
from shardscope.app.cli.plan_shown import print_plan
from shardscope.app.cli.planning import Size, bounds_of, copying, rules_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.text import TEXT, as_typed
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.repair import REPAIRS

if TYPE_CHECKING:
    from shardscope.engine.converting.fixing import Fix
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.fix import FixDocument, FixOptions
    from shardscope.engine.model.plan import Plan, RenameRule
    from shardscope.engine.model.progress import OnProgress

F = TypeVar("F", bound=Callable[..., object])

WORD = "fix"
"""What a person types to start."""
BELONGS = {
    "drop": "drop",
    "untie": "drop",
    "rename": "rename",
    "rename_tensor": "rename",
    "strip_prefix": "rename",
    "set": "metadata",
    "unset": "metadata",
    "strip_metadata": "metadata",
    "max_shard_size": "split",
}
"""Options of one operation alone: the parameter, and the operation."""
NEEDS = {
    "drop": ("drop",),
    "rename": ("rename", "rename_tensor", "strip_prefix"),
    "metadata": ("set", "unset", "strip_metadata"),
}
"""Operations that do nothing without one of these."""
FLAGS = {"drop": "--tensor"}
"""Options whose parameter is called otherwise."""


class Pair(click.ParamType[tuple[str, str]]):
    """Two texts with an equals sign between them."""

    name = "pair"

    def __init__(self, first: str, second: str) -> None:
        self._words = f"{first}={second}"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        """Return what help shows in place of the value."""
        return self._words

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return what stands before the first equals sign, and what stands behind it."""
        if isinstance(value, tuple):
            return value[0], value[1]
        first, sign, second = as_typed(str(value)).partition("=")
        if not sign or not first:
            self.fail(f"write it as {self._words}.", param, ctx)
        return first, second


def changing(command: F) -> F:
    """Add the options that say what is changed, operation by operation."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--what",
        type=click.Choice(list(REPAIRS)),
        multiple=True,
        help="What is done; may be repeated. Without it index and header, where they need it.",
    ),
    click.option(
        "--file",
        "file",
        metavar="GLOB",
        multiple=True,
        help="Only these weight files, as one set; may be repeated.",
    ),
    click.option(
        "--tensor",
        "drop",
        metavar="GLOB",
        type=TEXT,
        multiple=True,
        help="drop: names of tensors that are left out; may be repeated.",
    ),
    click.option("--untie", is_flag=True, help="drop: also a tensor that another name is tied to."),
    click.option(
        "--rename",
        metavar="FILE",
        type=click.Path(),
        help="rename: ordered rules, see `shardscope schema renames`.",
    ),
    click.option(
        "--rename-tensor",
        type=Pair("OLD", "NEW"),
        multiple=True,
        help="rename: one tensor, after the rules; may be repeated.",
    ),
    click.option(
        "--strip-prefix",
        metavar="TEXT",
        type=TEXT,
        multiple=True,
        help="rename: what names begin with and shall not, after the others; may be repeated.",
    ),
    click.option(
        "--set",
        type=Pair("KEY", "VALUE"),
        multiple=True,
        help="metadata: a key of every header, set last; may be repeated.",
    ),
    click.option(
        "--unset", metavar="KEY", type=TEXT, multiple=True, help="metadata: a key that goes; may be repeated."
    ),
    click.option(
        "--strip-metadata", is_flag=True, help="metadata: every key goes but format, which loaders ask for."
    ),
    click.option(
        "--max-shard-size",
        type=Size(),
        default="5GB",
        show_default=True,
        help="split: bytes of tensors in one file.",
    ),
)


@command(
    "fix",
    short_help="Mend an index, headers, names, metadata or files of safetensors.",
    examples=(
        ("shardscope fix ./ckpt --plan-only", "What is wrong, and what would change. Nothing is written."),
        ("shardscope fix ./damaged ./out", "Index and headers, where they need it: plan, ask, write."),
        (
            "shardscope fix ./half ./out --what salvage --yes",
            "Everything that is whole of a download that stopped; what is lost is listed.",
        ),
        ("shardscope fix ./ckpt ./out --what merge", "One file of many."),
        ("shardscope fix ./ckpt ./out --what split --max-shard-size 2GB", "Many files, with their index."),
        (
            "shardscope fix ./ckpt ./out --what drop --tensor 'lm_head.*' --what rename --strip-prefix model.",
            "Two operations, in the order of the notes below.",
        ),
        (
            "shardscope fix ./ckpt ./out --what metadata --strip-metadata --set run=17",
            "Of all metadata what loaders ask for, and a key of your own.",
        ),
    ),
    notes="""Operations are applied in this order, whatever the order on the command line: salvage, index, drop, rename, metadata, split
    or merge, header. A file that none of them concerns is copied byte for byte; every other one is laid out as the safetensors
    library does it. Every output of several files has an index that is right.

    What a source has wrong is mended by the operation that is named for it and never in passing: without it nothing starts.
    Everything else is as in convert: admitted, staged, read back and compared with the source byte for byte, and promoted by one
    rename. The source is never changed.

    Hugging Face safetensors and safetensors of PEFT adapters are fixed, a folder or one file. Anything else is converted.""",
    exits=(
        *[code for code in EXITS[:-2] if code is not ExitCode.NEEDS_DECODING],
        ExitCode.OUTPUT,
        *EXITS[-2:],
    ),
)
@reading
@click.argument("target", metavar="OUT", type=click.Path(), required=False)
@changing
@copying
@click.option(
    "--plan-only",
    is_flag=True,
    help="Write nothing: print what is wrong and every change, old and new; with --json as a document.",
)
@carrying_out
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the manifest as one JSON document; with --plan-only the fix (`shardscope schema fix`).",
)
@click.pass_context
def fix(
    ctx: click.Context,
    /,
    path: str,
    target: str | None,
    plan_only: bool,
    config: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Mend what is wrong with the safetensors at PATH, or change what is asked for, in the new folder OUT.

    An index is rebuilt, files are split or merged, tensors dropped or renamed, metadata edited, headers laid out anew, and what is
    whole is saved from a damaged file. Every change is shown before a byte is written, and nothing is lost without being listed.
    """
    from shardscope.engine import check_idle, prepare_fix

    session = ctx.ensure_object(Session)
    bounds = bounds_of(limits)
    options = _options(ctx, given)
    made: list[FixDocument] = []

    def planned(cancel: threading.Event, report: "OnProgress | None") -> "Fix":
        return prepare_fix(
            path,
            options,
            config=config,
            limits=bounds,
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )

    def prepared(cancel: threading.Event, report: "OnProgress | None") -> "Prepared":
        found = check_idle(planned(cancel, report))
        made.append(found.document)
        return found.prepared

    def show(plan: "Plan", *, width: int, color: bool, everything: bool) -> str:
        return _text(made[0], plan, width=width, color=color, everything=everything, asks=True)

    if plan_only:
        with (
            session.interrupt.cooperative() as cancel,
            watching(session, progress, machine=as_json) as report,
        ):
            found = planned(cancel, report)
        return _preview(session, found, target, as_json=as_json)
    if target is None:
        raise click.UsageError("OUT is missing; without it only --plan-only works.", ctx)
    job = Job(path, target, WORD, bounds, hf_cache, decode=False, progress=progress, as_json=as_json)
    return carry_out(session, job, given, prepared, show)


def _options(ctx: click.Context, given: dict[str, Any]) -> "FixOptions":
    """Return what the options come to. Takes what is its own out of `given`."""
    from shardscope.engine.model.fix import FixOptions

    what = tuple(dict.fromkeys(given.pop("what")))
    _check(ctx, what)
    return FixOptions(
        what=what,
        files=given.pop("file"),
        drop=given.pop("drop"),
        untie=given.pop("untie"),
        renames=_rules(given.pop("rename"), given.pop("rename_tensor"), given.pop("strip_prefix")),
        set=given.pop("set"),
        unset=given.pop("unset"),
        strip=given.pop("strip_metadata"),
        max_shard_bytes=given.pop("max_shard_size"),
        carry=given.pop("carry"),
        memory_bytes=given.pop("memory"),
        workers=given.pop("workers"),
        digest=given.pop("digest"),
        digest_source=given.pop("digest_source"),
        verify=given.pop("verify"),
    )


def _check(ctx: click.Context, what: Sequence[str]) -> None:
    """Hold options and operations against each other: neither stands without the other."""
    asked = {name for name in BELONGS if _is_given(ctx, name)}
    for name, operation in BELONGS.items():
        if name in asked and operation not in what:
            flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
            raise click.UsageError(f"{flag} belongs to --what {operation}.", ctx)
    for operation, names in NEEDS.items():
        if operation in what and not asked & set(names):
            flags = ", ".join(FLAGS.get(name, f"--{name.replace('_', '-')}") for name in names)
            raise click.UsageError(f"--what {operation} needs one of {flags}.", ctx)


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) not in (None, click.core.ParameterSource.DEFAULT)


def _rules(
    file: str | None, tensors: Sequence[tuple[str, str]], prefixes: Sequence[str]
) -> "tuple[RenameRule, ...]":
    """Return the rules of renaming in the order in which they are applied."""
    from shardscope.engine.model.plan import RenameRule

    return (
        *rules_of(file),
        *(RenameRule(to=new, name=old) for old, new in tensors),
        *(RenameRule(to="", prefix=prefix) for prefix in prefixes),
    )


def _preview(session: Session, found: "Fix", target: str | None, *, as_json: bool) -> int:
    """Print a fix that is not made; return how the process ends."""
    from shardscope.engine.converting.preparing import admitted_here

    document = replace(found.document, plan=admitted_here(found.document.plan, target))
    return print_plan(
        session, document.plan, document if as_json else None, show=partial(_text, document, asks=False)
    )


def _text(
    document: "FixDocument", plan: "Plan", *, width: int, color: bool, everything: bool, asks: bool
) -> str:
    """Return a fix as text, with a plan that was admitted."""
    from shardscope.app.cli.fix_text import render

    return render(replace(document, plan=plan), width=width, color=color, everything=everything, asks=asks)

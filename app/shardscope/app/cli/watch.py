"""`shardscope watch`: each new step folder of a training run, told when it is complete."""

import click
import msgspec

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import Limit
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.text import display_name, json_escape
from shardscope.engine.model.watch import WatchEvent, WatchWord


@command(
    "watch",
    short_help="Tell each new checkpoint of a run when it is complete.",
    examples=(
        ("shardscope watch ./run", "A line for each, until it is stopped."),
        ("shardscope watch ./run --once --settle 1", "What is there now, for a scheduled job."),
        (
            "shardscope watch ./run --json --known events.jsonl >> events.jsonl",
            "Events for a program, and none twice after a restart.",
        ),
        ("shardscope watch ./run --json --known events.jsonl --until 1", "Wait for one that is new."),
    ),
    notes="""Complete means: two looks at least --settle seconds apart saw the same names, sizes and times; nothing is missing by
    names, headers and indices; and what its producer writes last is there: DCP's .metadata, an index, the tracker that names it
    (latest, latest_checkpointed_iteration.txt). docs/automating.md has the whole rule.

    Exit code 1 says that --once found one that is not complete; one that is stopped by a signal ends with 130.""",
    exits=(
        ExitCode.OK,
        ExitCode.BLOCKED,
        ExitCode.USAGE,
        ExitCode.UNREADABLE,
        ExitCode.LIMIT,
        ExitCode.CANCELLED,
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.option(
    "--once", is_flag=True, help="End when everything that is there was told. Exit 1 if one is not complete."
)
@click.option(
    "--until",
    type=click.IntRange(min=1),
    metavar="N",
    help="End when N were told as complete; those of --known do not count.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Seconds between two looks.",
)
@click.option(
    "--settle",
    type=click.FloatRange(min=0.0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds for which nothing of a folder may change. More than the attribute cache of a network mount keeps.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0.0),
    default=900.0,
    show_default=True,
    metavar="S",
    help="Seconds after which a folder that holds still and is not whole is told as incomplete.",
)
@click.option(
    "--known",
    type=click.Path(),
    metavar="FILE",
    help="Events of an earlier watch (--json): what it told as complete is not told again. It need not exist.",
)
@click.option(
    "--no-tracker",
    is_flag=True,
    help="Do not wait for `latest` and the like beside the folders, for runs that write none.",
)
@click.option(
    "--limit",
    "limits",
    type=Limit(),
    multiple=True,
    help="Set a bound on reading; may be repeated. See docs/limits.md.",
)
@click.pass_obj
def watch(
    session: Session,
    folder: str,
    as_json: bool,
    once: bool,
    until: int | None,
    interval: float,
    settle: float,
    patience: float,
    known: str | None,
    no_tracker: bool,
    limits: tuple[tuple[str, int], ...],
) -> ExitCode:
    """Tell each folder directly in DIR when it has become a complete checkpoint, and when one changes or goes afterwards.

    What is there already is told first. Nothing is opened for writing, no link is followed, no pickle is read. It looks every
    --interval seconds instead of waiting for notifications, which no network file system sends for the writes of other machines.
    """
    from shardscope import engine
    from shardscope.engine.model.limits import Limits, with_overrides

    bounds = with_overrides(Limits(), dict(limits))
    options = engine.WatchOptions(
        interval=interval,
        settle=settle,
        patience=patience,
        once=once,
        until=until,
        tracker=not no_tracker,
        known={} if known is None else engine.read_known(known, bounds),
        limits=bounds,
    )
    incomplete = 0
    with session.interrupt.cooperative() as cancel:
        for event in engine.watch(folder, options, cancel=cancel):
            if as_json:
                session.out.write(json_escape(msgspec.json.encode(event).decode()).encode() + b"\n")
            else:
                session.out.write_text(line(event) + "\n")
            incomplete = incomplete if event.tally is None else event.tally.incomplete
        if cancel.is_set():
            return ExitCode.CANCELLED
    return ExitCode.BLOCKED if once and incomplete else ExitCode.OK


def line(event: WatchEvent) -> str:
    """Return an event as one line for people."""
    from shardscope.engine.model.format_names import FORMAT_TITLES
    from shardscope.widgets.figures import plural, size

    if event.tally is not None:
        tally = event.tally
        counts = f"{tally.complete:,} complete, {tally.incomplete:,} incomplete, {tally.others:,} others"
        return f"{event.at}  {event.event.value:<10}  {'; '.join([*event.why, counts])}"
    words = []
    if event.event is WatchWord.COMPLETE and event.format is not None:
        words += [FORMAT_TITLES.get(event.format, event.format)]
        words += [f"{plural(event.files, 'file')}, {size(event.bytes)}"]
        words += ["again"] if event.again else []
    words += event.why
    if event.event is WatchWord.INCOMPLETE:
        words += event.codes
    said = "; ".join(display_name(word, 200) for word in words)
    return f"{event.at}  {event.event.value:<10}  {event.folder}  {said}".rstrip()

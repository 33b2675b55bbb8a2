"""`shardscope clean`: what dead runs have left beside their targets, and its removal."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.output import is_terminal
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.convert.stage.cleaning import Found

WORD = "clean"
"""What a person types to remove."""


@command(
    "clean",
    short_help="List and remove what dead runs have left.",
    examples=(
        ("shardscope clean", "What lies in this folder; a person is asked before anything goes."),
        ("shardscope clean ./out", "What runs to ./out have left beside it."),
        ("shardscope clean /data --yes", "In a script: remove what may go."),
        ("shardscope clean /data --old", "Old outputs, too, that --replace has kept."),
    ),
    notes="""A run that was killed, or lost its terminal, leaves a marked folder and perhaps a lock beside its target. They are known by
    name and content together; links are not followed. What another process may still use, what another user made, and what holds
    anything that shardscope does not make, stays and is listed with the reason. An old output that --replace kept stays
    without --old, and where nothing stands at its target it always stays.""",
    exits=(
        ExitCode.OK,
        ExitCode.BLOCKED,
        ExitCode.USAGE,
        ExitCode.UNREADABLE,
        ExitCode.INTERNAL,
        ExitCode.CANCELLED,
    ),
)
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click.Path())
@click.option("--yes", is_flag=True, help="Remove what may be removed without asking.")
@click.option("--old", is_flag=True, help="Old outputs may go, too, where a new one stands at the target.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def clean(session: Session, /, folders: tuple[str, ...], yes: bool, old: bool, as_json: bool) -> int:
    """List what dead runs of shardscope have left in each DIR, or beside it where it is a target, and remove it when confirmed.

    Nothing else is ever removed. Without a terminal and without --yes it is only listed. Exit 1 where something was to go and stayed.
    """
    from shardscope.engine.convert.stage.cleaning import find, remove

    found = _distinct(each for folder in folders or (".",) for each in find(folder, old=old))
    going = [each for each in found if each.entry.stays is None]
    if not as_json:
        session.out.write_text("".join(f"{line}\n" for line in _lines(found)))
    gone: list[Found] = []
    failed = []
    if going and _confirmed(going, yes=yes, machine=as_json):
        for each in going:
            why = remove(each, old=old)
            if why is None:
                gone.append(each)
            else:
                failed.append(f"{_place(each)} stays: {why}.")
    freed = sum(each.entry.bytes for each in gone)
    if as_json:
        from shardscope.engine.model.leftovers import LeftoversDocument
        from shardscope.engine.model.schemas import LEFTOVERS

        entries, names = tuple(each.entry for each in found), tuple(each.entry.name for each in gone)
        session.out.write_document(LeftoversDocument(LEFTOVERS, entries, names, freed))
    elif gone:
        from shardscope.widgets.figures import plural, size

        session.out.write_text(f"Removed {plural(len(gone), 'leftover')}, {size(freed)}.\n")
    for line in failed:
        session.out.narrate(f"shardscope: {line}")
    return ExitCode.BLOCKED if failed else ExitCode.OK


def _distinct(found: "Iterator[Found]") -> "list[Found]":
    """Return each leftover once, whatever paths lead to it."""
    return list({(os.stat(each.path).st_dev, each.inode): each for each in found}.values())


def _confirmed(going: "Sequence[Found]", *, yes: bool, machine: bool) -> bool:
    if yes:
        return True
    if machine or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return False
    from shardscope.widgets.figures import plural, size

    freed = size(sum(each.entry.bytes for each in going))
    what = f"{plural(len(going), 'leftover')}, {freed}"
    click.echo(f"\nType {WORD} to remove {what} (anything else removes nothing): ", err=True, nl=False)
    return sys.stdin.readline().strip() == WORD


def _lines(found: "Sequence[Found]") -> Iterator[str]:
    from shardscope.engine.model.secrets import shown
    from shardscope.widgets.figures import duration, plural, size

    if not found:
        yield "Nothing is left of any run."
    for each in found:
        entry = each.entry
        yield _place(each)
        what = "a lock" if entry.holds == "lock" else entry.holds
        finished = ""
        if entry.finished_files:
            finished = f", {plural(entry.finished_files, 'finished file')} of {size(entry.finished_bytes)} (convert --resume)"
        yield f"    for {shown(entry.target)}: {what}, {size(entry.bytes)}{finished}, {duration(entry.age_seconds)} old"
        if entry.stays is not None:
            yield f"    stays: {entry.stays}"


def _place(found: "Found") -> str:
    from shardscope.engine.model.secrets import shown

    folder, name = shown(found.entry.folder, 400), shown(found.entry.name, 300)
    return name if folder == "." else os.path.join(folder, name)

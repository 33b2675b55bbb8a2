"""`shardscope matrix`: what is supported, conditional, deferred or not done, and which sources say so."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.session import Session

if TYPE_CHECKING:
    from shardscope.engine.model.matrix import SupportMatrix
    from shardscope.engine.model.sources import SourceRegister

NOTES: Final = 38
"""The column in which what a cell means begins."""


@command(
    "matrix",
    short_help="Say what this release does with each kind of checkpoint.",
    examples=(
        ("shardscope matrix", "Seven subjects, five capabilities."),
        ("shardscope matrix --sources", "The register that the cells cite."),
        (
            "shardscope matrix --json | jq '.rows[] | {id, convert: .cells.convert_to_hf.word}'",
            "For a program.",
        ),
    ),
)
@click.option("--sources", "register", is_flag=True, help="Print the register of sources instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def matrix(session: Session, register: bool, as_json: bool) -> None:
    """Say what this release does with each kind of checkpoint: the support matrix.

    The matrix is data that ships with the release; no checkpoint and no option changes it. R-numbers in brackets are
    entries of the register of sources.
    """
    from shardscope.engine import sources, support_matrix

    document = sources() if register else support_matrix()
    if as_json:
        session.out.write_document(document)
    elif register:
        session.out.write_text("\n".join(source_lines(sources())) + "\n")
    else:
        session.out.write_text("\n".join(matrix_lines(support_matrix())) + "\n")


def matrix_lines(matrix: "SupportMatrix") -> Iterator[str]:
    """Yield the matrix as text: a heading for each subject, a word and its meaning for each capability."""
    titles = {str(column.id): column.title for column in matrix.columns}
    yield from wrapped(matrix.note)
    used = set()
    for row in matrix.rows:
        yield ""
        yield row.title
        for column, cell in row.each():
            used.add(cell.word)
            label = f"  {titles[column]:<20}{cell.word.value:<16}"
            yield from wrapped(f"{cell.note} [{', '.join(cell.sources)}]", NOTES, first=label)
    yield ""
    yield "The words"
    for each in matrix.vocabulary:
        if each.word in used:
            yield from wrapped(each.meaning, 18, first=f"  {each.word.value}")


def source_lines(register: "SourceRegister") -> Iterator[str]:
    """Yield the register as text: its head, its rules, and each source with its use and its qualification."""
    yield f"{register.artifact_id}, version {register.version}, {register.status}"
    yield f"accessed {register.accessed}, baseline {register.baseline}"
    yield ""
    yield from wrapped(register.note)
    yield ""
    for rule in register.rules:
        yield from wrapped(rule.rule, 4, first=f"{rule.number:>2}")
    for entry in register.entries:
        yield ""
        yield f"{entry.id}  {entry.title}"
        yield f"     {entry.kind}, {entry.standing}, confidence {entry.confidence}"
        if entry.url is not None:
            yield f"     {entry.url}"
        yield from wrapped(entry.supported_use, 11, first="     for")
        yield from wrapped(entry.qualification, 11, first="     but")

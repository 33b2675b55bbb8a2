"""`shardscope validate`: documents and claims held against their schemas and their rules, offline."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import Limit
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.model.documents import ValidationDocument


@command(
    "validate",
    short_help="Check documents and claims against their schemas and rules.",
    examples=(
        (
            "shardscope validate",
            "The support matrix, the glossary, the register and the schemas of this release.",
        ),
        ("shardscope validate ckpt.json dcp.json", "A descriptor and a capability, too."),
        ("shardscope validate docs/support-matrix.md", "The citations and the wording of a page, too."),
    ),
    notes="""A JSON document is checked against the schema that its key `schema` names; a Markdown page (.md) against the rules
    for claims in the register of sources. Wording is a lint: it finds careless sentences and proves nothing about others.""",
    exits=(ExitCode.OK, ExitCode.BLOCKED, ExitCode.USAGE, ExitCode.UNREADABLE, ExitCode.LIMIT),
)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
@click.option(
    "--limit",
    "limits",
    type=Limit(),
    multiple=True,
    help="Set a bound on reading; may be repeated. See docs/limits.md.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def validate(
    session: Session, paths: tuple[str, ...], limits: tuple[tuple[str, int], ...], as_json: bool
) -> int:
    """Check what this release carries (support matrix, glossary, sources, registry, schemas), then each PATH.

    Nothing is fetched and nothing is written. Exit code 1 says that something does not hold.
    """
    from shardscope.engine import validate as checked
    from shardscope.engine.inspecting.inspection import exit_code
    from shardscope.engine.model.blocker import Severity
    from shardscope.engine.model.limits import Limits, with_overrides

    found = checked(paths, limits=with_overrides(Limits(), dict(limits)))
    if as_json:
        session.out.write_document(found)
    else:
        session.out.write_text("\n".join(lines(found)) + "\n")
    return exit_code(found.blockers, Severity.ERROR)


def lines(found: "ValidationDocument") -> Iterator[str]:
    """Yield a line for each thing that was checked, and what does not hold below it."""
    from shardscope.widgets.figures import plural

    for item in found.checked:
        verdict = "valid" if item.valid else "INVALID"
        name = f" ({item.schema})" if item.schema else ""
        yield from wrapped(f"{item.subject}{name}: {item.says}", 9, first=verdict)
    for blocker in found.blockers:
        yield ""
        yield f"{blocker.severity.value.upper()} {blocker.code}"
        yield from wrapped(blocker.message, 2, first="")
        yield from wrapped(blocker.remedy, 4, first="  →")
    if found.blockers:
        yield ""
        yield f"{plural(len(found.blockers), 'finding')}: not valid"

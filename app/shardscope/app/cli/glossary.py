"""`shardscope glossary`: eight terms that are all called sharding."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.paragraphs import wrapped
from shardscope.app.cli.session import Session

if TYPE_CHECKING:
    from shardscope.engine.model.glossary import Glossary


@command(
    "glossary",
    short_help="Keep apart eight things that are called sharding.",
    examples=(("shardscope glossary", "The eight terms."),),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def glossary(session: Session, as_json: bool) -> None:
    """Keep apart eight things that are called sharding, placement or distribution.

    R-numbers in brackets are entries of the register of sources: `shardscope matrix --sources`.
    """
    from shardscope.engine import glossary as terms

    if as_json:
        session.out.write_document(terms())
    else:
        session.out.write_text("\n".join(lines(terms())) + "\n")


def lines(glossary: "Glossary") -> Iterator[str]:
    """Yield the terms as text: what each means, and what shardscope does with it."""
    from shardscope.engine.model.glossary import Reading

    for number, term in enumerate(glossary.terms):
        if number:
            yield ""
        yield term.term
        mark = " (our reading)" if term.reading is Reading.OURS else ""
        yield from wrapped(f"{term.meaning}{mark} [{', '.join(term.sources)}]", 2, first="")
        yield from wrapped(term.relevance, 8, first="  here")

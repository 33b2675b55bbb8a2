"""`shardscope explain`: what a code means and what to do about it."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import textwrap
from typing import Any

import click
from click.shell_completion import CompletionItem

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import nearest
from shardscope.app.cli.session import Session

WIDTH = 80


class CodeName(click.ParamType[str]):
    """A code of the table, completed and checked."""

    name = "code"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the code; fails with the nearest one."""
        from shardscope.engine.model.codes import CODES

        if value not in CODES:
            self.fail(f"there is no code {value!r}.{nearest(str(value), tuple(CODES))}", param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """Offer the codes."""
        from shardscope.engine.model.codes import CODES

        return [
            CompletionItem(code, help=row.severity)
            for code, row in CODES.items()
            if code.startswith(incomplete)
        ]


@command(
    "explain",
    short_help="Say what a code means.",
    examples=(
        ("shardscope explain header.gap", "One code."),
        ("shardscope explain", "Every code."),
    ),
)
@click.argument("code", required=False, type=CodeName())
@click.option("--json", "as_json", is_flag=True, help="Print the rows as one JSON document.")
@click.pass_obj
def explain(session: Session, code: str | None, as_json: bool) -> None:
    """Say what a code means, why it matters and what to do; without CODE, list them all.

    A code never changes its meaning.
    """
    from shardscope.engine.model.codes import CODES
    from shardscope.engine.model.templates import readable

    rows = list(CODES.values()) if code is None else [CODES[code]]
    if as_json:
        from shardscope.engine.model.documents import CodesDocument
        from shardscope.engine.model.schemas import CODES as SCHEMA

        session.out.write_document(CodesDocument(SCHEMA, tuple(rows)))
    elif code is None:
        width = max(map(len, CODES))
        session.out.write_text("".join(f"{row.code:<{width}}  {row.severity}\n" for row in rows))
    else:
        row = rows[0]
        blocks = ", ".join(row.blocks) or "nothing"
        exit_code = "" if row.exit is None else f" · exit code {int(row.exit)}"
        lines = [
            row.code,
            f"{row.severity} · found while: {row.stage} · blocks: {blocks}{exit_code}",
            "",
            *textwrap.wrap(row.meaning, WIDTH),
            "",
            *_labelled("says", readable(row.message)),
            *_labelled("do", readable(row.remedy)),
        ]
        session.out.write_text("\n".join(lines) + "\n")


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{label:<6}", subsequent_indent=" " * 6)

"""`shardscope schema`: the JSON Schema of each document."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import json
from typing import Any

import click
from click.shell_completion import CompletionItem

from shardscope.app.cli.command import command
from shardscope.app.cli.limit import nearest
from shardscope.app.cli.session import Session
from shardscope.engine.model.schemas import NAMES, SCHEMAS


def short(name: str) -> str:
    """Return `descriptor` for `shardscope.descriptor/1`."""
    return name.partition(".")[2].partition("/")[0]


class SchemaName(click.ParamType[str]):
    """The name of a document: `descriptor`, `descriptor/1` or `shardscope.descriptor/1`."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the full name; fails with the nearest one."""
        full = next((name for name in NAMES if value in (name, name.partition(".")[2], short(name))), None)
        if full is None:
            self.fail(
                f"there is no schema {value!r}.{nearest(str(value), tuple(map(short, NAMES)))}", param, ctx
            )
        return full

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """Offer the short names."""
        return [CompletionItem(short(name)) for name in NAMES if short(name).startswith(incomplete)]


@command(
    "schema",
    short_help="Print the JSON Schema of a document.",
    examples=(
        ("shardscope schema descriptor > descriptor.schema.json", "What `inspect --json` prints."),
        ("shardscope schema", "The names of the documents."),
    ),
)
@click.argument("name", required=False, type=SchemaName())
@click.option(
    "--json", "as_json", is_flag=True, help="Print the names as a JSON document; a schema always is one."
)
@click.pass_obj
def schema(session: Session, name: str | None, as_json: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of a document; without NAME, list the documents.

    A schema forbids every field that it does not list. Fields may be added under the same number; a field that goes or
    changes its meaning raises it.
    """
    if name is not None:
        from shardscope.engine.model.documents import json_schema

        session.out.write(f"{json.dumps(json_schema(name), indent=2)}\n".encode())
    elif as_json:
        session.out.write(f"{json.dumps({'schema': SCHEMAS, 'schemas': NAMES}, indent=2)}\n".encode())
    else:
        width = max(len(short(name)) for name in NAMES) + 2
        session.out.write_text("".join(f"{short(name):<{width}}{name}\n" for name in NAMES))

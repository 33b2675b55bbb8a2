"""The pages made from the schemas: one for each document that shardscope prints or reads, and their list."""

import ast
import inspect
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from shardscope.engine.model import schemas
from shardscope.engine.model.documents import DOCUMENTS, json_schema

FOLDER: Final = "docs/schemas"
SCHEMA: TypeAlias = dict[str, Any]


def documented_fields(owner: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a struct with the docstrings below them."""
    (definition,) = ast.parse(inspect.getsource(owner)).body
    if not isinstance(definition, ast.ClassDef):
        raise TypeError(owner)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            yield ast.unparse(field.target), " ".join(str(text.value.value).split())


def short(name: str) -> str:
    """`manifest` of `shardscope.manifest/1`: what `shardscope schema` is given, and the name of the page."""
    return name.partition(".")[2].partition("/")[0]


def pages() -> dict[str, str]:
    """Every page of this kind, by its path."""
    return {f"{FOLDER}/README.md": listing()} | {
        f"{FOLDER}/{short(name)}.md": page(name) for name in DOCUMENTS
    }


def listing() -> str:
    """The list of the documents."""
    lines = [
        "# Documents and their schemas",
        "",
        "What shardscope prints with `--json`, writes beside an output, or reads from you. The number behind the slash rises when a",
        "field goes or changes its meaning, never when one comes. `shardscope schema NAME` prints the JSON Schema (draft 2020-12),",
        "which forbids every field that it does not list, and `shardscope validate FILE` holds a document against it.",
        "",
        "| document | schema | what it is |",
        "|---|---|---|",
    ]
    for name, kind in DOCUMENTS.items():
        lines.append(f"| [{short(name)}]({short(name)}.md) | `{name}` | {summary(kind)} |")
    lines += [
        "",
        "Written by people: "
        + ", ".join(f"[{short(name)}]({short(name)}.md)" for name in sorted(schemas.AUTHORED))
        + ".",
        "",
    ]
    return "\n".join(lines)


def summary(kind: type) -> str:
    """The first paragraph of a docstring, on one line, safe in a table."""
    text = inspect.getdoc(kind) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def page(name: str) -> str:
    """The fields of one document, those of what it is made of below it."""
    schema = json_schema(name)
    definitions: SCHEMA = schema["$defs"]
    root = schema["$ref"].rpartition("/")[2]
    classes = {kind.__name__: kind for kind in structs(DOCUMENTS[name])}
    lines = [
        f"# {short(name)}",
        "",
        f"`{name}`. {summary(DOCUMENTS[name])}",
        "",
        "```console",
        f"shardscope schema {short(name)}",
        "```",
        "",
        *table(definitions[root], DOCUMENTS[name]),
    ]
    for title, definition in definitions.items():
        if title == root:
            continue
        lines += [f"## {title}", ""]
        kind = classes.get(title)
        about = " ".join(str(definition.get("description", "")).split())
        if about:
            lines += [about, ""]
        if "properties" in definition:
            lines += table(definition, kind)
        elif "enum" in definition:
            lines += [f"One of {', '.join(f'`{each}`' for each in definition['enum'])}.", ""]
        else:
            lines += [f"{spelled(definition)}.", ""]
    return "\n".join(lines)


def table(definition: SCHEMA, kind: type | None) -> list[str]:
    """The fields of one object."""
    says = {} if kind is None else dict(documented_fields(kind))
    spare = set(definition["properties"]) - set(definition.get("required", ()))
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for field, schema in definition["properties"].items():
        # The name in the document may be another than the attribute's, where that would be a word of Python.
        meaning = says.get(field, says.get(f"{field}_", ""))
        if field in spare:
            meaning = f"May be left out. {meaning}".strip()
        lines.append(f"| `{field}` | {spelled(schema)} | {meaning.replace('|', chr(92) + '|')} |")
    return [*lines, ""]


def spelled(schema: SCHEMA) -> str:
    """A type as a person says it, with links to what is described on the same page."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        title = schema["$ref"].rpartition("/")[2]
        return f"[{title}](#{title.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(spelled(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    match schema.get("type"):
        case "array":
            return array(schema)
        case "object":
            values = schema.get("additionalProperties")
            return f"object of {spelled(values)}" if isinstance(values, dict) else "object"
        case None:
            return "any"
        case kind:
            return str(kind)


def array(schema: SCHEMA) -> str:
    """An array, or a fixed row of things."""
    if schema.get("prefixItems"):
        return "(" + ", ".join(spelled(each) for each in schema["prefixItems"]) + ")"
    items = schema.get("items")
    return f"array of {spelled(items)}" if isinstance(items, dict) and items else "array"


def structs(root: type) -> Iterator[type]:
    """Yield the structs that a document is made of, itself first."""
    seen: set[type] = set()
    todo: list[Any] = [msgspec.inspect.type_info(root)]
    while todo:
        node = todo.pop()
        kind = getattr(node, "cls", None)
        if isinstance(kind, type) and issubclass(kind, Struct):
            if kind in seen:
                continue
            seen.add(kind)
            yield kind
        for slot in getattr(type(node), "__struct_fields__", ()):
            value = getattr(node, slot)
            todo += [
                each
                for each in (value if isinstance(value, tuple) else (value,))
                if isinstance(each, msgspec.inspect.Type | msgspec.inspect.Field)
            ]

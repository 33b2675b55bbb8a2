"""Writes the pages that say what the code and its data say: this folder, the table of the README, the schemas beside the data.

python docs/generate.py           write them
python docs/generate.py --check   say which are out of date, and fail if one is
"""

import inspect
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

from claim_pages import glossary, matrix, readme, schema, sources
from command_pages import commands, manual
from gallery_pages import gallery
from producer_pages import producers
from schema_pages import FOLDER as SCHEMAS
from schema_pages import documented_fields
from schema_pages import pages as schema_pages
from word_pages import words

from shardscope.engine.capabilities.published import SCHEMA_FILES
from shardscope.engine.model import limits
from shardscope.engine.model.blocker import Code
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import MEANINGS, precedence
from shardscope.engine.model.limits import DecodeLimits, Limits

ROOT = Path(__file__).resolve().parent.parent
DATA = "engine/shardscope/engine/capabilities/data"


def area(row: Code) -> str:
    """The part of a code before its first dot."""
    return row.code.partition(".")[0]


def sentence(template: str) -> str:
    """A template of the table of codes, with `{file}` for `{file:path}`."""
    return re.sub(
        r"\{(\w+)(?::\w+(?: ([\w -]+))?)?\}",
        lambda m: f"`{{{m[1]}}}`" + (f" {m[2]}s" if m[2] else ""),
        re.sub(r"\{\w+:verb (\w+)\}", r"\1", template),
    )


def codes() -> str:
    """Every blocker there is."""
    lines = [
        "# Codes",
        "",
        "What can stand in the way, by area. A code never changes its meaning; `shardscope explain CODE` says the same.",
        "A word in braces stands for a figure or a name of the checkpoint, which is made visible and harmless first.",
        "",
    ]
    for name, rows in groupby(sorted(CODES.values(), key=lambda row: (area(row), row.code)), key=area):
        lines += [f"## {name}", ""]
        for row in rows:
            facts = [row.severity.value, f"found at {row.stage.value}"]
            if row.blocks:
                facts.append("blocks " + ", ".join(row.blocks))
            if row.exit is not None:
                facts.append(f"exit {row.exit.value}")
            lines += [f"### `{row.code}`", "", f"*{' · '.join(facts)}*", ""]
            lines += [f"> {sentence(row.message)} {sentence(row.remedy)}", "", row.meaning, ""]
    return "\n".join(lines)


def exit_codes() -> str:
    """What a process says when it ends."""
    lines = [
        "# Exit codes",
        "",
        "The same for every command. Where several apply the specific beats the general: the first of "
        + ", ".join(str(code.value) for code in precedence())
        + ".",
        "",
        "| code | name | meaning |",
        "|---:|---|---|",
    ]
    lines += [f"| {code.value} | {code.name.lower()} | {meaning} |" for code, meaning in MEANINGS.items()]
    lines += [
        "",
        "A command that takes several paths ends with the first of these in that order; what each path would give alone stands in its",
        "document. 0 and 1 are answers; a code above says what keeps the answer partial, or away. [Automating](automating.md) has scripts.",
    ]
    return "\n".join([*lines, ""])


def grouped(count: int) -> str:
    """A limit as a person reads it: powers of two with their unit, the rest with separators."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count:,}"


def limit_page() -> str:
    """Every bound on reading."""
    defaults = Limits()
    lines = [
        "# Limits",
        "",
        (inspect.getdoc(limits) or "").partition("\n\n")[0],
        "A limit that is reached ends in the code `limit.NAME` and exit code 4; `--limit NAME=VALUE` sets another one.",
        "The values in force stand in every descriptor.",
        "",
        "| name | default | bounds |",
        "|---|---:|---|",
    ]
    lines += [
        f"| `{name}` | {grouped(getattr(defaults, name))} | {text} |"
        for name, text in documented_fields(Limits)
    ]
    contained = DecodeLimits()
    lines += [
        "",
        "## Of decoding",
        "",
        "In force where `--decode` was given ([decoding.md](decoding.md)).",
        "",
        "| name | default | bounds |",
        "|---|---:|---|",
    ]
    lines += [
        f"| `{name}` | {grouped(getattr(contained, name))} | {text} |"
        for name, text in documented_fields(DecodeLimits)
    ]
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "docs/codes.md": codes,
    "docs/exit-codes.md": exit_codes,
    "docs/limits.md": limit_page,
    "docs/commands.md": commands,
    "docs/shardscope.1": manual,
    "docs/gallery.md": gallery,
    "docs/support-matrix.md": matrix,
    "docs/producers.md": producers,
    "docs/glossary.md": glossary,
    "docs/sources.md": sources,
    "engine/shardscope/engine/report/words.py": words,
    **{path: partial(str, text) for path, text in schema_pages().items()},
    "README.md": partial(readme, ROOT / "README.md"),
    **{f"{DATA}/{file}": partial(schema, name) for file, name in SCHEMA_FILES.items()},
}
"""Everything that is generated, by its path."""


def stale() -> list[str]:
    """Return the paths of what does not say what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != page()
    ]


def surplus() -> list[str]:
    """Return the paths of pages about schemas that are gone."""
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / SCHEMAS).glob("*.md")}
    return sorted(found - PAGES.keys())


def main(arguments: list[str]) -> int:
    """Write what is out of date, or with `--check` only name it."""
    pages = stale()
    for name in pages:
        if "--check" in arguments:
            print(f"{name} is out of date: run `make docs`", file=sys.stderr)
        else:
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
            print(f"{name} written")
    for name in surplus():
        if "--check" in arguments:
            pages.append(name)
            print(f"{name} is about a document that is gone: run `make docs`", file=sys.stderr)
        else:
            (ROOT / name).unlink()
            print(f"{name} removed")
    return 1 if pages and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The pages made from the data of the claims: the support matrix, the glossary, the register of sources."""

import json
import re
from pathlib import Path

from shardscope.engine.capabilities import published
from shardscope.engine.capabilities.claims import RULES
from shardscope.engine.model.documents import json_schema
from shardscope.engine.model.glossary import Reading
from shardscope.engine.model.matrix import SupportMatrix
from shardscope.engine.model.sources import SourceEntry, SourceGroup, Standing

TABLE = re.compile(r"(<!-- support matrix: written by `make docs` -->\n).*?(<!-- end -->)", re.DOTALL)
GROUPS = {
    SourceGroup.UPSTREAM: "Upstream",
    SourceGroup.CONTAINMENT: "Security and containment",
    SourceGroup.PROJECT: "This project",
}


def cite(ids: tuple[str, ...], register: str = "sources.md") -> str:
    """Citations that lead to the register."""
    return "[" + ", ".join(f"[{name}]({register}#{name.lower()})" for name in ids) + "]"


def words(matrix: SupportMatrix) -> list[str]:
    """The table of words alone."""
    lines = [
        "| subject | " + " | ".join(column.title for column in matrix.columns) + " |",
        "|---|" + "---|" * len(matrix.columns),
    ]
    lines += [
        f"| {row.title} | " + " | ".join(cell.word.value for _, cell in row.each()) + " |"
        for row in matrix.rows
    ]
    return lines


def matrix() -> str:
    """What is claimed of each subject, cell by cell."""
    data = published.support_matrix()
    lines = [
        "# Support matrix",
        "",
        f"Version {data.version}, {data.status}. {data.note} Each cell cites the [register of sources](sources.md);",
        "`shardscope matrix` prints the same, and `shardscope validate` holds it against its rules.",
        "",
        *words(data),
        "",
        "## The words",
        "",
        "| word | meaning |",
        "|---|---|",
        *(f"| {each.word.value} | {each.meaning} |" for each in data.vocabulary),
        "",
    ]
    titles = {column.id: column.title for column in data.columns}
    for row in data.rows:
        lines += [f"## {row.title}", ""]
        if row.formats:
            lines += [f"Formats: {', '.join(f'`{name}`' for name in row.formats)}.", ""]
        lines += ["| capability | | what it means here | sources |", "|---|---|---|---|"]
        for column, cell in row.each():
            depends = (
                f" Depends on {', '.join(each.value for each in cell.depends_on)}." if cell.depends_on else ""
            )
            lines.append(
                f"| {titles[column]} | {cell.word.value} | {cell.note}{depends} | {cite(cell.sources)} |"  # type: ignore[index]
            )
        lines.append("")
    return "\n".join(lines)


def glossary() -> str:
    """The eight terms."""
    lines = [
        "# Glossary",
        "",
        "Eight things that are called sharding, placement or distribution, and that have different contracts.",
        "`shardscope glossary` prints the same.",
        "",
    ]
    for term in published.glossary().terms:
        mark = " *(our reading)*" if term.reading is Reading.OURS else ""
        lines += [
            f"## {term.term}",
            "",
            f"{term.meaning}{mark} {cite(term.sources)}",
            "",
            f"Here: {term.relevance}",
            "",
        ]
    return "\n".join(lines)


def sources() -> str:
    """The register, with its head and its rules."""
    data = published.sources()
    lines = [
        "# Sources",
        "",
        f"{data.artifact_id}, version {data.version}, {data.status}. Accessed {data.accessed}; baseline `{data.baseline}`.",
        "",
        data.note,
        "",
        "## Rules",
        "",
        *(f"{rule.number}. {rule.rule}" for rule in data.rules),
        "",
        "## How pages are held to them",
        "",
        "A claim cites entries by their ids, `[R01]`, `[R01, R04]` or `[R27-R29]`; an id that is not here fails the check, and so does a",
        "sentence that cites a vendor without one of the three words or *our reading*. Words that break a rule, unless the sentence denies",
        "them, are found by a lint, which finds careless sentences and proves nothing about careful ones:",
        "",
        "| rule | what is looked for |",
        "|---:|---|",
        *(f"| {rule.number} | {rule.problem} |" for rule in sorted(RULES, key=lambda rule: rule.number)),
        "",
        "The tests hold every page, every code and the data to this; `shardscope validate FILE.md` does it for a page of yours, offline.",
        "",
    ]
    for group, title in GROUPS.items():
        lines += [f"## {title}", ""]
        for entry in data.entries:
            if entry.group is group:
                lines += _entry(entry)
    return "\n".join(lines)


def _entry(entry: SourceEntry) -> list[str]:
    title = entry.title if entry.url is None else f"[{entry.title}]({entry.url})"
    facts = [entry.kind.value, f"confidence {entry.confidence.value}"]
    if entry.standing is Standing.HISTORICAL:
        facts.append("historical")
    return [
        f"### {entry.id}",
        "",
        f"{title} *({', '.join(facts)})*",
        "",
        f"- Used for: {entry.supported_use}",
        f"- With it goes: {entry.qualification}",
        "",
    ]


def readme(path: Path) -> str:
    """The README with its support matrix as the data has it."""
    table = "\n".join(["", *words(published.support_matrix()), "", ""])
    return TABLE.sub(lambda match: match[1] + table + match[2], path.read_text(encoding="utf-8"))


def schema(name: str) -> str:
    """The JSON Schema of a document, as it stands beside the data."""
    return json.dumps(json_schema(name), indent=2) + "\n"

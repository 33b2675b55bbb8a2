"""The pages that people read, taken apart: blocks of code, command lines, links, headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ("console", "sh")
"""Languages of blocks whose lines are command lines."""
COMMAND = re.compile(r"(?:\.venv/bin/)?shardscope(?: |$)|make [a-z]")
"""How a line begins that somebody could type."""

_FENCE = re.compile(
    r"(?ms)^(?:<!-- not run: (?P<why>.+?) -->\n+)?```(?P<language>\w*)(?P<words>[^\n]*)\n(?P<text>.*?)^```$"
)
_HEADING = re.compile(r"(?m)^(#{1,6}) (.+)$")
_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    page: str
    """Path in the repository."""
    line: int
    """Where it begins, from 1."""
    language: str
    text: str
    why_not: str | None
    """The reason why its commands are not run, from a comment in front of it."""

    def commands(self) -> Iterator[tuple[str, int]]:
        """Yield the command lines without prompts and comments, each with its exit code: 0, unless a comment behind it says `exit N`.

        Lines that end in a backslash go on in the next.
        """
        for line in re.sub(r"\\\n\s*", "", self.text).splitlines():
            typed, _, comment = line.removeprefix("$ ").partition("  #")
            if typed.strip() and not typed.startswith("#"):
                ends = re.search(r"\bexit (\d+)", comment)
                yield typed.strip(), int(ends[1]) if ends else 0


@cache
def pages() -> tuple[str, ...]:
    """Every page that is written for people, by its path in the repository."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests/fixtures/README.md"]
    return tuple(sorted(path.relative_to(ROOT).as_posix() for path in found))


@cache
def text(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    for found in _FENCE.finditer(text(page)):
        yield Block(
            page,
            text(page).count("\n", 0, found.start()) + 1,
            found["language"],
            found["text"],
            " ".join(found["why"].split()) if found["why"] else None,
        )


def prose(page: str) -> str:
    """The text of a page without blocks of code and comments."""
    return re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", "", text(page))


def links(page: str) -> Iterator[str]:
    """Yield the targets of a page's links and pictures."""
    yield from _LINK.findall(re.sub(r"`[^`\n]+`(?!\])", "", prose(page)))


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    found: set[str] = set()
    for _, heading in _HEADING.findall(re.sub(r"(?ms)^```.*?^```$", "", text(page))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 1
        while slug in found:
            slug = f"{re.sub(r'-[0-9]+$', '', slug)}-{number}"
            number += 1
        found.add(slug)
    return found

"""A block of a few lines for each of several checkpoints: what it is, whether it is whole, the worst that stands in the way."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from shardscope.app.cli.facts import WHOLE_STYLE
from shardscope.app.cli.report import SEVERITY_STYLE, SEVERITY_WORD, STATUS_STYLE
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.wholeness import wholeness
from shardscope.widgets.figures import plural, size

SHOWN: Final = 3
"""Errors and warnings that are shown of one checkpoint."""


def block(
    path: str, descriptor: Descriptor | None, failure: Blocker | None, width: int
) -> Iterator[RenderableType]:
    """Yield the lines about one path. `path` is neutralised already."""
    yield Text(path if len(path) <= width else f"…{path[len(path) - max(width, 8) + 1 :]}", "bold")
    if failure is not None:
        yield from _finding(failure, "not examined")
    if descriptor is None:
        return
    seen, source, tensors = descriptor.classification, descriptor.source, descriptor.tensors
    whole = wholeness(descriptor)
    figures = [plural(source.files, "file"), size(source.bytes)]
    if tensors.count:
        figures.append(plural(tensors.count, "tensor"))
    answer = Text.assemble(
        FORMAT_TITLES.get(seen.format, seen.format),
        ", ",
        (seen.status.value, STATUS_STYLE[seen.status]),
        " · whole: ",
        (whole.answer.value, WHOLE_STYLE[whole.answer]),
        (f" · {' · '.join(figures)}", "dim"),
    )
    yield Padding(answer, (0, 0, 0, 2))
    grave = sorted(
        (item for item in descriptor.blockers if item.severity is not Severity.INFO),
        key=lambda item: -item.severity.rank,
    )
    for item in grave[:SHOWN]:
        yield from _finding(item, SEVERITY_WORD[item.severity])
    if len(grave) > SHOWN:
        yield Padding(Text(f"… and {len(grave) - SHOWN:,} more", "dim"), (0, 0, 0, 4))


def _finding(item: Blocker, word: str) -> Iterator[RenderableType]:
    line = Text.assemble((word, SEVERITY_STYLE[item.severity]), (f" {item.code}: ", "dim"), item.message)
    yield Padding(line, (0, 0, 0, 4))


def total(told: Sequence[tuple[bool, int]]) -> Iterator[RenderableType]:
    """Yield the last lines: how many paths there were, and how to learn more. `told`: was it examined, its exit code."""
    failed = sum(not examined for examined, _ in told)
    bad = sum(examined and code != 0 for examined, code in told)
    words = [f"{plural(len(told), 'path')} looked at"]
    if bad:
        words.append(f"{bad:,} with what decides the exit code")
    if failed:
        words.append(f"{failed:,} not examined")
    yield Text(f"\n{', '.join(words)}. One path alone, or -v, gives the whole report.", "dim")

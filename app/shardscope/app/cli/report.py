"""The report of `shardscope inspect`: the answer first, then what is in the way, then why we think so.

Rich lays it out for a terminal and for a pipe alike; without colour it is the same text. Data of the checkpoint enters
as `Text` only, so that no markup in it is ever read.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec import UNSET
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shardscope.app.cli.facts import facts
from shardscope.app.cli.layout import NARROWEST, WIDEST, WIDTH, Line, heading, laid_out, rows
from shardscope.app.explorer.target import Asked, Target, inspect_command, tensors_command
from shardscope.engine.host import Host
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Confidence, Evidence, Status
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.secrets import redact
from shardscope.engine.model.text import display_name
from shardscope.engine.model.workflow import Step, StepName, StepState
from shardscope.widgets.figures import plural

ALIKE: Final = 3
"""Blockers of one code that are shown before the rest of them is counted."""
EVIDENCE: Final = 8
"""Pieces of evidence that are shown before the rest is counted."""
SEVERITY_STYLE: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
SEVERITY_WORD: Final = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "NOTE"}
STEP_STYLE: Final = {
    StepState.CURRENT: "green",
    StepState.STOPPED: "yellow",
    StepState.NOT_NEEDED: "dim",
    StepState.EXPERIMENTAL: "cyan",
    StepState.ON_REQUEST: "yellow",
    StepState.NOT_AVAILABLE: "yellow",
}
STATUS_STYLE: Final = {
    Status.CONDITIONAL: "bold green",
    Status.AMBIGUOUS: "bold yellow",
    Status.UNKNOWN: "bold yellow",
    Status.REFUSED: "bold red",
}


def render(
    descriptor: Descriptor,
    path: str,
    host: Host | None,
    *,
    width: int = WIDTH,
    color: bool = False,
    everything: bool = False,
    here: bool = True,
) -> str:
    """Return the report as text with line ends, and with terminal colours if `color`. `everything` cuts no list short.

    `here` tells that the checkpoint is at `path`, so that there is a next step to take.
    """
    room = max(NARROWEST, min(width, WIDEST))
    further = _next_steps(descriptor, path) if here else ()
    parts = (*_parts(descriptor, path, host, room, everything), *further)
    return laid_out(parts, width=width, color=color)


def _parts(
    descriptor: Descriptor, path: str, host: Host | None, width: int, everything: bool
) -> Iterator[RenderableType]:
    yield _answer(descriptor, path, width)
    yield Text()
    yield rows(facts(descriptor, host, everything=everything))
    yield from _blockers(descriptor.blockers, everything)
    yield from _steps(descriptor)
    yield from _evidence(descriptor, everything)
    yield from _alternatives(descriptor)


def _answer(descriptor: Descriptor, path: str, width: int) -> RenderableType:
    seen = descriptor.classification
    title = Text(FORMAT_TITLES.get(seen.format, seen.format), style="bold")
    room = width - title.cell_len - 2
    shown = display_name(path)
    where = Text(shown if len(shown) <= room else f"…{shown[len(shown) - max(room, 8) + 1 :]}", "dim")
    first = Table.grid(expand=True, padding=(0, 2))
    first.add_column(ratio=1)
    first.add_column(justify="right", no_wrap=True)
    first.add_row(title, where)
    verdict = Text()
    verdict.append(seen.status.value, STATUS_STYLE[seen.status])
    if seen.confidence is not Confidence.NONE:
        verdict.append(f" · confidence {seen.confidence.value}")
    if seen.status is not Status.CONDITIONAL:
        return Group(first, verdict)
    return Group(first, verdict, Text(seen.note, "dim"))


def _blockers(blockers: tuple[Blocker, ...], everything: bool) -> Iterator[RenderableType]:
    if not blockers:
        yield heading("In the way", "nothing was found in what was examined")
        return
    ordered = sorted(blockers, key=lambda item: (-item.severity.rank, item.code))
    yield heading("In the way", ", ".join(_counts(blockers)))
    for (severity, code), group in groupby(ordered, key=lambda item: (item.severity, item.code)):
        alike = list(group)
        shown = alike if everything else alike[:ALIKE]
        first = Table.grid(expand=True, padding=(0, 1))
        first.add_column(width=7, no_wrap=True)
        first.add_column(ratio=1, overflow="fold")
        first.add_column(justify="right", no_wrap=True)
        blocks = f"blocks {', '.join(alike[0].blocks)}" if alike[0].blocks else ""
        first.add_row(
            Text(SEVERITY_WORD[severity], SEVERITY_STYLE[severity]), Text(code, "dim"), Text(blocks, "dim")
        )
        yield Padding(first, (0, 0, 0, 2))
        for item in shown:
            yield Padding(Text(item.message, overflow="fold"), (0, 0, 0, 10))
        if len(alike) > len(shown):
            yield Padding(
                Text(f"… and {len(alike) - len(shown):,} more like this (-v)", "dim"), (0, 0, 0, 10)
            )
        for remedy in dict.fromkeys(item.remedy for item in shown):
            yield rows([("→", Text(remedy, overflow="fold"))], 10)


def _counts(blockers: tuple[Blocker, ...]) -> Iterator[str]:
    for severity, word, words in (
        (Severity.ERROR, "error", "errors"),
        (Severity.WARNING, "warning", "warnings"),
        (Severity.INFO, "note", "notes"),
    ):
        if count := sum(item.severity is severity for item in blockers):
            yield plural(count, word, words)


def _steps(descriptor: Descriptor) -> Iterator[RenderableType]:
    steps = descriptor.workflow.steps
    if not steps:
        return
    yield heading("Steps", "what is open, and what stops the next one")
    yield rows((step.name.value, _step(step)) for step in steps)


def _step(step: Step) -> Text:
    text = Text(step.state.value, STEP_STYLE[step.state])
    if step.state is StepState.STOPPED and step.stopped_by is not None:
        text.append(f" by {step.stopped_by}")
    return text.append(f": {step.says}", "dim")


def _evidence(descriptor: Descriptor, everything: bool) -> Iterator[RenderableType]:
    found = descriptor.classification.evidence
    if not found:
        return
    shown = found if everything else found[:EVIDENCE]
    yield heading("Why", "what was seen, and what kind of fact it is")
    yield rows((item.basis.value, _piece(item)) for item in shown)
    if len(found) > len(shown):
        yield Padding(Text(f"… and {len(found) - len(shown):,} more (-v)", "dim"), (0, 0, 0, 2))


def _piece(item: Evidence) -> Text:
    return Text(overflow="fold").append(f"{redact(item.subject)}: ", "dim").append(redact(item.says))


def _alternatives(descriptor: Descriptor) -> Iterator[RenderableType]:
    if not descriptor.classification.alternatives:
        return
    yield heading("Weighed and not chosen")
    yield rows(
        (item.format, Text(item.reason, overflow="fold")) for item in descriptor.classification.alternatives
    )


def _next_steps(descriptor: Descriptor, path: str) -> Iterator[RenderableType]:
    decoded = descriptor.decoded
    asked = None if decoded is UNSET else Asked(decoded.listed)
    bounds = DecodeLimits() if decoded is UNSET else decoded.limits
    target = Target(path, descriptor.limits, descriptor.source.hf_cache, bounds)
    words = inspect_command(target).removeprefix("shardscope inspect ")
    steps = [
        ("look around", f"shardscope {words}"),
        ("every fact", f"{inspect_command(target, asked=asked)} --json"),
    ]
    states = {step.name: step.state for step in descriptor.workflow.steps}
    if states.get(StepName.MATERIALIZE) is StepState.EXPERIMENTAL:
        steps.insert(0, ("a conversion", f"shardscope plan {words}{' --decode' if asked else ''}"))
    if descriptor.tensors.count:
        steps.insert(0, ("the model", f"shardscope model {words}{' --decode' if asked else ''}"))
        steps.insert(0, ("each tensor", tensors_command(target, asked=asked)))
    if states.get(StepName.ESCALATE) is StepState.ON_REQUEST:
        steps.insert(0, ("read pickles", inspect_command(target, asked=Asked())))
    worst = max(descriptor.blockers, key=lambda item: item.severity.rank, default=None)
    if worst is not None:
        steps.insert(0, ("what it means", f"shardscope explain {worst.code}"))
    yield heading("Next")
    for purpose, line in steps:
        yield Line(f"  {purpose:<13}  ", "dim").append(line, "not dim")

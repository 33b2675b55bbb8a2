"""A plan as a person reads it: what, where, decided how, needed how much.

Plans can be edited, so every string of one is neutralised here, whoever wrote it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from shardscope.app.cli.layout import WIDTH, heading, indented, laid_out, rows
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.plan import Admission, Decision, LeftOut, Plan, PlannedFile
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural, size
from shardscope.widgets.plan_words import NAME, absent, figures, made_of, of_plan, why, words_of

FILES: Final = 12
"""Files that are listed before the rest of them is counted."""
VERDICT_STYLE: Final = {"admitted": "green", "denied": "bold red", "unknown": "bold yellow"}


def render(plan: Plan, *, width: int = WIDTH, color: bool = False, everything: bool = False) -> str:
    """Return the plan as text with line ends, within `width` columns. `everything` cuts no list short."""
    return laid_out(parts(plan, everything=everything), width=width, color=color)


def parts(plan: Plan, *, everything: bool = False) -> Iterator[RenderableType]:
    """Yield the parts of a plan, from what it makes to what stands in its way."""
    yield Text("Plan", "bold").append(f"  {made_of(plan)}", "not bold")
    yield Text()
    yield rows(_facts(plan))
    yield from _files(plan.files, everything=everything)
    yield from _decisions(plan.decisions)
    yield from left_out(plan.left_out)
    if plan.admission is not None:
        yield from admission(plan.admission)
    if plan.notes:
        yield heading("To know before it is used")
        yield from _blockers(plan.notes, remedies=False)
    errors = [item for item in plan.blockers if item.severity is Severity.ERROR]
    if errors:
        yield heading("In the way", f"{plural(len(errors), 'blocker')}: nothing starts", "bold red")
        yield from _blockers(errors if everything else errors[:FILES], remedies=True)
        yield from _rest(errors, everything=everything)


def _facts(plan: Plan) -> Iterator[tuple[str, Text]]:
    facts = of_plan(plan)
    yield "read", Text(facts.read)
    yield "write", Text(facts.write)
    yield "types", Text(facts.types)
    if plan.carried:
        yield "carried along", Text(", ".join(shown(item.name, NAME) for item in plan.carried))
    yield "needs", Text(facts.needs)


def _files(files: Sequence[PlannedFile], *, everything: bool) -> Iterator[RenderableType]:
    if not files:
        return
    yield heading("Files")
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for file in files if everything else files[:FILES]:
        table.add_row(
            Text(size(file.bytes)), Text(plural(len(file.tensors), "tensor")), Text(shown(file.name))
        )
    yield indented(table)
    yield from _rest(files, everything=everything)


def _rest(listed: Sequence[object], *, everything: bool) -> Iterator[RenderableType]:
    if len(listed) > FILES and not everything:
        yield indented(Text(f"... and {len(listed) - FILES:,} more (-v)", "dim"))


def _decisions(decisions: Sequence[Decision]) -> Iterator[RenderableType]:
    if decisions:
        yield heading("Decided", "what was not forced, why, and what changes it")
        yield rows((words_of(item.kind), _decision(item)) for item in decisions)


def _decision(item: Decision) -> Text:
    text = Text(shown(item.choice), overflow="fold")
    if item.option:
        text.append(f"  [{shown(item.option)}]", "cyan")
    reasons = why(item)
    return text.append(f"\n{reasons}", "dim") if reasons else text


def left_out(items: Sequence[LeftOut]) -> Iterator[RenderableType]:
    """Yield what an output does not have."""
    if items:
        yield heading("Left out", "an output is weights, never an exact resume")
        yield rows((words_of(item.what), Text(absent(item))) for item in items)


def admission(found: Admission) -> Iterator[RenderableType]:
    """Yield an admission: the verdict, then each figure, what there is, and what both rest on."""
    yield heading("Admission", found.verdict, VERDICT_STYLE[found.verdict])
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    for check in found.checks:
        verdict = Text(check.verdict, VERDICT_STYLE[check.verdict])
        needs, has = figures(check)
        table.add_row(
            Text(shown(check.what, NAME)), Text(needs), Text(f"of {has}"), verdict, Text(shown(check.basis))
        )
    yield indented(table)


def _blockers(items: Iterable[Blocker], *, remedies: bool) -> Iterator[RenderableType]:
    for item in items:
        yield indented(Text(item.code, "dim"))
        yield indented(Text(shown(item.message), overflow="fold"), 6)
        if remedies:
            yield indented(Text(f"-> {shown(item.remedy)}", overflow="fold"), 6)

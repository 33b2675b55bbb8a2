"""A plan as a person reads it: what, where, decided how, needed how much.

Plans can be edited, so every string of one is neutralised here, whoever wrote it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from shardscope.app.cli.layout import WIDTH, heading, indented, laid_out, rows
from shardscope.engine.convert.admission import COUNTS
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.plan import Admission, AdmissionCheck, Decision, LeftOut, Plan, PlannedFile
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural, size

TARGETS: Final = {
    "ranks": "files of ranks",
    "dcp-safetensors": "safetensors of a PyTorch distributed checkpoint",
    "vllm": "files of vLLM's workers",
}
FILES: Final = 12
"""Files that are listed before the rest of them is counted."""
NAME: Final = 120
"""Characters of a name."""
VERDICT_STYLE: Final = {"admitted": "green", "denied": "bold red", "unknown": "bold yellow"}


def render(plan: Plan, *, width: int = WIDTH, color: bool = False, everything: bool = False) -> str:
    """Return the plan as text with line ends, within `width` columns. `everything` cuts no list short."""
    return laid_out(parts(plan, everything=everything), width=width, color=color)


def parts(plan: Plan, *, everything: bool = False) -> Iterator[RenderableType]:
    """Yield the parts of a plan, from what it makes to what stands in its way."""
    title = FORMAT_TITLES.get(plan.source.format, plan.source.format)
    to = "Hugging Face safetensors" if plan.target is None else TARGETS[plan.target.layout]
    yield Text("Plan", "bold").append(f"  {shown(title, NAME)} to {to}", "not bold")
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
    tensors = len({item.name for file in plan.files for item in file.tensors})
    written = sum(file.bytes for file in plan.files)
    needed = plan.estimates
    yield "read", Text(f"{plural(plan.source.files, 'file')}, {size(plan.source.bytes)}")
    yield (
        "write",
        Text(f"{plural(tensors, 'tensor')} in {plural(len(plan.files), 'file')}, {size(written)}"),
    )
    yield "types", Text(_types(plan.files))
    if plan.carried:
        yield "carried along", Text(", ".join(shown(item.name, NAME) for item in plan.carried))
    disk, memory = size(needed.temporary_bytes.bytes), size(needed.peak_ram_bytes.bytes)
    yield "needs", Text(f"{disk} of disk beside the target, {memory} of memory at the most")


def _types(files: Sequence[PlannedFile]) -> str:
    bytes_of: dict[str, int] = {}
    cast: dict[tuple[str, str], int] = {}
    for file in files:
        for tensor in file.tensors:
            bytes_of[tensor.dtype] = bytes_of.get(tensor.dtype, 0) + tensor.bytes
            if tensor.stored_dtype != tensor.dtype:
                pair = (tensor.stored_dtype, tensor.dtype)
                cast[pair] = cast.get(pair, 0) + 1
    ordered = sorted(bytes_of.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{shown(dtype, NAME)} {size(count)}" for dtype, count in ordered]
    words += [
        f"{plural(count, 'tensor')} cast from {shown(old, NAME)} to {shown(new, NAME)}"
        for (old, new), count in cast.items()
    ]
    return ", ".join(words) or "none"


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
        yield rows((_words(item.kind), _decision(item)) for item in decisions)


def _decision(item: Decision) -> Text:
    text = Text(shown(item.choice), overflow="fold")
    if item.option:
        text.append(f"  [{shown(item.option)}]", "cyan")
    why = [shown(item.evidence)] if item.evidence else []
    if item.tensors or item.examples:
        more = ", ..." if item.tensors > len(item.examples) else ""
        names = ", ".join(shown(name, NAME) for name in item.examples)
        why.append(plural(item.tensors, "tensor") + (f": {names}{more}" if names else ""))
    return text.append("\n" + "; ".join(why), "dim") if why else text


def left_out(items: Sequence[LeftOut]) -> Iterator[RenderableType]:
    """Yield what an output does not have."""
    if items:
        yield heading("Left out", "an output is weights, never an exact resume")
        yield rows((_words(item.what), Text(_absent(item))) for item in items)


def _absent(item: LeftOut) -> str:
    amount = "" if item.bytes is None else f" ({size(item.bytes)})"
    count = f"{plural(item.tensors, 'tensor')}{amount}, " if item.tensors else ""
    return f"{count}{shown(item.why)}"


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
        needs, has = _figures(check)
        table.add_row(
            Text(shown(check.what, NAME)), Text(needs), Text(f"of {has}"), verdict, Text(shown(check.basis))
        )
    yield indented(table)


def _figures(check: AdmissionCheck) -> Iterator[str]:
    for figure in (check.needs, check.has):
        if figure is None:
            yield "no limit" if check.verdict == "admitted" else "unknown"
        else:
            yield f"{figure:,}" if check.what in COUNTS else size(figure)


def _blockers(items: Iterable[Blocker], *, remedies: bool) -> Iterator[RenderableType]:
    for item in items:
        yield indented(Text(item.code, "dim"))
        yield indented(Text(shown(item.message), overflow="fold"), 6)
        if remedies:
            yield indented(Text(f"-> {shown(item.remedy)}", overflow="fold"), 6)


def _words(name: str) -> str:
    return shown(name.replace("_", " "), NAME)

"""A plan as a person reads it: what, where, decided how, needed how much."""

from collections.abc import Iterator, Sequence

from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.plan import Admission, Decision, LeftOut, Plan, PlannedFile
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import plural, size

FILES = 12
"""Files that are listed before the rest of them is counted."""
LABEL = 14


def render(plan: Plan, *, everything: bool = False) -> str:
    """Return the plan as text with line ends. `everything` cuts no list short."""
    return "".join(f"{line.rstrip()}\n" for line in lines(plan, everything=everything))


def lines(plan: Plan, *, everything: bool = False) -> Iterator[str]:
    """Yield the lines of a plan."""
    tensors = sum(len(file.tensors) for file in plan.files)
    yield f"Plan  {plan.source.format} to Hugging Face safetensors"
    yield ""
    yield _row("read", f"{plural(plan.source.files, 'file')}, {size(plan.source.bytes)}")
    yield _row(
        "write",
        f"{plural(tensors, 'tensor')} in {plural(len(plan.files), 'file')}, {size(sum(f.bytes for f in plan.files))}",
    )
    yield _row("types", _types(plan.files))
    if plan.carried:
        yield _row("carried along", ", ".join(shown(item.name) for item in plan.carried))
    yield from _files(plan.files, everything=everything)
    yield from _decisions(plan.decisions)
    yield from _left_out(plan.left_out)
    if plan.admission is not None:
        yield from admission_lines(plan.admission)
    if plan.notes:
        yield ""
        yield "Before it loads"
        for item in plan.notes:
            yield f"  {item.code}"
            yield f"      {item.message}"
    errors = [item for item in plan.blockers if item.severity is Severity.ERROR]
    if errors:
        yield ""
        yield f"In the way  {plural(len(errors), 'blocker')}: nothing starts"
        for item in errors if everything else errors[:FILES]:
            yield f"  {item.code}"
            yield f"      {item.message}"
            yield f"      -> {item.remedy}"


def _row(label: str, text: str) -> str:
    return f"  {label:<{LABEL}}{text}"


def _types(files: Sequence[PlannedFile]) -> str:
    bytes_of: dict[str, int] = {}
    cast: dict[tuple[str, str], int] = {}
    for file in files:
        for tensor in file.tensors:
            bytes_of[tensor.dtype] = bytes_of.get(tensor.dtype, 0) + tensor.bytes
            if tensor.stored_dtype != tensor.dtype:
                pair = (tensor.stored_dtype, tensor.dtype)
                cast[pair] = cast.get(pair, 0) + 1
    words = [f"{dtype} {size(count)}" for dtype, count in sorted(bytes_of.items(), key=lambda item: -item[1])]
    words += [f"{plural(count, 'tensor')} cast from {old} to {new}" for (old, new), count in cast.items()]
    return ", ".join(words) or "none"


def _files(files: Sequence[PlannedFile], *, everything: bool) -> Iterator[str]:
    if not files:
        return
    yield ""
    yield "Files"
    listed = files if everything else files[:FILES]
    for file in listed:
        yield f"  {size(file.bytes):>10}  {plural(len(file.tensors), 'tensor'):<14}  {file.name}"
    if len(files) > len(listed):
        yield f"  ... and {plural(len(files) - len(listed), 'more file', 'more files')} (-v)"


def _decisions(decisions: Sequence[Decision]) -> Iterator[str]:
    if not decisions:
        return
    yield ""
    yield "Decided  what was not forced, why, and what changes it"
    for item in decisions:
        names = (
            f": {', '.join(item.examples)}{', ...' if item.tensors > len(item.examples) else ''}"
            if item.examples
            else ""
        )
        change = f"  [{item.option}]" if item.option else ""
        yield _row(item.kind, f"{item.choice}{change}")
        yield _row("", f"{item.evidence}; {plural(item.tensors, 'tensor')}{names}")


def _left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    if not left_out:
        return
    yield ""
    yield "Left out  an output is weights, never an exact resume"
    for item in left_out:
        count = plural(item.tensors, "tensor") if item.tensors else ""
        amount = "" if item.bytes is None else f" ({size(item.bytes)})"
        yield _row(item.what, f"{count}{amount}{', ' if count else ''}{item.why}")


def admission_lines(admission: Admission) -> Iterator[str]:
    """Yield the lines of an admission: each figure, what there is, and the verdict."""
    yield ""
    yield f"Admission  {admission.verdict}"
    for check in admission.checks:
        bytes_ = check.what not in ("open files", "files")
        needs, has = (
            ("unknown" if n is None else size(n) if bytes_ else f"{n:,}") for n in (check.needs, check.has)
        )
        yield f"  {check.what:<{LABEL}}{needs:>10} of {has:<12}{check.verdict:<10}{check.basis}"

"""A plan in words, for texts and screens alike: what it reads and writes, what was decided and why, what it needs.

Plans can be edited, so every string of one is neutralised here, whoever wrote it.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.manifest import Run
from shardscope.engine.model.plan import COUNTS, AdmissionCheck, Decision, LeftOut, Plan, PlannedFile
from shardscope.engine.model.secrets import shown
from shardscope.widgets.figures import duration, plural, size

TARGETS: Final = {
    "ranks": "files of ranks",
    "dcp-safetensors": "safetensors of a PyTorch distributed checkpoint",
    "vllm": "files of vLLM's workers",
}
NAME: Final = 120
"""Characters of a name."""


class PlanFacts(Struct, frozen=True):
    """A plan in few words: what takes a look at every tensor is found out once."""

    read: str
    write: str
    needs: str
    types: str
    tensors: int
    """Names: ranks have shards of the same ones."""
    renamed: Sequence[int]
    """Where tensors get another name, counted through all files."""


def made_of(plan: Plan) -> str:
    """Return from what to what."""
    title = FORMAT_TITLES.get(plan.source.format, plan.source.format)
    to = "Hugging Face safetensors" if plan.target is None else TARGETS[plan.target.layout]
    return f"{shown(title, NAME)} to {to}"


def of_plan(plan: Plan) -> PlanFacts:
    """Return the figures of a plan."""
    tensors = len({item.name for file in plan.files for item in file.tensors})
    written = sum(file.bytes for file in plan.files)
    disk, memory = size(plan.estimates.temporary_bytes.bytes), size(plan.estimates.peak_ram_bytes.bytes)
    return PlanFacts(
        f"{plural(plan.source.files, 'file')}, {size(plan.source.bytes)}",
        f"{plural(tensors, 'tensor')} in {plural(len(plan.files), 'file')}, {size(written)}",
        f"{disk} of disk beside the target, {memory} of memory at the most",
        types_of(plan.files),
        tensors,
        array("L", _renamed(plan)),
    )


def _renamed(plan: Plan) -> Iterator[int]:
    tensors = (item for file in plan.files for item in file.tensors)
    return (number for number, item in enumerate(tensors) if item.name != item.source)


def types_of(files: Sequence[PlannedFile]) -> str:
    """Return the types that are written with their bytes, and what is cast."""
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


def why(item: Decision) -> str:
    """Return what a decision rests on and which tensors it is about; empty where there is nothing to say."""
    reasons = [shown(item.evidence)] if item.evidence else []
    if item.tensors or item.examples:
        more = ", ..." if item.tensors > len(item.examples) else ""
        names = ", ".join(shown(name, NAME) for name in item.examples)
        reasons.append(plural(item.tensors, "tensor") + (f": {names}{more}" if names else ""))
    return "; ".join(reasons)


def absent(item: LeftOut) -> str:
    """Return how much is left out, and why."""
    amount = "" if item.bytes is None else f" ({size(item.bytes)})"
    count = f"{plural(item.tensors, 'tensor')}{amount}, " if item.tensors else ""
    return f"{count}{shown(item.why)}"


def figures(check: AdmissionCheck) -> tuple[str, str]:
    """Return what is needed and what there is."""
    return _figure(check, check.needs), _figure(check, check.has)


def _figure(check: AdmissionCheck, figure: int | None) -> str:
    if figure is None:
        return "no limit" if check.verdict == "admitted" else "unknown"
    return f"{figure:,}" if check.what in COUNTS else size(figure)


def took(run: Run) -> str:
    """Return how long a run took."""
    return f"{run.seconds:.1f} s" if run.seconds < 10 else duration(run.seconds)


def memory_of(plan: Plan, run: Run, before: int | None = None) -> str:
    """Return the memory of a run beside what was planned.

    `before` is what the process had before, where it is no command of its own: the plan's figure for the program is not about it.
    """
    if run.peak_rss_bytes is None:
        return "peak memory not measured"
    if before is not None:
        buffers = size(plan.estimates.buffer_bytes.bytes)
        return f"peak memory {size(run.peak_rss_bytes)}, {size(before)} before it began, {buffers} of buffers planned"
    return f"peak memory {size(run.peak_rss_bytes)} of {size(plan.estimates.peak_ram_bytes.bytes)} planned"


def words_of(name: str) -> str:
    """Return the name of a kind as words."""
    return shown(name.replace("_", " "), NAME)

"""From a catalogue and a person's options to a plan: every file, every decision, every figure, before a byte is written."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from shardscope.engine.convert.plans import header
from shardscope.engine.convert.plans.ranks import Aimed
from shardscope.engine.convert.plans.selection import NOTHING, Chosen, Rows, Selection, matcher, select
from shardscope.engine.convert.plans.sharding import ADAPTER_STEM, STEM, planned_bytes, shard
from shardscope.engine.model.blocker import Blocker, Blocks, Fault, Finding, Severity, blocker
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.plan import (
    CarriedFile,
    Decision,
    LeftOut,
    Plan,
    PlanEstimates,
    PlannedFile,
    PlanOptions,
    PlanSource,
)
from shardscope.engine.model.resources import Estimate
from shardscope.engine.model.schemas import PLAN

PROGRAM_BYTES: Final = 60 << 20
"""What the program takes beside its buffers: interpreter, libraries, and the inspection of a small checkpoint. Measured: 46 to 50 MiB."""
CATALOGUED_BYTES: Final = 3 << 10
"""Of one tensor in catalogue, plan, tasks and manifest."""
FRAGMENT_BYTES: Final = 2 << 10
"""Of one fragment, its piece of the map and its record. Measured (`tests/benchmarks/convert_catalogue.py`): 3.5 to 4 KiB for a tensor
of one fragment, 1 to 1.6 KiB for each further one."""
FILE_BYTES: Final = 32 << 10
"""Of one file of the source: its entry, and what was read of it."""
DOCUMENT_BYTES: Final = 1 << 20
"""Index, manifest and run record of a small model; they grow by the tensor."""
TENSOR_BYTES: Final = 1 << 10
"""Of index and manifest, for each tensor."""


ADAPTER: Final = "peft_adapter"
"""The format whose output keeps the names of an adapter, so that its own loader finds it."""

Aim = Callable[[Sequence[Chosen]], Aimed]
Arrange = Callable[[Sequence[Chosen]], tuple[PlannedFile, ...]]
"""From the tensors that are written to the output files."""


def plan(
    *,
    tool: str,
    source: PlanSource,
    catalogue: Catalogue,
    options: PlanOptions,
    carried: Sequence[CarriedFile],
    absent: Sequence[LeftOut],
    decisions: Sequence[Decision],
    blockers: Sequence[Blocker],
    size_of: Callable[[LogicalTensor], int | None],
    buffers: Callable[[Sequence[Chosen]], int],
    rows: Mapping[str, Rows] = NOTHING,
    aim: Aim | None = None,
    arrange: Arrange | None = None,
) -> Plan:
    """Return the plan. What stands in the way is among its blockers.

    `absent` is state that is not in the catalogue at all, `decisions` are those that were made before; `blockers` are those of the inspection. `buffers` gives the bytes of the
    copies' own tiles; `rows` is as of `select`. `aim` gives the files of a target topology instead of those of whole tensors, `arrange` files of whole tensors
    in another way than that of a conversion.
    Raises `Fault`: those of `select` and of `aim`.
    """
    selection = select(catalogue, options, size_of, rows)
    found = [item for item in blockers if stops(item, catalogue, selection, options)]
    for item in selection.chosen:
        reason = item.tensor.unwritable
        if reason is not None:
            found.append(blocker(Finding("convert.tensor", {"tensor": item.tensor.name, "reason": reason})))
    sound = [item for item in selection.chosen if item.tensor.unwritable is None]
    if not selection.chosen:
        options_said = "--component, --include and --exclude"
        nothing = Finding("convert.nothing", {"count": len(catalogue.tensors), "options": options_said})
        found.append(blocker(nothing))
    target = None if aim is None or not sound else aim(sound)
    files = target.files if target is not None else _files(sound, options, source, arrange)
    more = 0 if target is None else target.document_bytes
    return Plan(
        schema=PLAN,
        tool=tool,
        source=source,
        options=options,
        files=files,
        aliases=selection.aliases,
        carried=tuple(carried),
        decisions=(*decisions, *selection.decisions, *(() if target is None else target.decisions)),
        left_out=(*selection.left_out, *absent),
        estimates=estimates(source, catalogue, sound, files, carried, buffers, more),
        blockers=tuple(found),
        notes=tuple(item for item in blockers if noted(item)),
        target=None if target is None else target.target,
    )


def noted(item: Blocker) -> bool:
    """Tell whether a person has to know of it before the output is used, although it stops nothing."""
    return item.severity is not Severity.ERROR and bool({Blocks.CONVERT, Blocks.LOAD} & set(item.blocks))


def _files(
    sound: Sequence[Chosen], options: PlanOptions, source: PlanSource, arrange: Arrange | None
) -> tuple[PlannedFile, ...]:
    if arrange is not None:
        return arrange(sound)
    return files_of(sound, options, ADAPTER_STEM if source.format == ADAPTER else STEM)


def files_of(chosen: Sequence[Chosen], options: PlanOptions, stem: str = STEM) -> tuple[PlannedFile, ...]:
    """Return the output files."""
    return shard(chosen, options.max_shard_bytes, header.length, header.MOST_BYTES, stem) if chosen else ()


def stops(item: Blocker, catalogue: Catalogue, selection: Selection, options: PlanOptions) -> bool:
    """Tell whether a finding of the inspection stands in the way of this plan.

    One about a tensor that the plan leaves out does not. One about a tensor that could not be listed at all does, unless a
    person excludes its name: it would be missing without a word.
    """
    if item.severity is not Severity.ERROR or Blocks.CONVERT not in item.blocks:
        return False
    tensor = item.params.get("tensor")
    if (
        not isinstance(tensor, str) or item.params.get("count", 1) != 1
    ):  # of several, one is named as an example
        return True
    if any(tensor == chosen.tensor.name for chosen in selection.chosen):
        return True
    excludes = matcher(options.exclude)
    listed = any(tensor == other.name for other in catalogue.tensors)
    return not listed and (excludes is None or not excludes(tensor))


def estimates(
    source: PlanSource,
    catalogue: Catalogue,
    chosen: Sequence[Chosen],
    files: Sequence[PlannedFile],
    carried: Sequence[CarriedFile],
    buffers: Callable[[Sequence[Chosen]], int],
    more: int = 0,
) -> PlanEstimates:
    """Return the figures of a plan; `more` are bytes of documents that not every output has."""
    output = output_bytes(files, carried) + more
    logical = sum(map(planned_bytes, chosen))
    tiles = buffers(chosen)
    return PlanEstimates(
        source_bytes=Estimate(source.bytes, Basis.OBSERVED, "sizes of the regular files"),
        logical_bytes=Estimate(logical, Basis.DERIVED, "shapes times element sizes of what is written"),
        output_bytes=Estimate(output, Basis.DERIVED, "files of the plan, with room for its documents"),
        temporary_bytes=Estimate(output, Basis.DERIVED, "the output itself, staged beside the target"),
        peak_ram_bytes=Estimate(
            program_bytes(source.files, catalogue) + tiles,
            Basis.DERIVED,
            "buffers of the plan's own tiles and workers, and the program with this catalogue",
        ),
        buffer_bytes=Estimate(tiles, Basis.DERIVED, "the plan's own tiles and workers"),
    )


def program_bytes(files: int, catalogue: Catalogue) -> int:
    """Return what the program takes beside its buffers, from what it has to remember: an upper bound, by measured figures.

    It knows counts alone: no size of a tensor enters it.
    """
    fragments = sum(len(tensor.fragments) for tensor in catalogue.tensors)
    remembered = CATALOGUED_BYTES * len(catalogue.tensors) + FRAGMENT_BYTES * fragments + FILE_BYTES * files
    return PROGRAM_BYTES + remembered


def output_bytes(files: Sequence[PlannedFile], carried: Sequence[CarriedFile]) -> int:
    """Return the bytes of an output with its documents, generously."""
    tensors = sum(len(file.tensors) for file in files)
    held = sum(file.bytes for file in files) + sum(item.bytes for item in carried)
    return held + DOCUMENT_BYTES + TENSOR_BYTES * tensors


def refuse(plan: Plan) -> None:
    """Raise the first thing that stands in the way of a plan.

    Raises `Fault`.
    """
    for item in plan.blockers:
        raise Fault(item.code, **item.params)

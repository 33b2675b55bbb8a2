"""A plan that was made before, and perhaps edited, held against its source: carried out as it stands, or refused."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from shardscope.engine.convert.disk.names import checked_parts
from shardscope.engine.convert.plans import header
from shardscope.engine.convert.plans.planning import estimates
from shardscope.engine.convert.plans.selection import CASTABLE, Chosen
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor, Shape
from shardscope.engine.model.plan import Plan, PlannedTensor, PlanSource
from shardscope.engine.model.tensors import DTYPES


def fitted(
    plan: Plan, source: PlanSource, catalogue: Catalogue, buffers: Callable[[Sequence[Chosen]], int]
) -> Plan:
    """Return the plan with figures that are counted anew; `buffers` gives the bytes of the copies' own tiles.

    Raises `Fault`: `plan.identity` for another or a changed source, `plan.tensor` for an entry that does not fit.
    """
    if plan.source.identity != source.identity:
        raise Fault("plan.identity", problem="path, size or times of a file differ")
    if plan.fix is not None:
        raise Fault("plan.identity", problem="it is the plan of a fix, which `shardscope fix` makes anew")
    if plan.source.decoded and not source.decoded:
        raise Fault("plan.identity", problem="it was planned with --decode")
    tensors: dict[str, LogicalTensor] = {}
    for tensor in catalogue.tensors:
        tensors.setdefault(tensor.name, tensor)
    names: set[str] = set()
    files = []
    for file in plan.files:
        checked_parts(file.name)
        for item in file.tensors:
            _check(item, tensors.get(item.source), names)
        size = header.length(file.tensors) + sum(item.bytes for item in file.tensors)
        files.append(replace(file, bytes=size))
    chosen = [
        Chosen(item.name, tensors[item.source], item.dtype, item.shape)
        for file in files
        for item in file.tensors
    ]
    found = estimates(source, catalogue, chosen, files, plan.carried, buffers)
    return replace(plan, files=tuple(files), estimates=found, admission=None)


def _check(item: PlannedTensor, tensor: LogicalTensor | None, names: set[str]) -> None:
    def refuse(problem: str) -> Fault:
        return Fault("plan.tensor", tensor=item.name, source=item.source, problem=problem)

    if item.name in names:
        raise refuse("another tensor has this name")
    names.add(item.name)
    if tensor is None:
        raise refuse("the source has no such tensor")
    if tensor.unwritable is not None:
        raise refuse(tensor.unwritable)
    if not _fits(item.shape, tensor.shape) or item.stored_dtype != tensor.dtype:
        raise refuse("shape or stored type is another")
    if item.dtype != tensor.dtype and (item.dtype not in CASTABLE or tensor.dtype not in CASTABLE):
        raise refuse(f"{tensor.dtype} is not cast to {item.dtype[:16]!r}")
    if item.bytes != DTYPES[item.dtype].bytes_of(item.shape):
        raise refuse("its bytes are not those of shape and type")


def _fits(shape: Shape, whole: Shape) -> bool:
    """Tell whether a shape is that of a tensor, or of its first rows."""
    if shape == whole:
        return True
    return len(shape) == len(whole) > 0 and shape[1:] == whole[1:] and 0 < shape[0] < whole[0]

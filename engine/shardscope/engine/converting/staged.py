"""What was staged held against its source, before it is promoted."""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Final

from shardscope.engine.convert.copies.contents import Contents, Opener
from shardscope.engine.convert.jobs.tasks import layout_of
from shardscope.engine.convert.plans.ranks import Ranks
from shardscope.engine.convert.proofs import probing
from shardscope.engine.convert.proofs.comparing import Beside, compared
from shardscope.engine.geometry.transfer.compose import whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.manifest import Validation
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.plan import Plan, PlannedFile, PlannedTensor
from shardscope.engine.model.progress import OnProgress, Progress, check
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted
from shardscope.engine.parse.safetensors import read_header
from shardscope.engine.source.read import OpenFile

_STAGED: Final = "\0staged/"
"""Before names of staged files, where those of the source stand too."""


def verify_staged(
    plan: Plan,
    tensors: Mapping[str, LogicalTensor],
    lowered: Mapping[str, Lowered],
    *,
    staged: Callable[[str], OpenFile],
    folder: str,
    opener: Opener,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> list[Validation]:
    """Return what was proven of staged files: structure by the format's own library, elements by a way of their own.

    `staged` opens a staged file, `folder` is where the library finds them; `tensors` and `lowered` are those of the source by
    name. Raises `Fault`: `verify.unreadable`, `verify.structure`, `verify.metadata`, `verify.value`; `Cancelled`.
    """
    work = _Staged(plan, tensors, lowered, staged, folder, opener, cancel, progress)
    for file in plan.files:
        work.structure(file)
    says = f"{counted(len(plan.files), 'file')} read back by the format's own library"
    found = [Validation("headers", "held", says)]
    if plan.options.verify == "headers":
        return [*found, Validation("values", "not asked", "--verify headers")]
    probed = sum(work.elements(file) for file in plan.files)
    says = f"{counted(probed, 'element')} read again one by one, by another way"
    if plan.options.verify == "full":
        count = work.everything()
        says = f"every byte of {counted(count, 'tensor')} compared with the source; {says}"
    return [*found, Validation("values", "held", says)]


class _Staged:
    """What is staged, and what it was made from."""

    def __init__(
        self,
        plan: Plan,
        tensors: Mapping[str, LogicalTensor],
        lowered: Mapping[str, Lowered],
        staged: Callable[[str], OpenFile],
        folder: str,
        opener: Opener,
        cancel: threading.Event | None,
        progress: OnProgress | None,
    ) -> None:
        self._plan = plan
        self._tensors = tensors
        self._lowered = lowered
        self._open_staged = staged
        self._folder = folder
        self._opener = opener
        self._cancel = cancel
        self._progress = progress
        self._total = sum(len(file.tensors) for file in plan.files)
        self._done = 0
        self._ranks = None if plan.target is None else Ranks(plan.target)

    def structure(self, file: PlannedFile) -> None:
        """Let the safetensors library open a staged file, and compare what it sees with the plan."""
        import safetensors as library

        place = os.path.join(self._folder, file.name)
        try:
            with library.safe_open(place, framework="np") as opened:
                names = set(opened.keys())
                if file.metadata is not None and (opened.metadata() or {}) != file.metadata:
                    raise Fault("verify.metadata", file=file.name, count=len(file.metadata))
                for item in file.tensors:
                    part = opened.get_slice(item.name) if item.name in names else None
                    if part is None or (part.get_dtype(), tuple(part.get_shape())) != (
                        item.dtype,
                        item.shape,
                    ):
                        raise Fault("verify.structure", file=file.name, tensor=item.name)
        except library.SafetensorError as error:
            raise Fault("verify.unreadable", file=file.name, reason=str(error)) from None
        if len(names) != len(file.tensors):
            raise Fault(
                "verify.structure", file=file.name, tensor=min(names - {t.name for t in file.tensors})
            )

    def elements(self, file: PlannedFile) -> int:
        """Compare some elements of every tensor with the source, one by one; return how many."""
        count = 0
        with self._open_staged(file.name) as output, Contents(self._opener) as contents:
            begins = _begins(output)
            for item in file.tensors:
                self._say(item)
                width = DTYPES[item.dtype].bits // 8
                tensor, lowered = self._tensors[item.source], self._lowered[item.source]
                layout = layout_of(item, file, tensor.shape, self._ranks)
                for probe in probing.probes(tensor, lowered, item.dtype, contents, layout=layout):
                    found = output.pread(begins[item.name] + probe.at * width, width)
                    if not probing.same(found, probe.data, item.dtype):
                        raise Fault("verify.value", file=file.name, tensor=item.name, element=probe.element)
                    count += 1
        return count

    def everything(self) -> int:
        """Compare every byte of all tensors with the source; return how many tensors."""
        count = 0
        with Beside(self._either, self._plan.options.memory_bytes) as beside:
            for file in self._plan.files:
                with self._open_staged(file.name) as output:
                    begins = _begins(output)
                for item in file.tensors:
                    check(self._cancel)
                    self._compare(beside, file, item, begins[item.name])
                    count += 1
        return count

    def _compare(self, beside: Beside, file: PlannedFile, item: PlannedTensor, begin: int) -> None:
        tensor = self._tensors[item.source]
        at = compared(
            beside,
            tensor,
            made_tensor(item, _STAGED + file.name, begin),
            dtype=item.dtype,
            layout=layout_of(item, file, tensor.shape, self._ranks),
            cancel=self._cancel,
        )
        if at is not None:
            raise Fault("verify.value", file=file.name, tensor=item.name, element=at)

    def _either(self, name: str) -> OpenFile:
        if name.startswith(_STAGED):
            return self._open_staged(name.removeprefix(_STAGED))
        return self._opener(name)

    def _say(self, item: PlannedTensor) -> None:
        check(self._cancel)
        if self._progress is not None:
            self._progress(Progress("verify", self._done, self._total, "tensors", item.name))
        self._done += 1


def made_tensor(item: PlannedTensor, file: str, begin: int) -> LogicalTensor:
    """Return a tensor of an output file as one of a catalogue."""
    fragment = Fragment(0, item.shape, Record(file, begin, item.bytes, item.bytes), 0)
    return LogicalTensor(item.name, item.dtype, item.shape, whole(item.shape), None, (fragment,))


def _begins(output: OpenFile) -> dict[str, int]:
    parsed = read_header(output, Limits())
    return dict(zip(parsed.names, parsed.begins, strict=True))

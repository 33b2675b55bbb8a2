"""What a conversion does between admission and promotion: prove the source, make every file, verify them, and what the manifest says."""

import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.copying import Copied
from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.convert.executors.dispatch import Elsewhere
from shardscope.engine.convert.executors.threads import run_here
from shardscope.engine.convert.jobs.readback import check_digests
from shardscope.engine.convert.jobs.tasks import FileTask, TaskSource, file_tasks
from shardscope.engine.convert.plans.header import Header
from shardscope.engine.convert.plans.ranks import documents_beside
from shardscope.engine.convert.plans.sharding import index, index_name
from shardscope.engine.convert.proofs.proving import prove
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.converting.carrying import opening
from shardscope.engine.converting.preparing import TOOL, Prepared
from shardscope.engine.converting.staged import verify_staged
from shardscope.engine.geometry.language.document import written
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.course import Course
from shardscope.engine.model.manifest import Manifest, OutputFile, OutputTensor, SourceFile, Validation
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.plan import Plan, PlannedFile, PlannedTensor
from shardscope.engine.model.progress import OnProgress, Progress
from shardscope.engine.model.schemas import MANIFEST
from shardscope.engine.model.source import Kind
from shardscope.engine.model.text import counted
from shardscope.engine.source.read import OpenFile, adopted
from shardscope.engine.source.source import Source

CARRY_TILE: Final = 1 << 20


class Work:
    """One conversion between admission and promotion: `prove`, `write`, `verify`, `manifest`, in this order."""

    def __init__(
        self,
        plan: Plan,
        prepared: Prepared,
        source: Source,
        staging: Staging,
        cancel: threading.Event | None,
        progress: OnProgress | None,
        course: Course,
        *,
        hf_cache: bool,
    ) -> None:
        self.plan = plan
        self._course = course
        self.elsewhere: Elsewhere | None = None
        """Who makes the files, where that is not this process."""
        self._hf_cache = hf_cache
        self.validation: list[Validation] = []
        self._inventory = prepared.inspection.inventory
        self._beside = prepared.beside
        self._recorded = [
            item for item in prepared.inspection.descriptor.source.entries if item.kind == Kind.FILE
        ]
        self._tensors = {tensor.name: tensor for tensor in prepared.catalogue.tensors}
        self._source = source
        self._staging = staging
        self._cancel = cancel
        self._progress = progress
        self._open = opener_of(source, self._inventory)
        self._lowered: dict[str, Lowered] = {}

    @property
    def _planned(self) -> Sequence[PlannedTensor]:
        """One entry for each tensor: ranks have shards of the same ones."""
        return list({item.name: item for file in self.plan.files for item in file.tensors}.values())

    def _of(self, planned: PlannedTensor) -> LogicalTensor:
        return self._tensors[planned.source]

    def prove(self) -> None:
        """Check every map, and compare everything that is stored more than once. Raises `Fault`."""
        proven = prove(
            self.plan,
            self._planned,
            self._tensors,
            self._open,
            cancel=self._cancel,
            progress=self.report,
        )
        self._lowered = proven.lowered
        self.validation += proven.validation

    def write(self) -> list[OutputFile]:
        """Write every file of the plan into the staging folder; return what the manifest says of them. Raises `Fault`."""
        tasks = file_tasks(self.plan, self._tensors, self.task_source(), self._kept())
        made = self._make(tasks)
        outputs = [self._output(file, made[file.name]) for file in self.plan.files]
        for name, text in self._documents():
            record = self._staging.write_small(name, text)
            outputs.append(OutputFile(name, record.size, record.sha256))
        with opening(self._beside, self._open) as carried:
            outputs += [
                self._carry(carried, item.name, item.source, item.bytes) for item in self.plan.carried
            ]
        recorded = sum(len(task.checks) for task in tasks)
        if not self.plan.options.check_crc:
            self.validation.append(Validation("checksums", "not asked", "--no-crc"))
        elif recorded:
            self._held(
                "checksums", f"{counted(recorded, 'record')} of the source match the CRC-32 that was recorded"
            )
        else:
            self.validation.append(Validation("checksums", "not recorded", "the source records none"))
        return outputs

    def _kept(self) -> dict[str, Header]:
        """Read the headers of the source that files of the output have as they are."""
        return {
            file.name: kept_header(file, file.kept, self._tensors, self._open)
            for file in self.plan.files
            if file.kept is not None
        }

    def _documents(self) -> Iterator[tuple[str, bytes]]:
        """Yield what stands beside the tensors: an index of several files, or what a target has."""
        if self.plan.target is not None:
            yield from documents_beside(self.plan, self._tensors).items()
        elif self.plan.fix is not None:
            if self.plan.fix.index is not None:
                yield self.plan.fix.index, _as_text(index(self.plan.files, self.plan.fix.index_metadata))
        elif len(self.plan.files) > 1:
            yield index_name(self.plan.files), _as_text(index(self.plan.files))

    def task_source(self) -> TaskSource:
        """Return the source as another process finds it."""
        root = self._source.root
        path = os.path.join(os.getcwdb(), root.path)
        same = root.identity
        return TaskSource(path, self._hf_cache, same.device, same.inode, self._inventory.files)

    def _make(self, tasks: Sequence[FileTask]) -> dict[str, Copied]:
        """Carry out tasks, and return what became of each file, by its name."""
        if self.elsewhere is not None:
            return self.elsewhere.run(tasks, cancel=self._cancel, progress=self._progress)
        return run_here(
            tasks,
            self._staging,
            self._open,
            workers=self.plan.options.workers,
            budget_bytes=self.plan.options.memory_bytes,
            cancel=self._cancel,
            progress=self._progress,
            course=self._course,
        )

    def _output(self, file: PlannedFile, copied: Copied) -> OutputFile:
        overflowed = {item.tensor: item.count for item in copied.overflows}
        tensors = tuple(
            OutputTensor(
                item.name,
                item.source,
                item.dtype,
                item.shape,
                map_digest(self._lowered[item.source]),
                overflowed.get(item.source, 0),
            )
            for item in file.tensors
        )
        return OutputFile(file.name, copied.bytes, copied.sha256, tensors)

    def _carry(self, opener: Opener, name: str, source: str, size: int) -> OutputFile:
        digest = hashlib.sha256()
        with opener(source) as reader, self._staging.create(name, size) as output:
            for at in range(0, size, CARRY_TILE):
                data = reader.pread(at, min(CARRY_TILE, size - at))
                digest.update(data)
                output.write_at(at, data)
            record = output.finish(digest.hexdigest())
        return OutputFile(name, record.size, record.sha256)

    def verify(self) -> None:
        """Read what was staged as a stranger would, and hold it against plan and source. Raises `Fault` `verify.*`."""
        self.validation += verify_staged(
            self.plan,
            self._tensors,
            self._lowered,
            staged=self._staged,
            folder=self._staging.staged_path(),
            opener=self._open,
            cancel=self._cancel,
            progress=self._progress,
        )
        if self.elsewhere is not None and self.plan.options.verify == "full":
            check_digests(self._staging.records, self._staged, self._cancel)

    def _staged(self, name: str) -> OpenFile:
        return adopted(self._staging.open_staged(name), name.encode())

    def manifest(self, outputs: Sequence[OutputFile]) -> Manifest:
        """Return the manifest: equal for equal sources, plans and versions."""
        return Manifest(
            schema=MANIFEST,
            tool=TOOL,
            format=self.plan.source.format,
            source=tuple(
                SourceFile(record.path, record.size, record.digest.sha256) for record in self._recorded
            ),
            options=self.plan.options,
            outputs=tuple(outputs),
            aliases=self.plan.aliases,
            decisions=self.plan.decisions,
            left_out=self.plan.left_out,
            estimates=self.plan.estimates,
            validation=tuple(self.validation),
            fix=self.plan.fix,
        )

    def _held(self, what: str, says: str) -> None:
        self.validation.append(Validation(what, "held", says))

    def report(self, progress: Progress) -> None:
        """Say how far a stage is."""
        if self._progress is not None:
            self._progress(progress)


def _as_text(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def kept_header(
    file: PlannedFile, source: str, tensors: Mapping[str, LogicalTensor], opener: Opener
) -> Header:
    """Return the header of a file of the source, for an output file with the same tensors in the same places. Raises `Fault`."""
    offsets = tuple(tensors[item.source].fragments[0].offset for item in file.tensors)
    with opener(source) as reader:
        begin = min(offsets, default=reader.size)
        return Header(reader.pread(0, begin), offsets, reader.size)


def map_digest(lowered: Lowered) -> str:
    """Return the SHA-256 of a map in normal form, as a document."""
    return hashlib.sha256(msgspec.json.encode(written(lowered), order="deterministic")).hexdigest()

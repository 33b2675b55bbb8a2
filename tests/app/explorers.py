"""The explorer on checkpoints made by hand, with an engine that can be held in the middle of its work."""

import os
import threading
from dataclasses import dataclass, field
from typing import Any, Final

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.target import Target
from shardscope.engine.host import Host
from shardscope.engine.inspection import DigestMode, Inspection
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress
from shardscope.engine.model.source import Kind
from shardscope.engine.previewing import Preview
from tests.app.fakes import GIB, entry, inspection, llama_rows, tensor_table

CONFIG: Final = Preview("config.json", "json", ("{", '  "hidden_size": 4096', "}"), "2 values")


@dataclass
class FakeEngine:
    """An engine that answers what a test prepared, and that can be held in the middle of its work."""

    found: Inspection | Exception
    """An inspection, or what inspecting raises."""
    shown: Preview | Exception = CONFIG
    """A preview, or what previewing raises."""
    held: bool = False
    """Whether inspecting goes on until it is cancelled."""
    held_digests: bool = False
    """Whether hashing goes on until it is cancelled."""
    digests_fail: Exception | None = None
    digested: Inspection | None = None
    """What hashing ends with, where it is not what inspecting ended with."""
    calls: list[str] = field(default_factory=list)
    """What was asked of the engine."""

    def engine(self) -> Engine:
        """Return the calls."""
        return Engine(self._inspect, self._with_digests, self._preview, self._host)

    def _inspect(self, target: Target, cancel: threading.Event, progress: OnProgress) -> Inspection:
        self.calls.append("inspect")
        progress(Progress("headers", 37, 200, "files", "model-00037-of-00200.safetensors"))
        while self.held:
            if cancel.wait(0.01):
                raise Cancelled
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def _with_digests(
        self, found: Inspection, mode: DigestMode, cancel: threading.Event, progress: OnProgress
    ) -> Inspection:
        self.calls.append(f"digests {mode}")
        progress(Progress("digests", 61, 100, "bytes"))
        while self.held_digests:
            if cancel.wait(0.01):
                raise Cancelled
        if self.digests_fail is not None:
            raise self.digests_fail
        return self.digested or found

    def _preview(self, found: Inspection, path: bytes, cancel: threading.Event) -> Preview:
        self.calls.append(f"preview {os.fsdecode(path)}")
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown

    def _host(self, target: Target) -> Host:
        return Host(412 * GIB, 96 * GIB, 80 * GIB, 64 * GIB, 2 * GIB)


def llama(*, blockers: tuple[Blocker, ...] = (), **facts: Any) -> Inspection:
    """Return a small sharded Llama."""
    table = tensor_table(llama_rows(32))
    entries = [
        entry("config.json", 654),
        entry("model.safetensors.index.json", 23_910),
        entry("tokenizer", kind=Kind.DIRECTORY),
        entry("tokenizer/tokenizer.json", 9_085_657),
        *(entry(file, 4_651 << 20) for file in table.files),
    ]
    evidence = (
        Evidence(
            EvidenceKind.JSON,
            "model.safetensors.index.json",
            "an index maps 288 tensors to 3 files",
            Basis.DECLARED,
        ),
        Evidence(
            EvidenceKind.HEADER,
            "model-*.safetensors",
            "3 safetensors headers list 288 tensors",
            Basis.OBSERVED,
        ),
        Evidence(
            EvidenceKind.NAME,
            "config.json",
            "a Hugging Face configuration stands beside them",
            Basis.INFERRED,
        ),
    )
    return inspection(entries, table=table, evidence=evidence, blockers=blockers, **facts)


def explorer(engine: FakeEngine, path: str | None = "run42/llama", **options: Any) -> Explorer:
    """Return the explorer on a made-up checkpoint, in the colours of the snapshots."""
    return Explorer(path, engine.engine(), theme="shardscope-dark", **options)

"""The explorer on checkpoints made by hand, with an engine that can be held in the middle of its work."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.target import Target
from shardscope.engine.host import Host
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import DigestMode, Inspection
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.escalation import Ceilings, IsolationProfile, Landlock, Probes
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.file_layout import ByteRange, FileLayout
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress
from shardscope.engine.model.source import Kind
from shardscope.engine.previewing import Preview
from tests.app.fakes import GIB, entry, inspection, llama_rows, tensor_table

CONFIG: Final = Preview("config.json", "json", ("{", '  "hidden_size": 4096', "}"), "2 values")

PROFILE: Final = IsolationProfile(
    kernel="6.1.0",
    machine="x86_64",
    root=False,
    no_new_privs=True,
    dumpable=False,
    system_calls=("read", "write", "exit_group"),
    landlock=Landlock(7, 65535, 3, 3),
    ceilings=Ceilings(2 << 30, 1240, 0, 0, 3, 0),
    variables=0,
    probes=Probes("denied", "denied", "denied", "denied"),
)
"""A machine that gives everything."""


def a_layout(found: Inspection, path: bytes) -> FileLayout:
    """Return a layout of a file with the tensors that it has in a table."""
    table, file = found.tensors, os.fsdecode(path)
    size = found.inventory.by_path[path].size
    begin = min((each.begin for each in table if each.file == file), default=size)
    if begin == size:
        return FileLayout(file, size, size, "unknown", (ByteRange(0, size, "unknown"),) if size else ())
    ranges = [ByteRange(0, 8, "header"), ByteRange(8, begin, "header", note="JSON")]
    for each in table:
        if each.file == file:
            note = f"{each.dtype} {list(each.shape)}"
            ranges.append(ByteRange(each.begin, each.end, "tensor", each.name, note))
            begin = each.end
    if begin < size:
        ranges.append(ByteRange(begin, size, "trailing"))
    return FileLayout(file, size, size, "safetensors", tuple(ranges))


@dataclass
class FakeEngine:
    """An engine that answers what a test prepared, and that can be held in the middle of its work."""

    found: Inspection | Exception
    """An inspection, or what inspecting raises."""
    shown: Preview | Exception = CONFIG
    """A preview, or what previewing raises."""
    laid_out: Callable[[Inspection, bytes], FileLayout] | Exception = a_layout
    """What laying a file out ends with."""
    held: bool = False
    """Whether inspecting goes on until it is cancelled."""
    held_digests: bool = False
    """Whether hashing goes on until it is cancelled."""
    digests_fail: Exception | None = None
    digested: Inspection | None = None
    """What hashing ends with, where it is not what inspecting ended with."""
    containment: IsolationProfile | Exception = PROFILE
    """What asking for containment ends with."""
    decoded: Inspection | Exception | None = None
    """What decoding ends with."""
    held_decoding: bool = False
    """Whether decoding goes on until it is cancelled."""
    wishes: list[Decoding] = field(default_factory=list)
    """What was asked to be decoded."""
    calls: list[str] = field(default_factory=list)
    """What was asked of the engine."""

    def engine(self) -> Engine:
        """Return the calls."""
        return Engine(
            self._inspect,
            self._with_digests,
            self._preview,
            self._layout,
            self._host,
            self._preflight,
            self._decode,
        )

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

    def _layout(self, found: Inspection, path: bytes, cancel: threading.Event) -> FileLayout:
        self.calls.append(f"layout {os.fsdecode(path)}")
        if isinstance(self.laid_out, Exception):
            raise self.laid_out
        return self.laid_out(found, path)

    def _preflight(self, limits: DecodeLimits) -> IsolationProfile:
        self.calls.append("preflight")
        if isinstance(self.containment, Exception):
            raise self.containment
        return self.containment

    def _decode(
        self, target: Target, wish: Decoding, cancel: threading.Event, progress: OnProgress
    ) -> Inspection:
        self.calls.append(f"decode {wish.listed}")
        self.wishes.append(wish)
        wish.intent.spend()
        progress(Progress("decode", 12, None, "pickles"))
        while self.held_decoding:
            if cancel.wait(0.01):
                raise Cancelled
        if isinstance(self.decoded, Exception):
            raise self.decoded
        assert self.decoded is not None
        return self.decoded

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

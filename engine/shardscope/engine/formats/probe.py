"""The one way in which formats touch files: bounded, remembered, reported.

Whatever goes wrong with one file becomes a blocker about that file and the answer `None`, so that one bad file
never hides what the others say.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from shardscope.engine.formats.folder import Folder, folder_of
from shardscope.engine.model.blocker import Blocker, Fault, Finding, blocker
from shardscope.engine.model.facts import (
    GgufHeader,
    JsonDocument,
    Nature,
    SafetensorsHeader,
    Sniff,
    TorchArchive,
    ZipDirectory,
)
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress, Progress, check
from shardscope.engine.model.source import Entry, Inventory, Reader
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import path_text
from shardscope.engine.parse import json as json_parser
from shardscope.engine.parse import safetensors
from shardscope.engine.parse import sniff as sniffer
from shardscope.engine.parse.weight_index import read_weight_index
from shardscope.engine.source.source import Source

T = TypeVar("T")

HEAD_BYTES = 4096
"""How much of a file is looked at to tell what it is."""


class Probe:
    """One inspection's access to the files of the inventory, and the place where its findings gather."""

    def __init__(
        self,
        source: Source,
        inventory: Inventory,
        limits: Limits,
        cancel: threading.Event | None = None,
        progress: OnProgress | None = None,
    ) -> None:
        self.inventory = inventory
        self.limits = limits
        self.tensors = TensorTable()
        self.blockers: list[Blocker] = []
        self.progress = progress
        """Who hears how far the work is."""
        self.read_whole: set[bytes] = set()
        """Files of which every byte was read (JSON, trackers): hashing them costs nothing more."""
        self.headers_read = 0
        self._source = source
        self._cancel = cancel
        self._header_bytes = 0
        self._folders: dict[bytes, Folder] = {}
        self._sniffs: dict[bytes, Sniff | None] = {}
        self._documents: dict[bytes, JsonDocument | None] = {}
        self._texts: dict[bytes, str | None] = {}
        self._archives: dict[bytes, TorchArchive | None] = {}
        self._directories: dict[bytes, ZipDirectory | None] = {}

    def folder(self, path: bytes) -> Folder:
        """Return the folder at `path` (empty: the root) with all its files."""
        if path not in self._folders:
            self._folders[path] = folder_of(self.inventory, path)
        return self._folders[path]

    def report(self, code: str, subject: Entry | str | None = None, **params: int | str | None) -> None:
        """Add a blocker about `subject`."""
        self.note(Finding(code, params), subject)

    def note(self, finding: Finding, subject: Entry | str | None = None) -> None:
        """Add a finding as a blocker about `subject`."""
        self.blockers.append(
            blocker(finding, path_text(subject.path) if isinstance(subject, Entry) else subject)
        )

    def checkpoint(self, stage: str, done: int, total: int, subject: Entry | None = None) -> None:
        """Say how far the work is, and stop here if it was cancelled."""
        check(self._cancel)
        if self.progress is not None:
            self.progress(Progress(stage, done, total, "files", subject.text if subject else None))

    def sniff(self, entry: Entry) -> Sniff | None:
        """Return what the file is by its first bytes; None where it cannot be read."""
        return self._remember(self._sniffs, entry, _sniff)

    def json(self, entry: Entry) -> JsonDocument | None:
        """Return the file as a bounded JSON document; None where it is none."""
        return self._remember(self._documents, entry, self._document(entry, json_parser.read_json))

    def weight_index(self, entry: Entry) -> JsonDocument | None:
        """Return an index of weights as a JSON document; None where it is none. Not remembered: see `header`."""
        return self.guarded(entry, self._document(entry, read_weight_index))

    def text(self, entry: Entry, limit: int = HEAD_BYTES) -> str | None:
        """Return a small text file (a tracker such as `latest`), at most `limit` bytes of it, undecodable bytes replaced."""

        def read(reader: Reader) -> str:
            data = reader.pread(0, limit)
            if len(data) == reader.size:
                self.read_whole.add(entry.path)
            return data.decode("utf-8", "backslashreplace")

        return self._remember(self._texts, entry, read)

    def peek(self, entry: Entry, length: int = HEAD_BYTES, offset: int = 0) -> bytes:
        """Return up to `length` bytes at `offset` (below zero: counted from the end); nothing where it cannot be read."""

        def read(reader: Reader) -> bytes:
            return reader.pread(max(0, offset + reader.size if offset < 0 else offset), length)

        return self.guarded(entry, read) or b""

    def expect(self, entry: Entry, *expected: Nature) -> None:
        """Report the file for what it is, where its first bytes say that it is none of `expected`."""
        found = self.sniff(entry)
        if found is not None and (finding := sniffer.check_expected(found, set(expected), entry.size)):
            self.note(finding, entry)

    def archive(self, entry: Entry) -> TorchArchive | None:
        """Return the record names of a torch.save zip; no record is read but its version and byte order."""

        def read(reader: Reader) -> TorchArchive:
            from shardscope.engine.parse import torch_archive

            archive = torch_archive.describe(reader, self._zip_directory(entry, reader), self.limits)
            for finding in archive.notes:
                self.note(finding, entry)
            return archive

        return self._remember(self._archives, entry, read)

    def directory(self, entry: Entry, *usual: str) -> ZipDirectory | None:
        """Return the directory of a zip that torch.save did not write; None where it is none. Codes in `usual` deserve no word."""
        return self._remember(
            self._directories, entry, lambda reader: self._zip_directory(entry, reader, usual)
        )

    def gguf(self, entry: Entry) -> GgufHeader | None:
        """Return the header of a GGUF file; None where there is none. Not remembered."""

        def read(reader: Reader) -> GgufHeader:
            from shardscope.engine.parse import gguf

            header = gguf.read_header(reader, self.limits)
            self._header_bytes += header.data_begin
            self._within("header_bytes_total", self._header_bytes)
            self._within("tensors", len(self.tensors) + len(header.names))
            for finding in header.notes:
                self.note(finding, entry)
            return header

        header = self.guarded(entry, read)
        self.headers_read += header is not None
        return header

    def header(self, entry: Entry) -> SafetensorsHeader | None:
        """Return a safetensors header; None where there is none. Not remembered: a million tensors would not fit."""

        def read(reader: Reader) -> SafetensorsHeader:
            try:
                header = safetensors.read_header(reader, self.limits)
            except Fault as fault:
                raise explained(fault, reader, Nature.SAFETENSORS) from None
            self._header_bytes += header.header_bytes
            self._within("header_bytes_total", self._header_bytes)
            self._within("tensors", len(self.tensors) + len(header.names))
            return header

        header = self.guarded(entry, read)
        if header is not None:
            self.headers_read += 1
            for finding in header.notes:
                self.note(finding, entry)
        return header

    def peek_header(self, entry: Entry) -> SafetensorsHeader | None:
        """Return a header for a recogniser: what is wrong with it is left for `header` to report."""
        try:
            with self._source.open(entry) as reader:
                return safetensors.read_header(reader, self.limits)
        except Fault:
            return None

    def catalogue(self, entry: Entry, header: SafetensorsHeader) -> None:
        """Add a file's tensors to the table."""
        self.tensors.extend(entry.text, header)

    def catalogue_array(
        self, place: str, name: str, dtype: str, shape: tuple[int, ...], size: int, begin: int = 0
    ) -> bool:
        """Add an array that a description of its own tells of; false where the limit is reached.

        `place` is the file that holds it from `begin` on, or the folder of its chunks.
        """
        if len(self.tensors) >= self.limits.tensors:
            self.report("limit.tensors", place, limit=self.limits.tensors, found=len(self.tensors) + 1)
            return False
        self.tensors.append(place, name, dtype, shape, begin, begin + size)
        self.headers_read += 1
        return True

    def _document(
        self, entry: Entry, parse: Callable[[Reader, Limits], JsonDocument]
    ) -> Callable[[Reader], JsonDocument]:
        """Return how to read a whole JSON file by `parse`, named for what it is where it is none."""

        def read(reader: Reader) -> JsonDocument:
            try:
                document = parse(reader, self.limits)
            except Fault as fault:
                raise explained(fault, reader, Nature.JSON) from None
            self.read_whole.add(entry.path)
            return document

        return read

    def _zip_directory(self, entry: Entry, reader: Reader, usual: Sequence[str] = ()) -> ZipDirectory:
        from shardscope.engine.parse import zip as zip_parser

        directory = zip_parser.read_directory(reader, self.limits)
        for finding in directory.notes:
            if finding.code not in usual:
                self.note(finding, entry)
        return directory

    def _within(self, limit: str, found: int) -> None:
        bound: int = getattr(self.limits, limit)
        if found > bound:
            raise Fault(f"limit.{limit}", limit=bound, found=found)

    def _remember(self, memory: dict[bytes, T | None], entry: Entry, read: Callable[[Reader], T]) -> T | None:
        if entry.path not in memory:
            memory[entry.path] = self.guarded(entry, read)
        return memory[entry.path]

    def guarded(self, entry: Entry, read: Callable[[Reader], T]) -> T | None:
        """Return what `read` makes of the open file; where it raises a fault, that becomes a blocker and the answer is null."""
        check(self._cancel)
        try:
            with self._source.open(entry) as reader:
                return read(reader)
        except Fault as fault:
            self.note(fault.finding, entry)
            return None


def _sniff(reader: Reader) -> Sniff:
    return sniffer.sniff(reader.pread(0, HEAD_BYTES), reader.size)


def explained(fault: Fault, reader: Reader, expected: Nature) -> Fault:
    """Return the fault that names the file for what it is, where its bytes tell; otherwise `fault` itself."""
    if fault.finding.code.startswith(("limit.", "source.")):
        return fault
    finding = sniffer.check_expected(_sniff(reader), expected, reader.size)
    return Fault(finding.code, **finding.params) if finding else fault

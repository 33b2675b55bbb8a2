"""Every file of the corpus as the explorer shows it: never an error, never a character that acts on the terminal."""

import time
from pathlib import Path

import pytest

from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model.source import Kind
from shardscope.engine.model.text import UNSAFE
from shardscope.engine.previewing import LINES, WIDTH, preview

SECONDS = 2.0


@pytest.fixture(scope="module")
def inspection(corpus: Path) -> Inspection:
    return inspect(corpus, digest="none")


def test_every_file_is_shown_without_an_unsafe_character(inspection: Inspection) -> None:
    kinds = set()
    for entry in inspection.inventory.entries:
        began = time.process_time()
        shown = preview(inspection, entry.path)
        spent = time.process_time() - began
        kinds.add(shown.kind)

        assert not UNSAFE.search("".join((shown.title, shown.kind, shown.note, *shown.lines))), entry.text
        assert len(shown.lines) <= LINES + 1, entry.text
        assert max(map(len, shown.lines), default=0) <= WIDTH, entry.text
        assert spent < SECONDS, entry.text
        assert shown.kind == "nothing" or entry.kind is Kind.FILE, entry.text
    assert kinds == {"json", "safetensors header", "text", "bytes", "nothing"}


def test_every_tensor_of_the_corpus_has_a_row(inspection: Inspection) -> None:
    rows = list(inspection.tensors)
    assert len(rows) == inspection.descriptor.tensors.count
    assert sum(row.bytes for row in rows) == inspection.descriptor.tensors.logical_bytes

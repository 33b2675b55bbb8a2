"""Names of a hostile checkpoint in every widget: what reaches the terminal is harmless, and the name can be read.

The apps run without the filter that deletes what is left, so that each widget has to be safe by itself; one test proves
the filter alone.
"""

import json
import os
from collections.abc import Callable
from typing import ClassVar

import msgspec
import pytest
from tests.capture import captured
from tests.conftest import settle
from tests.hostile import HOSTILE
from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text
from textual.app import App, ComposeResult
from textual.events import Paste
from textual.filter import LineFilter
from textual.widget import Widget
from textual.widgets import Static

from shardscope.engine.model.evidence import Alternative, Basis, Evidence, EvidenceKind
from shardscope.engine.model.progress import Progress
from shardscope.engine.model.resources import Estimate, Resources
from shardscope.engine.model.source import Inventory
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.topology import Axis, Mesh, Topology
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.evidence_panel import EvidencePanel
from shardscope.widgets.file_tree import FileTree, InventoryTree
from shardscope.widgets.preview_panel import PreviewPanel, json_blocks
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.resources_panel import ResourcesPanel
from shardscope.widgets.safe import UnsafeFilter, content, visible
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine
from shardscope.widgets.summary_panel import SummaryPanel
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.topology_panel import TopologyPanel

Build = Callable[[str], tuple[Widget, Callable[[], None]]]


def nothing() -> None:
    """Widgets that are filled when they are made."""


def evidence(raw: str) -> tuple[Widget, Callable[[], None]]:
    claim = Evidence(EvidenceKind.NAME, raw, raw, Basis.INFERRED)
    found = msgspec.structs.replace(
        samples.CLASSIFICATION,
        format=raw,
        note=raw,
        evidence=(claim,),
        alternatives=(Alternative(raw, raw, (claim,)),),
    )
    return EvidencePanel(found), nothing


def blockers(raw: str) -> tuple[Widget, Callable[[], None]]:
    item = msgspec.structs.replace(samples.MISSING_RANK, subject=raw, message=raw, remedy=raw, code=raw)
    return BlockersPanel([item] * 6), nothing


def topology(raw: str) -> tuple[Widget, Callable[[], None]]:
    axes = (Axis(raw, 2, Basis.INFERRED, raw), Axis("dp", 2, Basis.INFERRED, raw))
    return TopologyPanel(Topology((Mesh(raw, axes, ((0, 0),), ((1, 1),)),), note=raw)), nothing


def resources(raw: str) -> tuple[Widget, Callable[[], None]]:
    return ResourcesPanel(Resources(*[Estimate(1, Basis.DERIVED, raw)] * 5), samples.Host()), nothing


def summary(raw: str) -> tuple[Widget, Callable[[], None]]:
    item = msgspec.structs.replace(samples.MISSING_RANK, message=raw, remedy=raw)
    fact = msgspec.structs.replace(samples.DESCRIPTOR.producer[0], name=raw, version=raw)
    found = msgspec.structs.replace(
        samples.DESCRIPTOR,
        blockers=(item,),
        producer=(fact,),
        topology=Topology(note=raw),
        classification=msgspec.structs.replace(samples.CLASSIFICATION, format=raw),
    )
    return SummaryPanel(found, samples.Host(), ((raw, raw),)), nothing


def tensors(raw: str) -> tuple[Widget, Callable[[], None]]:
    table = TensorTable()
    table.append(raw, raw, raw, (1,), 0, 2)
    table.append(f"other {raw}", f"other {raw}", raw, (1,), 0, 2)
    panel = TensorPanel(table)
    return panel, lambda: panel.search(visible(raw))


def files(raw: str) -> tuple[Widget, Callable[[], None]]:
    tree = FileTree()
    path = raw.encode("utf-8", "surrogatepass").replace(b"/", b"_")
    if raw == "a\udcffb":
        path = os.fsencode(raw)
    inventory = Inventory(
        root_is_file=False, entries=(samples.entry(path), samples.entry(path + b"2")), blockers=()
    )
    return tree, lambda: tree.show_files(InventoryTree(inventory))


def preview(raw: str) -> tuple[Widget, Callable[[], None]]:
    panel = PreviewPanel()
    lines = ["{", f"  {raw}", "}", f"{raw} {{", "x", "x", f"}} {raw}"]
    return panel, lambda: panel.show(raw, lines, raw, json_blocks(lines))


def crumbs(raw: str) -> tuple[Widget, Callable[[], None]]:
    return Breadcrumbs("shardscope", raw, raw), nothing


def status(raw: str) -> tuple[Widget, Callable[[], None]]:
    line = StatusLine(raw, raw)
    line.styles.width = "1fr"
    return line, nothing


def progress(raw: str) -> tuple[Widget, Callable[[], None]]:
    line = ProgressLine()
    return line, lambda: line.show(Progress(raw, 1, 2, raw, raw))


WIDGETS: dict[str, Build] = {
    build.__name__: build
    for build in (
        evidence,
        blockers,
        topology,
        resources,
        summary,
        tensors,
        files,
        preview,
        crumbs,
        status,
        progress,
    )
}


@pytest.mark.parametrize(("raw", "seen"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_text_is_harmless_and_readable_in_every_widget(raw: str, seen: str) -> None:
    built = {name: build(raw) for name, build in WIDGETS.items()}
    for widget, _ in built.values():
        widget.styles.height = 1 if isinstance(widget, Breadcrumbs | StatusLine | ProgressLine) else 24
    app = Stage(*(widget for widget, _ in built.values()))
    async with captured(app, size=(120, 24 * len(built))) as (pilot, driver):
        await pilot.pause()
        for _, fill in built.values():
            fill()
        await settle(pilot)
        assert app.is_running
        assert driver.unsafe == set()
        lines = screen_text(app).splitlines()
        for name, (widget, _) in built.items():
            wanted = seen
            if name == "files":  # a path cannot hold a slash, and bytes that are no UTF-8 show one by one
                wanted = seen.replace("/", "_").replace("⟨U+D800⟩", "\\xed\\xa0\\x80")
            region = widget.region
            assert wanted in "\n".join(lines[region.y : region.bottom]), name


@pytest.mark.parametrize(("raw", "seen"), HOSTILE.values(), ids=HOSTILE)
async def test_a_pasted_name_is_harmless(raw: str, seen: str) -> None:
    panel = TensorPanel(samples.tensors(4))
    app = Stage(panel)
    async with captured(app) as (pilot, driver):
        panel.search("")
        await pilot.pause()
        pilot.app.post_message(Paste(raw))
        await settle(pilot)
        assert driver.unsafe == set()
        if raw == seen:
            assert raw in driver.text


class Leaky(App[None]):
    """An app whose widgets let everything through."""

    FILTERED: ClassVar[bool]

    def compose(self) -> ComposeResult:
        for raw, _ in HOSTILE.values():
            yield Static(raw, markup=False)

    def get_line_filters(self) -> list[LineFilter]:
        return [*super().get_line_filters(), *([UnsafeFilter()] if self.FILTERED else [])]


@pytest.mark.parametrize("filtered", [True, False])
async def test_the_filter_alone_stops_what_widgets_of_the_library_let_through(filtered: bool) -> None:
    app = type("Leaks", (Leaky,), {"FILTERED": filtered})()
    async with captured(app) as (pilot, driver):
        await pilot.pause()
        # Without the filter the driver must see it: a test that cannot fail proves nothing.
        assert bool(driver.unsafe) is not filtered


async def test_no_action_hides_in_a_name() -> None:
    rung = []

    class Bell(App[None]):
        def compose(self) -> ComposeResult:
            yield Static(content("[@click=app.bell]x[/]"))

        def bell(self) -> None:
            rung.append(True)

    app = Bell()
    async with captured(app) as (pilot, _):
        for x in range(22):
            await pilot.click(Static, offset=(x, 0))
        assert not rung


def test_json_of_a_hostile_document_keeps_its_lines() -> None:
    lines = json.dumps({raw: raw for raw, _ in HOSTILE.values()}, indent=2, ensure_ascii=False).split("\n")
    assert json_blocks(lines)[0] == len(lines) - 1

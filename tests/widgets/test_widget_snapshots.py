"""How the widgets look on a terminal of 80 x 24, and that nothing is told by colour alone."""

import json
import re
from collections.abc import Callable

import msgspec
import pytest
from tests.capture import captured
from tests.conftest import Snap, settle
from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text
from textual.widget import Widget

from shardscope.engine.model.progress import Progress
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.evidence_panel import EvidencePanel
from shardscope.widgets.file_tree import FileTree, InventoryTree, Legend, Mark
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.preview_panel import PreviewPanel, json_blocks
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.resources_panel import ResourcesPanel
from shardscope.widgets.safe import Tone
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine
from shardscope.widgets.summary_panel import SummaryPanel
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.topology_panel import TopologyPanel

Build = Callable[[], tuple[Widget, Callable[[], None]]]
HINTS = (("d", "decode (structure only, nothing runs)"), ("r", "report"), ("?", "help"))
TIGHT = samples.Host(disk_free=5 * samples.GIB, ram_available=256 << 20)


def nothing() -> None:
    """Widgets that are filled when they are made."""


def summary() -> tuple[Widget, Callable[[], None]]:
    return SummaryPanel(samples.DESCRIPTOR, samples.Host(), HINTS), nothing


def evidence() -> tuple[Widget, Callable[[], None]]:
    return EvidencePanel(samples.CLASSIFICATION), nothing


def blockers() -> tuple[Widget, Callable[[], None]]:
    links = [
        msgspec.structs.replace(
            samples.OPAQUE,
            code="source.link",
            subject=f"shard-{number}",
            message=f"shard-{number} is a link.",
        )
        for number in range(40)
    ]
    return BlockersPanel([*samples.BLOCKERS, *links]), nothing


def topology() -> tuple[Widget, Callable[[], None]]:
    return TopologyPanel(samples.TOPOLOGY), nothing


def resources() -> tuple[Widget, Callable[[], None]]:
    return ResourcesPanel(samples.RESOURCES, TIGHT), nothing


def tensors() -> tuple[Widget, Callable[[], None]]:
    panel = TensorPanel(samples.tensors(100_000))
    return panel, lambda: panel.search("q_proj !layers.1")


def files() -> tuple[Widget, Callable[[], None]]:
    tree = FileTree()
    marks = {
        b"huggingface/config.json": [Mark.ERROR],
        b"zero_to_fp32.py": [Mark.CODE],
        **{entry.path: [Mark.OPAQUE] for entry in samples.FILES if entry.path.endswith(b".pt")},
    }

    def fill() -> None:
        shown = InventoryTree(samples.INVENTORY, marks)
        tree.show_files(shown)
        tree.open_line(0)
        tree.app.query_one(Legend).show_legend(shown)

    return tree, fill


def preview() -> tuple[Widget, Callable[[], None]]:
    panel = PreviewPanel()
    names = {f"model.layers.{number}.weight": "model-00001-of-00002.safetensors" for number in range(291)}
    lines = json.dumps({"metadata": {"total_size": 123}, "weight_map": names}, indent=2).splitlines()
    return panel, lambda: panel.show("model.safetensors.index.json", lines, "19.2 KiB", json_blocks(lines))


WIDGETS: dict[str, Build] = {
    build.__name__: build
    for build in (summary, evidence, blockers, topology, resources, tensors, files, preview)
}


def framed(widget: Widget, theme: str = "textual-dark") -> Stage:
    """Return an app with the lines at the edges around a widget."""
    status = StatusLine("safe plane", ("nothing decoded", Tone.MUTED))
    status.styles.width = "1fr"
    extra = [Legend()] if isinstance(widget, FileTree) else []
    return Stage(
        Breadcrumbs("shardscope", "run42", "global_step1200"),
        status,
        widget,
        *extra,
        ProgressLine(),
        theme=theme,
    )


@pytest.mark.parametrize("build", WIDGETS.values(), ids=WIDGETS)
async def test_a_widget(snap: Snap, build: Build) -> None:
    widget, fill = build()
    app = framed(widget)
    async with app.run_test(size=(80, 24)) as pilot:
        fill()
        app.query_one(ProgressLine).show(Progress("digests", 5 << 30, 18 << 30, "bytes", "model.safetensors"))
        widget.focus() if widget.focusable else None
        await settle(pilot)
        snap(app)


@pytest.mark.parametrize("build", WIDGETS.values(), ids=WIDGETS)
async def test_without_colour_nothing_is_lost(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    widget, fill = build()
    coloured = framed(widget)
    async with coloured.run_test(size=(80, 24)) as pilot:
        fill()
        await settle(pilot)
        wanted = screen_text(coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    widget, fill = build()
    plain = framed(widget, "ansi-dark")
    async with captured(plain, size=(80, 24)) as (pilot, driver):
        fill()
        await settle(pilot)
        assert screen_text(plain) == wanted
        styles = {
            code
            for codes in re.findall(r"\x1b\[([0-9;]*)m", "".join(driver.written))
            for code in codes.split(";")
        }
        assert styles <= {"", "0", "1", "2", "3", "4", "7", "39", "49"}  # the defaults are no colours


async def test_the_cursor_is_seen_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    tree = FileTree()
    app = framed(tree, "ansi-dark")
    async with captured(app, size=(80, 24)) as (pilot, driver):
        tree.show_files(InventoryTree(samples.INVENTORY))
        tree.focus()
        await settle(pilot)
        driver.written.clear()
        await pilot.press("down")
        await pilot.pause()
        reversed_rows = re.findall(r"\x1b\[[0-9;]*7[0-9;]*m([^\x1b]*)", "".join(driver.written))
        assert any("huggingface/" in row for row in reversed_rows)


async def test_plain_ascii_draws_no_other_sign() -> None:
    tree = FileTree(glyphs=ASCII)
    panel = SummaryPanel(samples.DESCRIPTOR, samples.Host(), HINTS, glyphs=ASCII)
    blockers = BlockersPanel(samples.BLOCKERS, glyphs=ASCII)
    figures = ResourcesPanel(samples.RESOURCES, TIGHT, glyphs=ASCII)
    crumbs = Breadcrumbs("a", "b" * 200, "c", "d", glyphs=ASCII)
    line = ProgressLine(glyphs=ASCII)
    app = Stage(crumbs, tree, panel, blockers, figures, line)
    async with app.run_test(size=(80, 140)) as pilot:
        tree.show_files(InventoryTree(samples.INVENTORY))
        tree.open_line(0)
        line.show(Progress("digests", 5, 18, "bytes", "x" * 100))
        await settle(pilot)
        assert screen_text(app).isascii()

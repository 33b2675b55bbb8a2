"""How a report looks before it is written: the choices, both sides of every line, and what is said when it cannot be."""

from threading import Event

import pytest
from msgspec.structs import replace

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.report.calls import Calls, Made
from shardscope.app.explorer.report.own_error import ErrorPage
from shardscope.app.explorer.report.screen import ReportScreen
from shardscope.app.explorer.report.wanted import Wanted
from shardscope.app.explorer.target import Target
from shardscope.engine.model.blocker import Blocker, Fault
from shardscope.engine.model.descriptor import Descriptor, Digest
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.report_lines import ReportLine
from shardscope.engine.model.reports import ReportEnvironment, ReportOptions, ReportTool
from shardscope.engine.model.topology import Axis, Mesh, Topology
from shardscope.engine.report.building import Given, build
from shardscope.engine.report.names import Names
from shardscope.engine.report.sides import preview
from shardscope.engine.reporting import Prepared, Request
from shardscope.widgets.glyphs import ASCII, UNICODE
from shardscope.widgets.report_form import ReportForm
from shardscope.widgets.report_rows import Laid, ReportRows, clipped, laid
from tests.app.decodings import a_plane
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import GIB, a_blocker, entry, inspection
from tests.app.test_explorer_report import press, text
from tests.capture import captured
from tests.conftest import SIZES, Snap, settle
from tests.hostile import HOSTILE

ENVIRONMENT = ReportEnvironment(
    "Linux", "6.1.0", "debian 12", "x86_64", "3.11.2", "2.4.1", "4.44.0", None, None, None, "0.4.5"
)
PAGE = """\
An error of shardscope 1.0.0
while    looking at the checkpoint
kind     ZeroDivisionError
         shardscope.app.explorer.workers line 56
         shardscope.engine.inspection line 91
system   Linux, 6.1.0, debian 12, x86_64
Python   3.11.2
with     msgspec 0.19.0, textual 8.2.8
"""
"""A page about an error of ours."""


def calls(*, fails: Fault | None = None) -> Calls:
    """Return calls that make reports of made-up checkpoints, always on the same machine, and write nothing."""

    def make(
        target: Target, request: Request, known: Descriptor | None, cancel: Event, progress: OnProgress
    ) -> Made:
        if fails is not None:
            raise fails
        names = Names(request.names)
        options = ReportOptions(
            request.names, request.digest, False, "made for this report", False, request.without
        )
        given = Given(
            ReportTool("shardscope", "1.0.0", None),
            request.command(earlier=False),
            options,
            request.desired,
            request.model,
            None if "versions" in request.without else ENVIRONMENT,
        )
        built = build(given, known, None, names)
        key = tuple(names.replaced.values())
        return Made(Prepared(built, key, known, None), preview(built, known, None, key))

    def write(path: str, target: Target, prepared: Prepared) -> None:
        if path == "/srv/there.zip":
            raise Fault("output.exists", file=path)

    return Calls(make, write, lambda error, doing: PAGE, lambda path, page: None)


def descriptor(*extra: str, blockers: tuple[Blocker, ...] = ()) -> Descriptor:
    """Return what is known of a save that tells of somebody: names, a digest, a rank that is missing."""
    entries = [
        entry("config.json", 654),
        entry("nightjar-model-00001-of-00002.safetensors", 5 * GIB),
        entry("runs/qtanaka/notes.txt", 812),
        *(entry(name, 10) for name in extra),
    ]
    mesh = Mesh("dense", (Axis("dp", 2, Basis.INFERRED),), ((0,),), ((1,),))
    found = inspection(entries, blockers=blockers, topology=Topology((mesh,))).descriptor
    hashed = tuple(
        replace(record, digest=Digest("ab" * 32, "all files together are within digest_bytes"))
        for record in found.source.entries
    )
    return replace(found, source=replace(found.source, digest_mode="auto", entries=hashed))


SAVE = descriptor(
    blockers=(
        a_blocker("layout.shard_missing", "nightjar-model-00002-of-00002.safetensors"),
        a_blocker("trust.opaque_pickle", "runs/qtanaka/notes.txt"),
    )
)


async def asked(app: Explorer, found: Descriptor, using: Calls) -> None:
    """Ask what goes into a report about `found`."""
    await app.push_screen(
        ReportScreen(Target("run42/nightjar"), found, crumbs=("shardscope", "run42", "nightjar"), calls=using)
    )


@pytest.mark.parametrize("size", [*SIZES, (200, 60)], ids="{0[0]}x{0[1]}".format)
async def test_screens(size: tuple[int, int], snap: Snap) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await asked(app, SAVE, calls())
        await settle(pilot)
        snap(app, "choices")
        await press(pilot, "p", "tab", "tab", "n", "n")
        snap(app, "preview")
        await press(pilot, "c")
        if size == (80, 24):
            snap(app, "changes")
            await press(pilot, "enter")
            snap(app, "line")
            await press(pilot, "escape", "w")
            app.screen.query_one("#path").value = "/srv/there.zip"  # type: ignore[attr-defined]
            await press(pilot, "enter")
            snap(app, "refused")
            app.screen.query_one("#path").value = "/srv/report.zip"  # type: ignore[attr-defined]
            await press(pilot, "enter")
            snap(app, "written")


async def test_what_is_left_out_is_said(snap: Snap) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        await asked(app, replace(SAVE, decoded=a_plane()), calls())
        await settle(pilot)
        await press(pilot, "down", "space", "down", "space", "down", "down", "space", "down", "down", "space")
        await press(pilot, "down", "space", "space")
        snap(app)


@pytest.mark.parametrize("theme", ["shardscope-light", "ansi-dark", "no colour"])
async def test_other_themes(theme: str, snap: Snap) -> None:
    app = explorer(FakeEngine(llama()))
    app.no_color = theme == "no colour"
    if not app.no_color:
        app.theme = theme
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        await asked(app, SAVE, calls())
        await settle(pilot)
        await press(pilot, "p", "c", "n", "n")
        snap(app)


async def test_names_of_a_checkpoint_do_nothing(snap: Snap) -> None:
    names = [raw for raw, _ in HOSTILE.values() if not {"\x00", "\ud800", "/"} & set(raw)]
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=SIZES[1]) as pilot:
        await settle(pilot)
        await asked(app, descriptor(*names), calls())
        await settle(pilot)
        await press(pilot, "p", "c", "n", "n")
        snap(app)


async def test_no_report(snap: Snap) -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        refused = Fault("report.identity", kind="the user", member="descriptor.json")
        await asked(app, SAVE, calls(fails=refused))
        await settle(pilot)
        await press(pilot, "p")
        snap(app)


async def test_an_error_of_ours(snap: Snap) -> None:
    app = explorer(FakeEngine(ZeroDivisionError()))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        await app.push_screen(ErrorPage(ZeroDivisionError(), "looking at the checkpoint", calls()))
        await settle(pilot)
        snap(app, "page")


async def test_no_name_acts_on_the_terminal() -> None:
    raws = {
        what: pair
        for what, pair in HOSTILE.items()
        if "/" not in pair[0] and what not in ("nul", "lone surrogate")
    }
    found = descriptor(*(raw for raw, _ in raws.values()))
    async with captured(explorer(FakeEngine(llama())), size=(120, 40)) as (pilot, driver):
        await settle(pilot)
        await asked(pilot.app, found, calls())  # type: ignore[arg-type]
        await settle(pilot)
        await press(pilot, "p", "c")
        for _ in raws:
            await pilot.press("n")
        await press(pilot, "enter")
        for what, (raw, seen) in raws.items():
            assert raw == seen or raw not in "".join(driver.written), what
        assert not driver.unsafe


# Without a screen


class Drawn:
    """Lines of which some differ."""

    def __init__(self, kinds: str) -> None:
        """`f` is the title of a file, `=` a line as it is, `!` one that differs, `-` one that is not written."""
        self.kinds = kinds
        self.row_count = len(kinds)
        self.titles = [row for row, kind in enumerate(kinds) if kind == "f"]
        self.changed = [row for row, kind in enumerate(kinds) if kind in "!-"]
        self.doubled = [row for row, kind in enumerate(kinds) if kind == "!"]

    def line(self, row: int) -> ReportLine:
        match self.kinds[row]:
            case "f":
                return ReportLine("file", None, f"file{row}")
            case "=":
                return ReportLine("line", f"same {row}", f"same {row}")
            case "-":
                return ReportLine("line", f"gone {row}", None, ("left out",))
        return ReportLine("line", f"was {row}", f"is {row}", ("name",), ((0, 3),), ((0, 2),))


@pytest.mark.parametrize("kinds", ["f", "f=", "f!", "f!!-=!f=!", "f=!=!=-!!f==f!!!"])
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("changes", [False, True])
def test_every_row_has_its_lines_and_every_line_its_row(kinds: str, stacked: bool, changes: bool) -> None:
    lines = Drawn(kinds)
    layout: Laid = laid(lines, stacked=stacked, changes=changes)
    wanted = [
        (row, part)
        for row, kind in enumerate(kinds)
        if not changes or kind != "="
        for part in range(2 if stacked and kind == "!" else 1)
    ]

    assert [layout.at(line) for line in range(layout.count)] == wanted
    for row in {row for row, _ in wanted}:
        assert layout.at(layout.line_of(row)) == (row, 0)


@pytest.mark.parametrize("width", [4, 9, 20, 60])
@pytest.mark.parametrize("line", ["short", "x" * 200, "日本語" * 30, "", "a\x1b[31mb"])
@pytest.mark.parametrize("spans", [(), ((1, 3),), ((0, 2), (3, 4)), ((50, 60),)])
def test_a_clipped_line_is_as_wide_as_it_should_be(
    width: int, line: str, spans: tuple[tuple[int, int], ...]
) -> None:
    from rich.cells import cell_len

    pieces = clipped(line, spans, width, "…")

    assert cell_len("".join(piece for piece, _ in pieces)) == width
    assert "\x1b" not in "".join(piece for piece, _ in pieces)


def test_a_block_far_to_the_right_is_in_sight() -> None:
    pieces = clipped("a" * 100 + "SECRET" + "b" * 100, ((100, 106),), 40, "…")

    assert ("SECRET", True) in pieces
    assert pieces[0] == ("…", False)


async def test_without_other_signs_it_is_ascii() -> None:
    from textual.app import App, ComposeResult

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield ReportRows(Drawn("f=!-=f!"), glyphs=ASCII)

    app = Alone()
    for size in ((80, 24), (120, 24)):
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            drawn = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            assert drawn.isascii()
            assert "was 2" in drawn
            assert "left out" in drawn
        app = Alone()
    assert UNICODE.empty != ASCII.empty


async def test_keys_go_through_changes_and_files() -> None:
    from textual.app import App, ComposeResult

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield ReportRows(Drawn("f" + "=" * 40 + "!" + "=" * 40 + "f" + "=" * 30 + "-!" + "=" * 40))

    app = Alone()
    async with app.run_test(size=(80, 24)) as pilot:
        rows = app.query_one(ReportRows)
        seen = []
        for key in (
            "n",
            "n",
            "n",
            "n",
            "p",
            "tab",
            "shift+tab",
            "shift+tab",
            "n",
            "down",
            "up",
            "c",
            "end",
            "c",
        ):
            await pilot.press(key)
            await pilot.pause()
            seen.append((key, rows.row))
            assert rows.scroll_offset.y <= rows.cursor < rows.scroll_offset.y + rows.page
    assert seen == [
        *(("n", 41), ("n", 113), ("n", 114), ("n", 114), ("p", 113), ("tab", 113), ("shift+tab", 82)),
        *(("shift+tab", 0), ("n", 41), ("down", 42), ("up", 41), ("c", 41), ("end", 114), ("c", 114)),
    ]


def test_a_preview_of_very_many_lines_costs_what_is_seen_of_it() -> None:
    import time

    def cost(count: int) -> float:
        rows = ReportRows(Drawn("f" + "=!" * count), glyphs=UNICODE)
        begin = time.thread_time()
        for line in range(count, count + 40):
            rows._laid.at(line)
            rows.lines.line(rows._laid.at(line)[0])
        return time.thread_time() - begin

    small = min(cost(100) for _ in range(5))
    assert min(cost(200_000) for _ in range(3)) < 20 * small + 0.005


async def test_the_form_asks_for_changes_both_ways() -> None:
    assert Wanted().desired is None
    app = explorer(FakeEngine(llama()))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        await asked(app, SAVE, calls())
        await settle(pilot)
        await press(pilot, "end", "left")
        assert isinstance(app.screen, ReportScreen)
        seen = [app.screen.wanted.desired]
        await press(pilot, "right", "l", "l")
        seen.append(app.screen.wanted.desired)
        assert seen == ["resume", "convert"]
        assert "--desired convert" in text(app)
        assert app.screen.query_one(ReportForm).cursor == 6

"""Findings of a scan in rows: what stands in them whatever their kind, their order, and which are listed."""

from typing import Any

import pytest
from textual.app import App, ComposeResult

from shardscope.engine.model.blocker import Blocker, Finding, Severity, Stage, blocker
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.scan_table import Filter, ScanRows, ScanTable, kind_of, subject, where


def item(code: str, severity: Severity, name: str, **params: Any) -> Blocker:
    return Blocker(
        code, severity, Stage.DESCRIBE, name, f"{name} has it.", "Look.", (), {"tensor": name, **params}
    )


NAN = item("scan.not_finite", Severity.ERROR, "b.1", element=1_027)
RUN = item("scan.zero_run", Severity.WARNING, "a.10", begin=4_096)
COPY = item("scan.duplicate", Severity.INFO, "a.2", other="a.1")
NEW = item("later.kind", Severity.WARNING, "c")
FILE = blocker(
    Finding(
        "scan.holes", {"file": "x.bin", "bytes": 9, "holes": 1, "begin": 64, "count": 1, "tensor": "a.1"}
    ),
    "x.bin",
)


@pytest.mark.parametrize(
    ("found", "kind", "about", "place"),
    [
        (NAN, "not_finite", "b.1", "element 1,027"),
        (RUN, "zero_run", "a.10", "byte 4,096"),
        (COPY, "duplicate", "a.2", "like a.1"),
        (NEW, "later.kind", "c", ""),
        (FILE, "holes", "x.bin", "byte 64"),
    ],
)
def test_a_finding_of_any_kind_has_a_row(found: Blocker, kind: str, about: str, place: str) -> None:
    assert (kind_of(found), subject(found), where(found)) == (kind, about, place)
    rows = ScanRows([found], ASCII)
    cells = [cell if isinstance(cell, str) else cell[0] for cell in (rows.cell(0, n) for n in range(4))]
    assert cells[1:] == [kind, about, place]
    assert cells[0][2:] in ("error", "warning", "note")


def test_places_are_in_the_order_of_their_numbers() -> None:
    rows = ScanRows([NEW, NAN, FILE, RUN], ASCII)
    assert sorted(range(4), key=lambda row: rows.key(row, 3)) == [2, 1, 3, 0]


def test_a_filter_takes_what_every_part_of_it_takes() -> None:
    chosen = Filter()
    assert not chosen.on
    assert chosen.takes(COPY)
    chosen.least = Severity.WARNING
    assert [chosen.takes(each) for each in (NAN, RUN, COPY)] == [True, True, False]
    chosen.search("HAS a.1")
    assert [chosen.takes(each) for each in (NAN, RUN)] == [False, True]
    chosen.search("")
    chosen.step(["scan.not_finite", "scan.zero_run"], -1)
    assert chosen.kind == "scan.zero_run"
    chosen.step(["scan.not_finite", "scan.zero_run"], 1)
    assert chosen.kind is None


class Stage_(App[None]):  # noqa: N801 - there is a Stage of the engine
    def compose(self) -> ComposeResult:
        yield ScanTable()


async def test_findings_that_come_in_find_their_places_and_the_cursor_keeps_its_own() -> None:
    app = Stage_()
    async with app.run_test(size=(80, 12)) as pilot:
        table = app.query_one(ScanTable)

        def listed() -> list[Blocker]:
            return [table.rows.findings[row] for row in table.order]

        table.add([COPY])
        table.add([RUN, COPY])
        assert listed() == [RUN, COPY, COPY]
        assert table.item is RUN  # whoever has not moved sees the worst
        table.move_to(2)
        table.add([NAN, NEW])
        assert listed() == [NAN, RUN, NEW, COPY, COPY]
        assert table.item is COPY
        assert table.cursor == 4
        assert table.kinds == [
            ("scan.not_finite", 1), ("scan.zero_run", 1), ("later.kind", 1), ("scan.duplicate", 2),
        ]  # fmt: skip

        table.sort_by(2, descending=False)
        assert [each.subject for each in listed()] == ["a.10", "a.2", "a.2", "b.1", "c"]
        table.add([FILE])
        assert listed()[-1] is FILE  # behind what a person has put in order
        table.filter.kind = "scan.holes"
        table.refilter()
        assert listed() == [FILE]

        table.filter.kind = None
        table.refilter()
        table.move_to_row(table.rows.findings.index(RUN))
        table.show_findings([FILE, RUN])
        assert table.item is RUN
        table.show_findings([])
        assert table.item is None
        await pilot.pause()

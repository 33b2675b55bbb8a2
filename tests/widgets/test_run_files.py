"""The files of a run: their state in words, their rate, and lines that follow the work until a person moves."""

import pytest
from rich.segment import Segment
from rich.style import Style
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.course import FileCourse
from shardscope.engine.model.plan import PlannedFile
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.plan_settings import Setting, SettingRows
from shardscope.widgets.run_files import RunFiles

MIB = 1 << 20
SIZE = 4_800 * MIB


def files(count: int) -> list[PlannedFile]:
    return [
        PlannedFile(f"model-{number:05}-of-{count:05}.safetensors", SIZE, ())
        for number in range(1, count + 1)
    ]


async def test_every_state_is_a_word_with_its_figures() -> None:
    planned = files(6)
    course = {
        planned[0].name: FileCourse(SIZE, SIZE, 2 * MIB, finished=True),
        planned[1].name: FileCourse(1_200 * MIB, SIZE, 2 * MIB),
        planned[2].name: FileCourse(SIZE, SIZE, 2 * MIB),
        planned[3].name: FileCourse(100 * MIB, SIZE, None),
    }
    rows = RunFiles(planned, course, glyphs=ASCII)
    app = Stage(rows)
    async with app.run_test(size=(120, 12)) as pilot:
        rows.look(0.0)
        course[planned[1].name] = FileCourse(2_400 * MIB, SIZE, 2 * MIB)
        rows.look(2.0)
        await pilot.pause()
        lines = screen_text(app).splitlines()
        assert rows.finished == 1
        for line, words in zip(
            lines,
            (
                ("+ done", "4.7 GiB", "##########"),
                ("> running", "2.3 GiB of 4.7 GiB", "#####.....", "600.0 MiB/s", "tile 2.0 MiB"),
                ("> hashing", "4.7 GiB of 4.7 GiB"),
                ("> checking", "100.0 MiB of 4.7 GiB"),
                ("| waiting", "4.7 GiB"),
                ("| waiting", "4.7 GiB"),
            ),
            strict=False,
        ):
            assert all(word in line for word in words), line
            assert line.isascii()


async def test_lines_follow_the_work_until_the_cursor_is_moved() -> None:
    planned = files(200)
    course: dict[str, FileCourse] = {}
    rows = RunFiles(planned, course)
    app = Stage(rows)
    async with app.run_test(size=(80, 10)) as pilot:
        for number in range(150):
            course[planned[number].name] = FileCourse(SIZE, SIZE, MIB, finished=True)
        course[planned[150].name] = FileCourse(MIB, SIZE, MIB)
        rows.look(0.0)
        await pilot.pause()
        assert "running model-00151-of-00200" in screen_text(app)
        assert "model-00151-of-00200.safetensors" in screen_text(app)  # whole on a small terminal

        await pilot.press("home")
        rows.look(1.0)
        await pilot.pause()
        assert "model-00001-of-00200" in screen_text(app)
        assert "running" not in screen_text(app)


async def test_a_look_draws_what_is_seen_and_not_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = files(20_000)
    course = {file.name: FileCourse(SIZE, SIZE, MIB, finished=True) for file in planned[:19_000]}
    rows = RunFiles(planned, course)
    app = Stage(rows)
    drawn: list[int] = []
    draw = rows.draw_row

    def counted(line: int, style: Style | None) -> list[Segment]:
        drawn.append(line)
        return draw(line, style)

    monkeypatch.setattr(rows, "draw_row", counted)
    async with app.run_test(size=(80, 24)) as pilot:
        rows.look(0.0)
        await pilot.pause()
        assert 0 < len(set(drawn)) <= 24
        assert rows.finished == 19_000


async def test_choices_are_turned_by_arrows_and_changed_by_enter_or_their_key() -> None:
    rows = SettingRows([Setting("a", "x", "first", "\x1b[2J[red]"), Setting("b", "z", "second", "two")])
    app = Stage(rows)
    async with app.run_test(size=(60, 5)) as pilot:
        await pilot.press("down", "right", "left", "space", "enter")
        assert "␛[2J[red]" in screen_text(app)
        turned = [(each.name, each.by) for each in app.said if isinstance(each, SettingRows.Turned)]
        picked = [each.name for each in app.said if isinstance(each, SettingRows.Picked)]
        assert turned == [("b", 1), ("b", -1), ("b", 1)]
        assert picked == ["b"]

        rows.action_pick("a")
        rows.action_pick("not there")
        await pilot.pause()
        assert [each.name for each in app.said if isinstance(each, SettingRows.Picked)] == ["b", "a"]
        rows.show([Setting("b", "z", "second", "two")])
        assert rows.cursor == 0

"""Colour, encodings and progress: what reaches the terminal, the pipe and the log."""

import io
import sys

import pytest

from shardscope.app.cli.output import encoded, speaks_unicode, wants_color
from shardscope.app.cli.progress import LOG_EVERY, Log, Rate
from shardscope.app.cli.words import clock
from shardscope.engine.model.progress import Progress
from tests.app.terminal import environment, run


class Terminal(io.StringIO):
    """A stream at which a person sits."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_GB.UTF-8")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.parametrize(
    ("choice", "variables", "stream", "expected"),
    [
        ("auto", {}, Terminal(), True),
        ("auto", {}, io.StringIO(), False),
        ("auto", {"NO_COLOR": "1"}, Terminal(), False),
        ("auto", {"NO_COLOR": ""}, Terminal(), True),
        ("auto", {"TERM": "dumb"}, Terminal(), False),
        ("always", {"NO_COLOR": "1"}, io.StringIO(), True),
        ("never", {}, Terminal(), False),
        ("auto", {}, None, False),
    ],
)
def test_colour_is_for_those_who_see_it(
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    variables: dict[str, str],
    stream: io.StringIO | None,
    expected: bool,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert wants_color(choice, stream) is expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, True),
        ({"LC_ALL": "C"}, False),
        ({"LC_ALL": "POSIX", "LANG": "en_GB.UTF-8"}, False),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
    ],
)
def test_the_locale_decides_on_glyphs(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert speaks_unicode(Terminal()) is expected


def test_our_glyphs_have_partners_of_one_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")

    assert encoded("a · b … → ─ é ␛", Terminal()) == b"a - b ~ > - \\xe9 \\u241b"


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_terminal_without_utf8_gets_ascii(variables: dict[str, str]) -> None:
    said = run("explain", "usage.invalid", env=environment(**variables))

    assert said.code == 0
    assert said.out.isascii()
    assert "error - found while: command - blocks: nothing" in said.out


def test_help_is_ascii_where_it_must_be() -> None:
    for command in ("explore", "inspect", "tensors", "explain", "schema", "completion"):
        assert run(command, "--help", env=environment(LC_ALL="C")).out.isascii()


@pytest.fixture
def seconds() -> list[float]:
    return [0.0]


def test_a_rate_needs_time_and_tells_what_is_left(seconds: list[float]) -> None:
    rate = Rate(lambda: seconds[0])

    assert rate.sentence(Progress("digests", 0, 4 << 30, "bytes")) == "0 B of 4.0 GiB"
    seconds[0] = 2.0
    assert rate.sentence(Progress("digests", 1 << 30, 4 << 30, "bytes")) == (
        "1.0 GiB of 4.0 GiB, 512.0 MiB/s, 0:06 left"
    )
    seconds[0] = 4.0
    assert rate.sentence(Progress("walk", 3_000, None, "files")) == "3,000 files"


def test_a_log_gets_a_line_now_and_then(seconds: list[float]) -> None:
    lines: list[str] = []
    log = Log(lines.append, lambda: seconds[0])

    for step in range(40):
        seconds[0] = step * LOG_EVERY / 8
        log.update(Progress("headers", step, 40, "files"))

    assert len(lines) == 4
    assert lines[0] == "shardscope: 0:05 headers: 8 of 40 files, 1 files/s, 0:20 left"


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0:00"), (59.9, "0:59"), (760, "12:40"), (3_723, "1:02:03")]
)
def test_a_clock_grows(count: float, expected: str) -> None:
    assert clock(count) == expected


def test_the_bar_waits_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from shardscope.app.cli import progress

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    bars = progress.Bars(color=False)
    bars.update(Progress("digests", 1, 10, "files"))
    assert screen.getvalue() == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    bars.update(Progress("digests", 2, 10, "[red]files[/]"))
    bars.close()

    assert "digests" in screen.getvalue()
    assert "[red]" in screen.getvalue()
    assert screen.getvalue().rstrip().endswith("\x1b[2K")

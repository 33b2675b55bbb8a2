"""How the explorer ends when nobody presses a key for it: the terminal goes away, or a signal comes."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.checkpoints import write_sharded
from tests.terminal.lone_tty import LoneTerminal

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(120)]
PATIENCE = 30

Start = Callable[..., LoneTerminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the explorer on a small checkpoint."""
    started: list[LoneTerminal] = []
    checkpoint = str(write_sharded(tmp_path / "ckpt"))

    def begin(*, controlling: bool, nohup: bool = False) -> LoneTerminal:
        started.append(LoneTerminal(checkpoint, controlling=controlling, nohup=nohup))
        return started[-1]

    yield begin
    for each in started:
        each.close()


@pytest.mark.parametrize(
    ("controlling", "nohup"),
    [(True, False), (True, True), (False, False)],
    ids=["told by SIGHUP", "nohup", "not the controlling one"],
)
@pytest.mark.parametrize("shown", [b"shardscope", b"whole?"], ids=["while it looks", "at rest"])
def test_it_ends_with_its_terminal(start: Start, shown: bytes, controlling: bool, nohup: bool) -> None:
    terminal = start(controlling=controlling, nohup=nohup)
    terminal.until(shown)
    terminal.go_away()
    assert terminal.process.wait(PATIENCE) == 130


def test_it_ends_when_the_terminal_was_gone_before_it_drew(start: Start) -> None:
    terminal = start(controlling=False)
    terminal.go_away()
    assert terminal.process.wait(PATIENCE) != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda each: each.name)
def test_a_signal_ends_it_and_gives_the_terminal_back(start: Start, number: signal.Signals) -> None:
    terminal = start(controlling=True)
    terminal.until(b"whole?")
    terminal.read_on()
    terminal.process.send_signal(number)
    assert terminal.process.wait(PATIENCE) == 130
    _, _, last = terminal.written.partition(b"whole?")
    assert b"\x1b[?1049l" in last  # the main screen again
    assert b"\x1b[?25h" in last  # with its cursor
    assert b"Traceback" not in terminal.written

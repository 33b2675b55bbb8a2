"""`shardscope serve`: who may speak to it, and what it says where it cannot start."""

import socket
import sys

import pytest

from shardscope.app.serving.guard import HEADERS, host_allowed, is_loopback, new_token, origin_allowed
from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.mark.parametrize(
    ("header", "host", "allowed"),
    [
        ("127.0.0.1:8000", "127.0.0.1", True),
        ("localhost:9000", "127.0.0.1", True),
        ("[::1]:8000", "::1", True),
        ("evil.example:8000", "127.0.0.1", False),
        ("localhost.evil.example", "127.0.0.1", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("[::1", "127.0.0.1", False),
        ("", "127.0.0.1", False),
        (None, "127.0.0.1", False),
        ("node7:8000", "node7", True),
        ("node8:8000", "node7", False),
        ("node8:8000", "0.0.0.0", True),
    ],
)
def test_it_answers_to_its_own_names_alone(header: str | None, host: str, allowed: bool) -> None:
    assert host_allowed(header, host) is allowed


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://127.0.0.1:8000", True),
        ("https://127.0.0.1:8000", True),
        ("http://127.0.0.1:9000", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
        (None, False),
    ],
)
def test_only_its_own_page_opens_a_session(origin: str | None, allowed: bool) -> None:
    assert origin_allowed(origin, "127.0.0.1:8000") is allowed


def test_the_word_in_the_address_is_long_and_new_each_time() -> None:
    assert len({new_token() for _ in range(8)}) == 8
    assert len(new_token()) >= 32


def test_nothing_is_loaded_from_elsewhere() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("node7", False),
    ],
)
def test_loopback_is_known_without_asking_anybody(host: str, inside: bool) -> None:
    assert is_loopback(host) is inside


def test_without_the_extra_it_says_how_to_get_it(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shardscope.app.serving.server", "textual_serve", "textual_serve.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve", None)  # an import of it fails

    said = command("serve", "x")

    assert said.code == ExitCode.UNSUPPORTED
    assert "pip install 'shardscope[serve]'" in said.err
    assert "Traceback" not in said.err


def test_a_port_that_is_taken_is_a_sentence(command: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = command("serve", "x", "--port", str(taken.getsockname()[1]))

    assert said.code == ExitCode.OUTPUT
    assert "cannot be had: " in said.err
    assert said.out == ""


def test_another_host_is_warned_about(command: Command) -> None:
    said = command(
        "serve", "x", "--host", "192.0.2.1", "--port", "0"
    )  # an address for documentation: nobody has it

    assert "192.0.2.1 is not this machine alone" in said.err
    assert said.code == ExitCode.OUTPUT

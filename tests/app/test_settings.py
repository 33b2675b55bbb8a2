"""Reading what a person set: whole or not at all, each complaint with its line, and nothing written without being asked."""

import os
import stat
from pathlib import Path

import pytest

from shardscope.app.explorer.actions import actions, names, owners, together
from shardscope.app.settings.checks import checked
from shardscope.app.settings.lines import key_lines
from shardscope.app.settings.places import config_path, recent_path
from shardscope.app.settings.reading import read_settings
from shardscope.app.settings.recent import KEPT, recent, remember


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\n\n# words\nb = 2\n", {("a",): 1, ("b",): 4}),
        ("[keys]\nx.y = 1\n'x.z' = 2\n", {("keys",): 1, ("keys", "x", "y"): 2, ("keys", "x.z"): 3}),
        ('a = """\none\ntwo"""\nb = [\n 1,\n 2]\nc = 3', {("a",): 1, ("b",): 4, ("c",): 7}),
        ("a = { b = 1 }\n[t]\n[t.u]\nv = 1", {("a", "b"): 1, ("t",): 2, ("t", "u"): 3, ("t", "u", "v"): 4}),
        ("[[list]]\na = 1\n[[list]]\na = 2", {("list",): 1, ("list", "a"): 2}),
        ("", {}),
        ("x = [\n" + "1,\n" * 300 + "]\ny = 2", {}),  # too long to be told
    ],
)
def test_lines_are_where_the_parser_says_that_statements_begin(
    text: str, lines: dict[tuple[str, ...], int]
) -> None:
    assert key_lines(text) == lines


def write(folder: Path, text: str | bytes) -> str:
    path = folder / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def complaints(path: str) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in checked(read_settings(path))]


def test_what_is_set_holds_and_the_rest_keeps_its_default(tmp_path: Path) -> None:
    read = read_settings(
        write(
            tmp_path, 'theme = "ansi-dark"\nmouse = false\nmemory = "2GiB"\n[keys]\n"explore.files" = "F"\n'
        )
    )

    assert read.blockers == ()
    assert (read.settings.theme, read.settings.mouse, read.settings.memory) == ("ansi-dark", False, 2 << 30)
    assert (read.settings.glyphs, read.settings.recent) == ("auto", False)
    assert read.settings.keys == (("explore.files", "F"),)
    assert read.lines["keys.explore.files"] == 5


def test_no_file_is_no_complaint(tmp_path: Path) -> None:
    read = read_settings(str(tmp_path / "config.toml"))
    assert (read.exists, read.blockers) == (False, ())


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("theme = ", "settings.syntax", "no TOML at line 1, column 9"),
        ("a = 1\n[keys\n", "settings.syntax", "no TOML at line 2, column 6"),
        ('x = """never ends', "settings.syntax", "no TOML at line 1, column 18"),
        (b"\xff\xfe", "settings.unreadable", "not UTF-8"),
        ("#" * (65 << 10), "settings.unreadable", "larger than 64 KiB"),
        ("a = " + "[" * 50_000, "settings.unreadable", "nested too deeply"),
        ("\n\ncolour = 1\n", "settings.unknown", "Line 3 of the settings: there is no setting colour."),
        ("mouse = 1\n", "settings.value", "Line 1 of the settings: mouse takes true or false."),
        ('glyphs = "latin"\n', "settings.value", 'takes "auto", "unicode" or "ascii"'),
        ("memory = -3\n", "settings.value", "memory takes a number of bytes"),
        ("memory = true\n", "settings.value", "memory takes a number of bytes"),
        ("keys = 3\n", "settings.value", "keys takes a table of actions"),
        ("[keys]\na = 3\n", "settings.value", "Line 2 of the settings: a key takes the name of a key"),
        ('theme = "pink"\n', "settings.value", "theme takes the name of a theme: shardscope-dark"),
        (
            '[keys]\n"explore.fly" = "F"\n',
            "settings.unknown_action",
            "Line 2 of the settings: no key does explore.fly.",
        ),
        (
            '[keys]\n"explore.files" = "ctrl+shift+x"\n',
            "settings.key_name",
            "ctrl+shift+x is no key that every terminal",
        ),
        (
            '[keys]\n"explore.files" = "d"\n',
            "settings.key_conflict",
            "d is the key of explore.files and of explore.decode.",
        ),
        (
            '[keys]\n"explore.files" = "q"\n',
            "settings.key_conflict",
            "q is the key of explore.files and of app.quit.",
        ),
        (
            '[keys]\n"open.path" = "?"\n',
            "settings.key_conflict",
            "question_mark is the key of open.path and of app.help.",
        ),
    ],
)
def test_each_complaint_is_a_sentence_with_its_place(
    tmp_path: Path, text: str | bytes, code: str, said: str
) -> None:
    found = complaints(write(tmp_path, text))

    assert [each for each, _ in found] == [code]
    assert said in found[0][1]
    assert read_settings(str(tmp_path / "config.toml")).settings.mouse is True


@pytest.mark.parametrize(
    "text",
    [
        '[keys]\n"explore.files" = "d"\n"explore.decode" = "f"\n',  # they change places
        '[keys]\n"choose.close" = "q"\n',  # a dialog has the keys for itself
        '[keys]\n"cache.search" = "o"\n',  # the other is of another screen
        '[keys]\n"rows.down" = "down,ctrl+n,J"\n',
    ],
)
def test_what_cannot_collide_is_no_conflict(tmp_path: Path, text: str) -> None:
    assert complaints(write(tmp_path, text)) == []


def test_a_device_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    assert complaints(str(tmp_path / "config.toml"))[0][0] == "settings.unreadable"


def test_a_hostile_name_is_harmless_in_its_complaint(tmp_path: Path) -> None:
    message = complaints(write(tmp_path, '"a\\u001b[2Jb" = 1\n'))[0][1]
    assert "\x1b" not in message
    assert "␛[2J" in message


def test_places_are_those_of_the_specification() -> None:
    assert config_path({"HOME": "/h"}) == "/h/.config/shardscope/config.toml"
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}) == "/c/shardscope/config.toml"
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}) == "/h/.config/shardscope/config.toml"
    assert recent_path({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == "/s/shardscope/recent.json"


def test_recent_paths_are_the_newest_first_and_nobody_elses_to_read(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "shardscope" / "recent.json")
    for number in range(KEPT + 3):
        remember(path, f"/runs/{number}")
    remember(path, "/runs/10")
    remember(path, os.fsdecode(b"/runs/\xff"))

    kept = recent(path)
    assert len(kept) == KEPT
    assert kept[:3] == (os.fsdecode(b"/runs/\xff"), "/runs/10", f"/runs/{KEPT + 2}")
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700
    assert os.listdir(Path(path).parent) == ["recent.json"]


@pytest.mark.parametrize("content", [b"{", b"3", b'[1, "relative", "/whole"]', b"[" * 10_000, b"\xff"])
def test_a_broken_memory_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "recent.json").write_bytes(content)
    assert recent(str(tmp_path / "recent.json")) in ((), ("/whole",))


def test_a_memory_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    remember(str(tmp_path / "file" / "recent.json"), "/runs")
    assert os.listdir(tmp_path) == ["file"]


def test_every_action_has_a_place_and_keys_of_its_own() -> None:
    known = actions()
    assert known["app.help"].keys == ("question_mark", "f1")
    assert names("?,ctrl+a") == ("question_mark", "ctrl+a")
    assert len({each.owner for each in known.values()}) > 10
    assert all(together(each, each) for each in owners())

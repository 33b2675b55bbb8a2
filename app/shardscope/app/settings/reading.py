"""Reading the file of the settings: bounded, whole or not at all, each complaint with its line."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from shardscope.app.settings.nouns import SETTINGS, Settings, SettingsRead
from shardscope.engine.model.blocker import Blocker, Fault, Finding, Param, blocker
from shardscope.engine.model.text import display_name

LARGEST: Final = 64 << 10
"""Bytes of a file that are read."""
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_settings(path: str) -> SettingsRead:
    """Read the file at `path`. Whatever is wrong with it is told and costs no more than its own setting; nothing is raised."""
    try:
        text = _text(path)
    except FileNotFoundError:
        return SettingsRead(path, exists=False)
    except OSError as error:
        return _broken(path, "settings.unreadable", reason=(error.strerror or type(error).__name__).lower())
    except Fault as fault:
        return _broken(path, fault.finding.code, **fault.finding.params)
    import tomllib  # where there is a file to read

    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return _broken(path, "settings.syntax", **_place(error, text))
    except RecursionError:
        return _broken(path, "settings.unreadable", reason="it is nested too deeply")
    from shardscope.app.settings.lines import key_lines

    return _taken(path, said, key_lines(text))


def _text(path: str) -> str:
    """Return the text of the file. Opens what a person wrote: links are followed, devices are not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Fault("settings.unreadable", reason="it is no regular file", file=path)
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise Fault("settings.unreadable", reason="it is larger than 64 KiB", file=path)
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Fault("settings.unreadable", reason="it is not UTF-8", file=path) from None


def _broken(path: str, code: str, **params: Param) -> SettingsRead:
    finding = Finding(code, {"file": path, **params})
    return SettingsRead(path, exists=True, blockers=(blocker(finding, display_name(path)),))


def _place(error: ValueError, text: str) -> dict[str, Param]:
    """Return what is wrong and where. Before Python 3.14 the place stands in the message alone."""
    message = str(error)
    found = _PLACE.search(message)
    lines = text.split("\n")
    line, column = (
        (len(lines), len(lines[-1]) + 1) if found is None or found[1] is None else map(int, found.groups())
    )
    problem = message if found is None else message[: found.start()]
    return {"problem": problem[:1].lower() + problem[1:], "line": line, "column": column}


def _taken(path: str, said: dict[str, Any], lines: dict[tuple[str, ...], int]) -> SettingsRead:
    known = {each.name: each for each in SETTINGS}
    values: dict[str, Any] = {}
    at: dict[str, int] = {}
    blockers: list[Blocker] = []

    def complain(code: str, **params: Param) -> None:
        blockers.append(blocker(Finding(code, params), display_name(path)))

    for name, value in said.items():
        line = line_of(lines, name)
        if name == "keys" and isinstance(value, dict):
            continue
        if name not in known:
            wanted = "a table of actions and keys" if name == "keys" else ""
            if wanted:
                complain("settings.value", line=line, name=name, wanted=wanted)
            else:
                complain("settings.unknown", line=line, name=name, near=near(name, (*known, "keys")))
            continue
        try:
            values[name] = known[name].read(value)
            at[name] = line
        except ValueError:
            complain("settings.value", line=line, name=name, wanted=known[name].takes)
    keys: list[tuple[str, str]] = []
    for action, key in _actions(said.get("keys")):
        line = line_of(lines, "keys", *action.split("."))
        if isinstance(key, str) and key:
            keys.append((action, key))
            at[f"keys.{action}"] = line
        else:
            complain(
                "settings.value", line=line, name="a key", wanted="the name of a key, or some with commas"
            )
    settings = replace(Settings(), **values, keys=tuple(keys))
    return SettingsRead(path, exists=True, settings=settings, lines=at, blockers=tuple(blockers))


def line_of(lines: Mapping[tuple[str, ...], int], *path: str) -> int:
    """Return where a key stands, quoted or dotted; where it has no line of its own, where its table begins."""
    quoted = (path[0], ".".join(path[1:])) if len(path) > 1 else path
    for wanted in (path, quoted, path[:1]):
        for known, line in lines.items():
            if known[: len(wanted)] == wanted:
                return line
    return 1


def _actions(table: Any) -> Iterator[tuple[str, Any]]:
    """Yield actions with their keys: `"explore.decode" = "d"` and `explore.decode = "d"` say the same."""
    if not isinstance(table, dict):
        return
    for name, value in table.items():
        if isinstance(value, dict):
            for rest, key in _actions(value):
                yield f"{name}.{rest}", key
        else:
            yield name, value


def near(word: str, known: tuple[str, ...]) -> str:
    """Return words that follow `correct the name`: what was probably meant."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f" (perhaps {close[0]})" if close else ""

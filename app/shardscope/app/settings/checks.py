"""What only the explorer itself can tell about settings: whether themes, actions and keys exist, and what collides.

It imports the whole explorer, so that the explorer calls it once its first frame stands.
"""

import re
from collections.abc import Iterator
from typing import Final

from shardscope.app.settings.nouns import SETTINGS, SettingsRead
from shardscope.app.settings.reading import near
from shardscope.engine.model.blocker import Blocker, Finding, Param, blocker
from shardscope.engine.model.text import display_name

KEY: Final = re.compile(
    r"[!-~]|ctrl\+[a-z]|f([1-9]|1[0-2])|shift\+tab|up|down|left|right|home|end|pageup|pagedown|insert|delete|tab|space|enter"
    r"|escape|backspace|[a-z_]+_(mark|sign|bracket|parenthesis|line|stop|solidus)|colon|semicolon|comma|slash|backslash|minus"
    r"|plus|asterisk|ampersand|apostrophe|tilde|underscore"
)
"""Keys that every terminal sends, by the names of Textual or as one sign."""


def checked(read: SettingsRead) -> tuple[Blocker, ...]:
    """Return everything that is wrong with what was read."""
    return (*read.blockers, *_theme(read), *_keys(read))


def _complaint(read: SettingsRead, code: str, setting: str, **params: Param) -> Blocker:
    finding = Finding(code, {"line": read.lines.get(setting, 1), **params})
    return blocker(finding, display_name(read.path))


def _theme(read: SettingsRead) -> Iterator[Blocker]:
    from shardscope.app.explorer.tty.theme import theme_names

    names = theme_names()
    if read.settings.theme not in (None, *names):
        takes = next(each.takes for each in SETTINGS if each.name == "theme")
        yield _complaint(read, "settings.value", "theme", name="theme", wanted=f"{takes}: {', '.join(names)}")


def _keys(read: SettingsRead) -> Iterator[Blocker]:
    if not read.settings.keys:
        return
    from shardscope.app.explorer.actions import actions, names, together

    known = actions()
    for action, given in read.settings.keys:
        setting = f"keys.{action}"
        if action not in known:
            close = near(action, tuple(known))
            yield _complaint(read, "settings.unknown_action", setting, name=action, near=close)
        for key in given.split(","):
            if not KEY.fullmatch(key.strip()):
                yield _complaint(read, "settings.key_name", setting, key=key.strip())
    moved = {action: keys for action, keys in read.settings.keys if action in known}
    for action, keys in moved.items():
        for key in names(keys):
            for other in known.values():
                if other.id == action or (other.id in moved and other.id < action):
                    continue  # each pair is told once
                theirs = names(moved[other.id]) if other.id in moved else other.keys
                before = key in known[action].keys and key in other.keys
                if key in theirs and not before and together(known[action].owner, other.owner):
                    setting = f"keys.{action}"
                    yield _complaint(
                        read, "settings.key_conflict", setting, key=key, name=action, other=other.id
                    )

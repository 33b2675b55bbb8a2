"""What is in force, and where each value comes from: the answer of `shardscope config show`."""

from collections.abc import Iterator, Mapping

from shardscope.app.settings.checks import checked
from shardscope.app.settings.nouns import SETTINGS, SettingsRead
from shardscope.engine.model.schemas import SETTINGS as SCHEMA
from shardscope.engine.model.settings import SettingInForce, SettingsDocument, Source
from shardscope.engine.model.text import display_name


def in_force(read: SettingsRead, environ: Mapping[str, str], *, keys: bool = False) -> SettingsDocument:
    """Return the settings as the explorer would take them up here; with `keys`, every action and its keys, too."""
    return SettingsDocument(
        SCHEMA,
        display_name(read.path),
        read.exists,
        (*_settings(read, environ), *_keys(read, everything=keys)),
        checked(read),
    )


def _settings(read: SettingsRead, environ: Mapping[str, str]) -> Iterator[SettingInForce]:
    from shardscope.app.explorer.tty.theme import choose_theme, theme_names

    for each in SETTINGS:
        value = getattr(read.settings, each.name)
        line = read.lines.get(each.name)
        source = Source.DEFAULT if line is None else Source.FILE
        if each.name == "theme":
            asked = value if value in theme_names() else None
            value = choose_theme(asked, environ)
            if value != asked and (asked is not None or environ.get("NO_COLOR")):
                source, line = Source.ENVIRONMENT, None
        elif each.name == "memory":
            value = size_words(value)
        yield SettingInForce(each.name, value, source, line)


def _keys(read: SettingsRead, *, everything: bool) -> Iterator[SettingInForce]:
    from shardscope.app.explorer.actions import actions

    known = actions()
    moved = {action: keys for action, keys in read.settings.keys if action in known}
    for action, keys in moved.items():
        yield SettingInForce(f"keys.{action}", keys, Source.FILE, read.lines.get(f"keys.{action}"))
    if everything:
        for action, each in known.items():
            if action not in moved:
                yield SettingInForce(f"keys.{action}", ",".join(each.keys), Source.DEFAULT, None)


def size_words(count: int) -> str:
    """Return bytes as the file takes them, in the largest unit that keeps the number whole."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count % factor == 0:
            return f"{count // factor}{unit}"
    return str(count)

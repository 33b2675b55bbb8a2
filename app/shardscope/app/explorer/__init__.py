"""The explorer: `shardscope [PATH]` on a terminal."""

import os
from typing import Literal

from shardscope.app.settings.nouns import SettingsRead
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import DecodeLimits, Limits


def run(
    path: str | None,
    *,
    limits: Limits | None = None,
    decode_limits: DecodeLimits | None = None,
    hf_cache: bool = False,
    mouse: bool | None = None,
    theme: str | None = None,
    glyphs: Literal["auto", "unicode", "ascii"] | None = None,
    served: bool = False,
) -> int:
    """Run the explorer on `path`, or ask for one, until the person leaves; return the exit code of the process.

    The caller makes sure that there is a terminal, or a server that speaks for a browser (`served`). `mouse=False` leaves the
    mouse to the terminal, so that it can select text. `theme` is the name of a theme. What is None is taken from the settings
    of the person, and where they say nothing from what the terminal can draw.

    Raises `Fault` `usage.invalid` for a theme that does not exist, and the error of our own that ended it, if one did.
    """
    from shardscope.app.explorer.app import Explorer
    from shardscope.app.explorer.engine import ENGINE
    from shardscope.app.explorer.tty.theme import DEFAULT, theme_names
    from shardscope.widgets.glyphs import choose_glyphs

    names = theme_names()
    if theme is not None and theme not in names:
        from shardscope.engine.model.blocker import Fault

        problem = f"There is no theme of that name; there are {', '.join(names)}"
        raise Fault("usage.invalid", problem=problem, help="shardscope explore --help")
    read = _settings()
    wanted = read.settings
    signs = glyphs or wanted.glyphs
    choose_glyphs("unicode" if served and signs == "auto" else signs)
    if theme is None and wanted.theme in names:
        theme = wanted.theme
    if theme is None and served and not os.environ.get("NO_COLOR"):
        theme = DEFAULT  # a browser has all colours, whatever the terminal of the server has
    explorer = Explorer(
        path,
        ENGINE,
        limits=limits,
        decode_limits=decode_limits,
        hf_cache=hf_cache,
        theme=theme,
        settings=read,
    )
    if served:
        from shardscope.app.explorer.tty.browser import Browser

        explorer.driver_class = Browser
    else:
        from shardscope.app.explorer.tty.terminal import Terminal

        explorer.driver_class = Terminal
    code = explorer.run(mouse=wanted.mouse if mouse is None else mouse)
    if explorer.failure is not None:
        raise explorer.failure
    if code is not None:
        return int(code)
    return explorer.return_code or int(ExitCode.OK)


def _settings() -> SettingsRead:
    """Return what the person set; where there is no file, nothing is imported to read one."""
    from shardscope.app.settings.places import config_path

    path = config_path(os.environ)
    if not os.path.lexists(path):
        return SettingsRead(path, exists=False)
    from shardscope.app.settings.reading import read_settings

    return read_settings(path)

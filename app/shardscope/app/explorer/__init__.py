"""The explorer: `shardscope [PATH]` on a terminal."""

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import DecodeLimits, Limits


def run(
    path: str | None,
    *,
    limits: Limits | None = None,
    decode_limits: DecodeLimits | None = None,
    hf_cache: bool = False,
    mouse: bool = True,
    theme: str | None = None,
) -> int:
    """Run the explorer on `path`, or ask for one, until the person leaves; return the exit code of the process.

    The caller makes sure that there is a terminal. `mouse=False` leaves the mouse to the terminal, so that it can select
    text. `theme` is the name of a theme; None chooses by what the terminal can draw.

    Raises `Fault` `usage.invalid` for a theme that does not exist.
    """
    from shardscope.app.explorer.app import Explorer, theme_names
    from shardscope.app.explorer.engine import ENGINE
    from shardscope.app.explorer.terminal import Terminal

    if theme is not None and theme not in (names := theme_names()):
        from shardscope.engine.model.blocker import Fault

        problem = f"There is no theme of that name; there are {', '.join(names)}"
        raise Fault("usage.invalid", problem=problem, help="shardscope explore --help")
    explorer = Explorer(
        path, ENGINE, limits=limits, decode_limits=decode_limits, hf_cache=hf_cache, theme=theme
    )
    explorer.driver_class = Terminal
    code = explorer.run(mouse=mouse)
    if code is not None:
        return int(code)
    return explorer.return_code or int(ExitCode.OK)

"""Which colours a terminal gets."""

import pytest

from shardscope.app.explorer.tty.theme import DEFAULT, PLAIN, choose_theme


@pytest.mark.parametrize(
    ("requested", "environ", "theme"),
    [
        (None, {"TERM": "xterm-256color"}, DEFAULT),
        (None, {"TERM": "xterm", "COLORTERM": "truecolor"}, DEFAULT),
        (None, {"TERM": "xterm"}, PLAIN),
        (None, {"TERM": "linux"}, PLAIN),
        (None, {}, PLAIN),
        ("nord", {"TERM": "xterm"}, "nord"),
        ("nord", {"TERM": "xterm-256color", "NO_COLOR": "1"}, PLAIN),
        ("ansi-light", {"TERM": "xterm-256color", "NO_COLOR": "1"}, "ansi-light"),
        (None, {"COLORTERM": "truecolor", "NO_COLOR": "1"}, PLAIN),
        (None, {"TERM": "xterm-256color", "NO_COLOR": ""}, DEFAULT),
    ],
)
def test_the_theme_follows_the_person_and_the_terminal(
    requested: str | None, environ: dict[str, str], theme: str
) -> None:
    assert choose_theme(requested, environ) == theme

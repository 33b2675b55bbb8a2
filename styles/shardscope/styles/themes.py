"""The themes of the explorer: one accent for "you are here", one colour each for ok, caution and stop.

They need 256 colours. On a terminal with 16, and wherever colours are unwanted, the explorer takes Textual's `ansi-dark` or
`ansi-light`, which use the terminal's own palette.
"""

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="shardscope-dark",
    dark=True,
    primary="#6cb6ff",
    secondary="#8b9bb0",
    accent="#6cb6ff",
    success="#7ec699",
    warning="#e5b567",
    error="#f0716b",
    foreground="#d7dde4",
    background="#0f1419",
    surface="#141a21",
    panel="#1b232c",
    variables={
        "block-cursor-background": "#27435f",
        "block-cursor-foreground": "#eef3f8",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1d2935",
        "block-cursor-blurred-foreground": "#d7dde4",
        "border": "#6cb6ff",
        "border-blurred": "#333d49",
    },
)

LIGHT: Final = Theme(
    name="shardscope-light",
    dark=False,
    primary="#1f5fbf",
    secondary="#5b6573",
    accent="#1f5fbf",
    success="#267045",
    warning="#8a5a00",
    error="#b3342b",
    foreground="#23272e",
    background="#fbfaf7",
    surface="#f3f1ec",
    panel="#e9e6df",
    variables={
        "block-cursor-background": "#cfe0f7",
        "block-cursor-foreground": "#14181d",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#e4e6e8",
        "block-cursor-blurred-foreground": "#23272e",
        "border": "#1f5fbf",
        "border-blurred": "#cdc9c0",
    },
)

CONTRAST: Final = Theme(
    name="shardscope-contrast",
    dark=True,
    primary="#7fd4ff",
    secondary="#ffffff",
    accent="#7fd4ff",
    success="#7dff9b",
    warning="#ffd84d",
    error="#ff9d94",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    variables={
        "text-muted": "#d0d0d0",
        "block-cursor-background": "#ffff00",
        "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": "#4d4d4d",
        "block-cursor-blurred-foreground": "#ffffff",
        "border": "#ffffff",
        "border-blurred": "#b0b0b0",
    },
)
"""White on black, 7 : 1 or more everywhere, and a cursor that cannot be missed."""

THEMES: Final = (DARK, LIGHT, CONTRAST)
"""Our own, the default first."""

"""Names that a hostile checkpoint can carry, each with what must be seen of it."""

from typing import Final

HOSTILE: Final[dict[str, tuple[str, str]]] = {
    "clear screen": ("a\x1b[2Jb", "a␛[2Jb"),
    "window title": ("a\x1b]0;owned\x07b", "a␛]0;owned␇b"),
    "clipboard write": ("a\x1b]52;c;cm0gLXJm\x07b", "a␛]52;c;cm0gLXJm␇b"),
    "hyperlink": ("a\x1b]8;;http://x.invalid\x1b\\b", "a␛]8;;http://x.invalid␛\\b"),
    "c1 csi": ("a\x9b2Jb", "a\\x9b2Jb"),
    "nul": ("a\x00b", "a␀b"),
    "delete": ("a\x7fb", "a␡b"),
    "newline": ("a\nb", "a⏎b"),
    "carriage return": ("a\rb", "a␍b"),
    "tab": ("a\tb", "a→b"),
    "bidi override": ("a\u202eb", "a⟨U+202E⟩b"),
    "zero width": ("a\u200bb", "a⟨U+200B⟩b"),
    "joiner": ("a\u200db", "a⟨U+200D⟩b"),
    "line separator": ("a\u2028b", "a⟨U+2028⟩b"),
    "byte-order mark": ("a\ufeffb", "a⟨U+FEFF⟩b"),
    "tag": ("a\U000e0041b", "a⟨U+E0041⟩b"),
    "undecodable byte": ("a\udcffb", "a\\xffb"),
    "lone surrogate": ("a\ud800b", "a⟨U+D800⟩b"),
    "markup style": ("[red]a[/red]", "[red]a[/red]"),
    "markup closing": ("[/nope]", "[/nope]"),
    "markup action": ("[@click=app.bell]x[/]", "[@click=app.bell]x[/]"),
    "markup unterminated": ("a[", "a["),
    "emoji code": (":smile:", ":smile:"),
}
"""By what it is: the raw text and what a person sees of it."""

"""A terminal that has nothing but ASCII: whatever else a widget drew becomes ASCII of the same width.

Our own widgets take `glyphs.ASCII`; borders, tabs, scroll bars and cursors are Textual's, and names are whoever's. So the
finished lines pass here, and no byte beyond ASCII reaches such a terminal.
"""

from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SIGNS: Final = {
    **dict.fromkeys("─━╌╍┄┅┈┉═╸╺╴╶╼╾▁▔⎯‐‑‒–—−⎺⎽", "-"),
    **dict.fromkeys("│┃╎╏┆┇┊┋║▏▎▍▌▐▕╵╷╹╻╽╿⎸⎹", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛┣┫┳┻╋╒╓╕╖╘╙╛╜╞╟╡╢╤╥╧╨╪╫", "+"),
    **dict.fromkeys("█▇▆▅▄▃▂▀▓▉▊▋■", "#"),
    **dict.fromkeys("░▒", "."),
    **dict.fromkeys("·•●○◦∙", "*"),
    **dict.fromkeys("▲△↑⇧", "^"),
    **dict.fromkeys("▼▽↓⇩▾▿", "v"),
    **dict.fromkeys("▶▸▹►→⇒⟩›»⭘", ">"),
    **dict.fromkeys("◀◂◃◄←⇐⟨‹«", "<"),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    "…": "~",
    "✓": "+",
    "✗": "x",
    "✘": "x",
    "×": "x",
    "\u00a0": " ",
    "⏎": "$",
}
_TABLE: Final = str.maketrans(_SIGNS)


def in_ascii(text: str) -> str:
    """Return `text` in ASCII, as many cells wide: what has no likeness is a question mark for each of its cells."""
    if text.isascii():
        return text
    likeness = text.translate(_TABLE)
    if likeness.isascii():
        return likeness
    return "".join(each if each.isascii() else "?" * cell_len(each) for each in likeness)


class AsciiFilter(LineFilter):
    """Turns finished lines into ASCII, for `App.get_line_filters`."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Return `segments` in ASCII."""
        if all(segment.text.isascii() for segment in segments if not segment.control):
            return segments
        return [
            segment if segment.control else Segment(in_ascii(segment.text), segment.style)
            for segment in segments
        ]

"""What a terminal is told of a frame: the cells that differ from what stands there already, and no more.

Textual writes whole lines: another panel in front costs forty kilobytes and more at 120 x 40, nearly all of it blank or the
same as before, each piece with all of its colours. Over a slow link that is the difference between now and soon. So the
cells that stand on the terminal are remembered, and an update is told as the runs of cells that changed, with the colours
that changed between them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

GAP: Final = 5
"""Cells that did not change and are written nevertheless: going over them would cost as many bytes."""
RESET: Final = "\x1b[0m"
_NULL: Final = Style.null()
_ATTRIBUTES: Final = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("blink2", "6"),
    ("reverse", "7"),
    ("conceal", "8"),
    ("strike", "9"),
    ("underline2", "21"),
    ("overline", "53"),
)


class Cell(NamedTuple):
    """One cell: what is in it, and how it is drawn."""

    text: str
    """Empty for the second cell of a wide character."""
    style: Style


class Look(NamedTuple):
    """A style as a terminal is told it."""

    attributes: tuple[str, ...]
    ink: tuple[str, ...]
    ground: tuple[str, ...]


PLAIN: Final = Look((), ("39",), ("49",))
"""How a terminal draws after a reset."""


class Frames:
    """The cells of one terminal."""

    def __init__(self) -> None:
        self._size = Size(0, 0)
        self._lines: list[list[Cell | None]] = []
        self._looks: dict[tuple[Style, ColorSystem | None], Look] = {}

    def forget(self) -> None:
        """Remember nothing: the next update is written whole."""
        self._size = Size(0, 0)

    def reduced(self, update: CompositorUpdate, size: Size) -> CompositorUpdate:
        """Return what has to be written of `update`, on a terminal of `size`. It is settled only when it is written."""
        return Changes(self, update, size) if isinstance(update, LayoutUpdate | ChopsUpdate) else update

    def written(self, update: CompositorUpdate, size: Size, console: Console) -> str:
        """Return the bytes that turn what stands there into what `update` says, and remember that."""
        if size != self._size:
            self._size = size
            self._lines = [[None] * size.width for _ in range(size.height)]
        system = console._color_system  # noqa: SLF001 - what the strips of Textual render with
        pen = _Pen(self._looks, system)
        for y, x, strip in _pieces(update):
            if 0 <= y < size.height:
                self._line(pen, y, x, cells(strip))
        return pen.finished()

    def _line(self, pen: "_Pen", y: int, x: int, new: list[Cell]) -> None:
        line = self._lines[y]
        new = new[: max(0, len(line) - x)]
        old = line[x : x + len(new)]
        if old == new:
            return
        line[x : x + len(new)] = new
        for begin, end in changed(old, new):
            pen.go(y, x + begin)
            for cell in new[begin:end]:
                pen.write(cell)


class Changes(CompositorUpdate):
    """An update that writes what differs."""

    def __init__(self, frames: Frames, update: CompositorUpdate, size: Size) -> None:
        self._frames = frames
        self._update = update
        self._size = size

    def render_segments(self, console: Console) -> str:
        """Return the bytes; called when they are about to be written."""
        return self._frames.written(self._update, self._size, console)


def cells(strip: Strip) -> list[Cell]:
    """Return the cells of a strip; what has no width stands with what it follows."""
    found: list[Cell] = []
    for text, style, control in strip:
        if control:
            continue
        look = style or _NULL
        if text.isascii() or cell_len(text) == len(text):
            found += [Cell(char, look) for char in text]
            continue
        for char in text:
            width = cell_len(char)
            if width == 0 and found:
                found[-1] = Cell(found[-1].text + char, found[-1].style)
            elif width:
                found.append(Cell(char, look))
                found += [Cell("", look)] * (width - 1)
    return found


def changed(old: list[Cell | None], new: list[Cell]) -> Iterator[tuple[int, int]]:
    """Yield the runs of `new` that have to be written, as begin and end.

    Terminals do not agree on how wide every character is. Where one of another width than one is about, the whole is written,
    as Textual would.
    """
    if any(cell is not None and len(cell.text) != 1 for cell in (*old, *new)):
        yield 0, len(new)
        return
    begin = end = -1
    for at, (before, after) in enumerate(zip(old, new, strict=True)):
        if before == after:
            continue
        if begin >= 0 and at - end > GAP:
            yield begin, end
            begin = at
        elif begin < 0:
            begin = at
        end = at + 1
    if begin >= 0:
        yield begin, end


class _Pen:
    """Writes cells with the fewest words between them."""

    def __init__(
        self, looks: dict[tuple[Style, ColorSystem | None], Look], system: ColorSystem | None
    ) -> None:
        self._looks = looks
        self._system = system
        self._said: list[str] = []
        self._look = PLAIN
        self._style = _NULL

    def go(self, y: int, x: int) -> None:
        """Go to a cell."""
        self._said.append(f"\x1b[{y + 1};{x + 1}H")

    def write(self, cell: Cell) -> None:
        """Write a cell where the pen is."""
        if cell.style is not self._style:
            self._take(cell.style)
        self._said.append(cell.text)

    def _take(self, style: Style) -> None:
        self._style = style
        look = self._looks.get((style, self._system))
        if look is None:
            look = self._looks[style, self._system] = look_of(style, self._system)
        before, self._look = self._look, look
        if look == before:
            return
        codes: list[str] = []
        if look.attributes != before.attributes:
            if before.attributes:  # what was on can only be taken back together with all else
                codes.append("0")
                before = PLAIN
            codes += look.attributes
        if look.ink != before.ink:
            codes += look.ink
        if look.ground != before.ground:
            codes += look.ground
        self._said.append(f"\x1b[{';'.join(codes)}m")

    def finished(self) -> str:
        """Return everything, the terminal left as it was found."""
        if self._look != PLAIN:
            self._said.append(RESET)
        return "".join(self._said)


def look_of(style: Style, system: ColorSystem | None) -> Look:
    """Return how a terminal with the colours of `system` is told a style. Links and actions are told to no terminal."""
    if system is None:
        return PLAIN
    attributes = tuple(code for name, code in _ATTRIBUTES if getattr(style, name))
    ink = ("39",) if style.color is None else style.color.downgrade(system).get_ansi_codes()
    ground = (
        ("49",) if style.bgcolor is None else style.bgcolor.downgrade(system).get_ansi_codes(foreground=False)
    )
    return Look(attributes, ink, ground)


def _pieces(update: CompositorUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield what an update draws: line, column, strip. The geometry is that of Textual's own rendering."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            segments: list[Segment] = [segment for strip in line for segment in strip]
            yield y, update.region.x, Strip(segments)
    elif isinstance(update, ChopsUpdate):
        for y, x1, x2 in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x > x2 or end <= x1:
                    continue
                whole = x2 > x >= x1 and end <= x2
                yield y, x, strip if whole else strip.crop(0, min(end, x2) - x)

"""A terminal as small as a test needs: what stands on it after some bytes."""

import re

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[(?P<args>[0-9;?]*)(?P<final>[A-Za-z])|(?P<line>\n)|(?P<char>[^\x1b])", re.DOTALL)


class Tty:
    """Cells with their looks. It knows how to go, how to write, and how to colour."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[(" ", "")] * width for _ in range(height)]
        self._x = self._y = 0
        self._look: dict[str, str] = {}

    def feed(self, written: str) -> None:
        """Take what an application wrote."""
        for token in _TOKEN.finditer(written):
            if token["line"]:
                self._y, self._x = self._y + 1, 0
            elif token["char"]:
                self._put(token["char"])
            elif token["final"] == "H":
                row, _, column = token["args"].partition(";")
                self._y, self._x = int(row or 1) - 1, int(column or 1) - 1
            elif token["final"] == "m":
                self._colour((token["args"] or "0").split(";"))

    def _put(self, char: str) -> None:
        width = cell_len(char)
        if width == 0:
            before, look = self.cells[self._y][self._x - 1]
            self.cells[self._y][self._x - 1] = (before + char, look)
            return
        look = ",".join(f"{kind}={code}" for kind, code in sorted(self._look.items()))
        for at, text in enumerate([char, *[""] * (width - 1)]):
            self.cells[self._y][self._x + at] = (text, look)
        self._x += width

    def _colour(self, codes: list[str]) -> None:
        codes = list(codes)
        while codes:
            code = codes.pop(0)
            number = int(code or 0)
            kind = "ink" if number < 40 or 90 <= number < 98 else "ground"
            if number == 0:
                self._look.clear()
            elif number in (39, 49):
                self._look.pop(kind, None)
            elif number in (38, 48):
                count = {"5": 2, "2": 4}[codes[0]]
                self._look[kind] = ":".join(codes[:count])
                del codes[:count]
            elif 30 <= number < 38 or 40 <= number < 48 or 90 <= number < 108:
                self._look[kind] = code
            else:
                self._look[f"attribute {number}"] = "on"

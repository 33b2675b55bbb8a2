"""Maps as text: what the map commands share when they print for a person."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from shardscope.app.cli.paragraphs import wrapped
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.text import counted, display_name, json_escape

NAME = 120
"""Characters of a tensor's name that are shown."""


def titled(name: str, shape: Sequence[int], dtype: str | None = None) -> str:
    """Return the heading of a tensor: its name, shape and dtype."""
    kind = "" if dtype is None else f" {display_name(dtype, 24)}"
    return f"{display_name(name, NAME)}  {extents(shape)}{kind}"


def extents(shape: Sequence[int]) -> str:
    """Return a shape: `[4,096, 1,024]`."""
    return f"[{', '.join(f'{extent:,}' for extent in shape)}]"


def table(rows: Sequence[Sequence[str]], indent: int = 0, *, right: Sequence[int] = ()) -> Iterator[str]:
    """Yield rows in aligned columns; those in `right` are aligned to the right, the last one is not padded."""
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            f"{cell:>{width}}" if column in right else f"{cell:<{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield (" " * indent + "  ".join(cells)).rstrip()


def blocked(blockers: Iterable[Blocker], indent: int = 2) -> Iterator[str]:
    """Yield what was found wrong, with what to do about it."""
    for blocker in blockers:
        yield f"{'':{indent}}{blocker.severity.value.upper()} {blocker.code}"
        yield from wrapped(blocker.message, indent + 2, first="")
        yield from wrapped(blocker.remedy, indent + 4, first=f"{'':{indent}}  →")


def more(count: int, noun: str, indent: int = 2) -> str:
    """Return the line that stands for what was left out."""
    return f"{'':{indent}}... and {counted(count, noun)} more (-v shows all)"


def by_tensor(schema: str, tensors: Iterable[tuple[str, object]], before: str = "") -> Iterator[bytes]:
    """Yield a document whose tensors stand one a line: a thousand of them stay readable, and take no memory here.

    `before` is JSON of further members.
    """
    yield f'{{"schema":"{schema}",{before}"tensors":{{'.encode()
    encode = msgspec.json.Encoder().encode
    first = True
    for name, tensor in tensors:
        line = encode(name) + b":" + encode(tensor)
        yield (b"\n" if first else b",\n") + json_escape(line.decode()).encode()
        first = False
    yield b"}}\n" if first else b"\n}}\n"

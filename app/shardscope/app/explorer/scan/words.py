"""What the Scan screen says above its table: what would be read, how far it is, what came of it. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.progress import Progress
from shardscope.engine.model.scan import ScanDocument
from shardscope.widgets.figures import plural, size
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.scan_table import Filter

if TYPE_CHECKING:
    from shardscope.engine.peeking.scanning import Reading

SHOWN: Final = 2
"""Errors of inspection that are told before anything is read."""
Lines = tuple[tuple[Part, ...], ...]


def asking(reading: "Reading", component: str, *, key: str, decode: str) -> Lines:
    """Return what would be read, and what starts it. `decode` is the key for that, empty where there is nothing to decode."""
    count = len(reading.tensors) - reading.unreadable
    what = "of all components" if component == "all" else f"of the {component}"
    lines: list[tuple[Part, ...]] = [
        (
            "This reads ",
            (size(reading.bytes), Tone.STRONG),
            f": every number {what} once, in {plural(count, 'tensor')}. What may be copies is read once more.",
        ),
        (("Nothing is written, nothing is run; esc stops at any time.", Tone.MUTED),),
    ]
    if not reading.tensors:
        lines = [(("No tensor of it is listed.", Tone.CAUTION),)]
    lines += [
        ((item.message, Tone.STOP), (f"  {item.code}", Tone.MUTED)) for item in reading.in_the_way[:SHOWN]
    ]
    if len(reading.in_the_way) > SHOWN:
        lines.append(((f"and {plural(len(reading.in_the_way) - SHOWN, 'more error')}", Tone.MUTED),))
    if reading.unreadable:
        words = f"The numbers of {plural(reading.unreadable, 'tensor')} cannot be read, and will be listed."
        lines.append(((words, Tone.CAUTION),))
    if reading.opaque_files:
        how = f" {decode} asks to read them as data." if decode else ""
        lines.append(((f"{plural(reading.opaque_files, 'file')} cannot be looked into.{how}", Tone.CAUTION),))
    lines.append(((key, Tone.HERE), " starts" if reading.tensors else " lists what stands in the way"))
    return tuple(lines)


def reading(found: int) -> Lines:
    """Return what is said while it goes on."""
    return ((("Reading", Tone.STRONG), f": {plural(found, 'finding')} so far. ", ("esc stops", Tone.MUTED)),)


def partial(found: int, progress: Progress | None, why: Blocker | None) -> Lines:
    """Return what is said of a scan that did not come to its end."""
    far = "before anything was read"
    if progress is not None and progress.stage == "scan":
        far = f"at {size(progress.done)} of {size(progress.total)}"
    elif progress is not None and progress.stage == "compare":
        far = "while copies were compared"
    head: tuple[Part, ...] = (
        ("Partial", Tone.CAUTION),
        f": stopped {far}, {plural(found, 'finding')} until then.",
    )
    lines = [head, (("What was not read was not found sound.", Tone.MUTED),)]
    if why is not None:
        lines.insert(1, ((why.message, Tone.STOP), (f"  {why.code}", Tone.MUTED)))
    return tuple(lines)


def done(document: ScanDocument, counts: Sequence[tuple[str, int]]) -> Lines:
    """Return what came of it."""
    read = f"{plural(document.tensors, 'tensor')}, {size(document.bytes)}"
    total = sum(count for _, count in counts)
    head: tuple[Part, ...] = (("Nothing stands out", Tone.OK), f" in what was read: {read}.")
    if total:
        head = ((plural(total, "finding"), Tone.STRONG), f" in {read}")
    lines = [head]
    less = []
    if document.unread:
        less.append(f"{plural(document.unread, 'tensor')} could not be read")
    if document.opaque_files:
        less.append(f"{plural(document.opaque_files, 'file')} could not be looked into")
    if document.unexamined_files:
        less.append(f"holes of {plural(document.unexamined_files, 'file')} are not told by the file system")
    if less:
        lines.append(((f"Not looked at: {'; '.join(less)}.", Tone.CAUTION),))
    return tuple(lines)


def kinds(counts: Sequence[tuple[str, int]], chosen: Filter, listed: int) -> tuple[Part, ...]:
    """Return which kinds there are and how many of each, the one that is listed alone in brackets."""
    parts: list[Part] = []
    for code, count in counts:
        here = code == chosen.kind
        word = f"{code.removeprefix('scan.')} {count:,}"
        parts += [(f"[{word}]", Tone.HERE) if here else (word, Tone.MUTED), "  "]
    if chosen.on:
        total = sum(count for _, count in counts)
        parts.append((f"listed {listed:,} of {total:,}", Tone.CAUTION))
    return tuple(parts)

"""How many bytes there are and would be needed, each with its basis, beside what this machine has."""

from collections.abc import Iterable, Iterator
from typing import Final

from shardscope.engine.model.resources import Estimate, Resources
from shardscope.widgets.figures import HostFigures, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading, labelled
from shardscope.widgets.safe import Part, Tone

TIGHT: Final = 0.9
"""A need beyond this share of what there is, is said to be tight."""
BAR: Final = 20
"""Cells of a bar."""
_ROWS: Final = (
    ("source_bytes", "source", "what the files hold"),
    ("logical_bytes", "logical", "what the full tensors hold"),
    ("output_bytes", "output", "weights as canonical safetensors"),
    ("temporary_bytes", "temporary", "what staging needs beside the output"),
    ("peak_ram_bytes", "peak memory", "while converting"),
)


def fits(need: int | None, room: int | None) -> tuple[str, Tone]:
    """Return whether a need fits, in a word. What is not known is never said to fit."""
    if need is None or room is None:
        return "unknown", Tone.CAUTION
    if need > room:
        return "does not fit", Tone.STOP
    return ("tight", Tone.CAUTION) if need > TIGHT * room else ("fits", Tone.OK)


def bar(need: int, room: int, glyphs: Glyphs, cells: int = BAR) -> str:
    """Return a bar of how much of `room` is needed. Anything at all fills a cell."""
    full = cells if room <= 0 else min(cells, -(-need * cells // room))
    return glyphs.full * full + glyphs.empty * (cells - full)


class ResourcesPanel(Paragraphs):
    """The five estimates, and whether this machine has the room.

    `ResourcesPanel(resources=None, host=None, *, glyphs=None, id=None, classes=None)`, then `show(resources, host)`.
    """

    BINDING_GROUP_TITLE = "Resources"

    def __init__(
        self,
        resources: Resources | None = None,
        host: HostFigures | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`resources` is None while nothing was examined."""
        super().__init__(empty="Not examined yet", glyphs=glyphs, id=id, classes=classes)
        self._resources = resources
        self._host = host

    def show(self, resources: Resources, host: HostFigures | None = None) -> None:
        """Show other figures."""
        self._resources, self._host = resources, host
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return the estimates, then what this machine has."""
        return () if self._resources is None else self._said(self._resources, self._host)

    def _said(self, found: Resources, host: HostFigures | None) -> Iterator[Paragraph]:
        yield Paragraph((("Of the checkpoint", Tone.STRONG),))
        for field, label, meaning in _ROWS:
            yield _estimate(getattr(found, field), label, meaning)
        yield from heading("Against this machine", "before conversion; nothing was reserved")
        if host is None:
            yield Paragraph((("The figures of this machine are not known.", Tone.CAUTION),))
            return
        writes = [found.output_bytes.bytes, found.temporary_bytes.bytes]
        need = None if None in writes else sum(each or 0 for each in writes)
        yield from self._against("disk", need, host.disk_free, "free")
        peak = found.peak_ram_bytes.bytes
        yield from self._against("memory", peak, host.ram_available, f"free of {size(host.ram_total)}")
        if host.cgroup_limit is None:
            yield labelled("cgroup", ("no limit on the memory of this process", Tone.MUTED))
            return
        left = max(0, host.cgroup_limit - (host.cgroup_used or 0))
        words = f"left of a limit of {size(host.cgroup_limit)}"
        yield from self._against("cgroup", peak, left, words)

    def _against(self, label: str, need: int | None, room: int | None, words: str) -> Iterator[Paragraph]:
        word, tone = fits(need, room)
        parts: list[Part] = []
        if need is not None and room is not None:
            parts += [(bar(need, room, self.glyphs), tone), "  "]
        parts.append(f"{size(need)} needed, {size(room)} {words}")
        yield labelled(label, *parts, side=(word, tone))


def _estimate(estimate: Estimate, label: str, meaning: str) -> Paragraph:
    if estimate.bytes is None:
        figure: Part = (f"{'unknown':>12}", Tone.CAUTION)
    else:
        figure = f"{size(estimate.bytes):>12}"
    return labelled(
        label,
        figure,
        (f"  {estimate.basis.value:<9}  ", Tone.MUTED),
        (estimate.note or meaning, Tone.MUTED),
    )

"""What codes mean: all of them by area, or one in full, in the words of the table alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from shardscope.engine.model.blocker import Code
from shardscope.engine.model.templates import readable
from shardscope.widgets.blockers_panel import severity_mark
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading, labelled
from shardscope.widgets.safe import Tone

_MARK: Final = 11


class CodesPanel(Paragraphs):
    """Some codes.

    `CodesPanel(codes, *, glyphs=None, id=None, classes=None)`. One code is told in full, several as a list of which each can
    be chosen: `chosen` is its name.
    """

    BINDING_GROUP_TITLE = "Codes"

    def __init__(
        self,
        codes: Sequence[Code],
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(glyphs=glyphs, id=id, classes=classes)
        self._codes = codes

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return the codes."""
        return self._listed() if len(self._codes) != 1 else self._whole(self._codes[0])

    def _listed(self) -> Iterator[Paragraph]:
        yield Paragraph(
            (("What can stand in the way. Enter explains; a code never changes its meaning.", Tone.MUTED),)
        )
        area = ""
        for row in sorted(self._codes, key=lambda row: (row.code.partition(".")[0], row.code)):
            if (begins := row.code.partition(".")[0]) != area:
                area = begins
                yield from heading(area)
            mark, tone = severity_mark(row.severity, self.glyphs)
            yield Paragraph(((f"{mark:<{_MARK}}", tone), row.code), key=row.code)

    def _whole(self, row: Code) -> Iterator[Paragraph]:
        mark, tone = severity_mark(row.severity, self.glyphs)
        yield Paragraph(((row.code, Tone.HERE), ("  ", Tone.PLAIN), (mark, tone)))
        yield Paragraph()
        yield Paragraph((row.meaning,))
        yield Paragraph()
        yield labelled("it says", readable(row.message))
        yield labelled("what to do", readable(row.remedy))
        yield Paragraph()
        yield labelled("found while", str(row.stage))
        yield labelled("blocks", ", ".join(row.blocks) or "nothing")
        if row.exit is not None:
            yield labelled("exit code", f"{int(row.exit)}, {row.exit.name.lower()}")
        yield Paragraph()
        yield labelled("command", (f"shardscope explain {row.code}", Tone.STRONG))

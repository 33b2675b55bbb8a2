"""What the checkpoint is, how sure that is, and why: each claim with where it comes from."""

from collections.abc import Iterable, Iterator
from typing import Final

from shardscope.engine.model.evidence import Basis, Classification, Confidence, Evidence, Status
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.safe import Tone

_STATUS_TONES: Final = {
    Status.CONDITIONAL: Tone.STRONG,
    Status.AMBIGUOUS: Tone.STOP,
    Status.UNKNOWN: Tone.CAUTION,
    Status.REFUSED: Tone.STOP,
}
_BASES: Final = (Basis.OBSERVED, Basis.DECLARED, Basis.DERIVED, Basis.INFERRED, Basis.UNKNOWN)
"""The strongest first."""
_COLUMN: Final = 10


def title(classification: Classification) -> str:
    """Return what a person calls the format."""
    return FORMAT_TITLES.get(classification.format, classification.format)


def verdict(classification: Classification) -> tuple[str, Tone]:
    """Return the status, and the confidence where there is any."""
    status, confidence = classification.status, classification.confidence
    words = (
        status.value if confidence is Confidence.NONE else f"{status.value}, confidence {confidence.value}"
    )
    return words, _STATUS_TONES[status]


def _claim(item: Evidence, indent: int = 0) -> Paragraph:
    tone = Tone.CAUTION if item.basis in (Basis.INFERRED, Basis.UNKNOWN) else Tone.MUTED
    return Paragraph(
        ((f"{item.basis.value:<{_COLUMN}}", tone), item.says, (f"  {item.subject}", Tone.MUTED)),
        indent=indent,
        hang=indent + _COLUMN,
        side=(item.kind.value, Tone.MUTED),
    )


class EvidencePanel(Paragraphs):
    """Evidence of a classification.

    `EvidencePanel(classification=None, *, glyphs=None, id=None, classes=None)`, then `show(classification)`.
    """

    BINDING_GROUP_TITLE = "Evidence"

    def __init__(
        self,
        classification: Classification | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`classification` is None while nothing was examined."""
        super().__init__(empty="Not examined yet", glyphs=glyphs, id=id, classes=classes)
        self._classification = classification

    def show(self, classification: Classification) -> None:
        """Show other evidence."""
        self._classification = classification
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return the verdict, what speaks for it, and what was weighed against it."""
        found = self._classification
        if found is None:
            return ()
        return self._said(found)

    def _said(self, found: Classification) -> Iterator[Paragraph]:
        yield Paragraph(((title(found), Tone.STRONG),))
        yield Paragraph((verdict(found), (f". {found.note}", Tone.MUTED)))
        yield from heading("Why", "each claim, where it comes from, and what was looked at")
        if not found.evidence:
            words = (
                "Several formats have evidence of their own, see below, and nothing tells which is right."
                if found.status is Status.AMBIGUOUS and found.alternatives
                else "Nothing that was examined speaks for a format."
            )
            yield Paragraph(((words, Tone.CAUTION),))
        for item in sorted(found.evidence, key=lambda item: _BASES.index(item.basis)):
            yield _claim(item)
        if found.alternatives:
            count = len(found.alternatives)
            yield from heading("Weighed and not chosen", f"{count:,}, each with the reason why not")
        for other in found.alternatives:
            name = FORMAT_TITLES.get(other.format, other.format)
            yield Paragraph(((f"{self.glyphs.stop} ", Tone.CAUTION), (name, Tone.STRONG)))
            yield Paragraph((other.reason,), indent=2, hang=2)
            for item in other.evidence:
                yield _claim(item, indent=2)

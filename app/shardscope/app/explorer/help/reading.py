"""The pages of what holds for every checkpoint, and the commands that print them."""

from collections.abc import Callable
from dataclasses import dataclass

from shardscope.widgets.paragraphs import Paragraphs


@dataclass(frozen=True)
class Reading:
    """One page."""

    title: str
    command: str
    make: Callable[[], Paragraphs]


def page(kind: str, at: str = "", format: str | None = None) -> Reading:  # noqa: A002 - the word of the descriptor
    """Return the page `matrix`, `glossary`, `codes`, or `explain` with the code `at`.

    `format` is that of the checkpoint in hand: its row of the matrix comes first.
    """
    match kind:
        case "matrix":
            return Reading("support matrix", "shardscope matrix", lambda: _matrix(format))
        case "glossary":
            return Reading("glossary", "shardscope glossary", _glossary)
        case "explain":
            return Reading(f"explain {at}", f"shardscope explain {at}", lambda: _codes(at))
    return Reading("codes", "shardscope explain", _codes)


def _matrix(format: str | None) -> Paragraphs:  # noqa: A002 - as above
    from shardscope.engine import sources, support_matrix
    from shardscope.widgets.matrix_panel import MatrixPanel

    return MatrixPanel(support_matrix(), sources(), format)


def _glossary() -> Paragraphs:
    from shardscope.engine import glossary
    from shardscope.widgets.glossary_panel import GlossaryPanel

    return GlossaryPanel(glossary())


def _codes(code: str | None = None) -> Paragraphs:
    from shardscope.engine.model.codes import CODES
    from shardscope.widgets.codes_panel import CodesPanel

    return CodesPanel(tuple(CODES.values()) if code is None else (CODES[code],))

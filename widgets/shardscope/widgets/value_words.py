"""Numbers of a tensor in the notations of a grid. What is no ordinary number is told by letters, and its tone says the same."""

from typing import Final, Literal

from shardscope.engine.model.tensors import DTYPES
from shardscope.widgets.safe import Tone

Notation = Literal["short", "scientific", "fixed", "hex"]
_FLOATS: Final[tuple[Notation, ...]] = ("short", "scientific", "fixed", "hex")
_OTHERS: Final[tuple[Notation, ...]] = ("short", "hex")

_WIDTH: Final = 10
"""Cells of a float in any notation but hexadecimal: `-1.235e-05`."""
_COMPLEX: Final = 19
_LEAST: Final = 4


def notations(dtype: str) -> tuple[Notation, ...]:
    """Return the notations that a type has, in the order in which a key goes through them."""
    return _FLOATS if DTYPES[dtype].kind in ("float", "scale") else _OTHERS


def cell_width(dtype: str, notation: Notation) -> int:
    """Return the cells that a column has at least. Integers take more where theirs are longer."""
    known = DTYPES[dtype]
    if notation == "hex":
        digits = -(-known.bits // 4)
        return digits + (1 if known.kind == "complex" else 0) + 2
    if known.kind == "complex":
        return _COMPLEX
    return _WIDTH if known.kind in ("float", "scale") else _LEAST


def special(word: str) -> tuple[str, Tone] | None:
    """Return what a number is called that is NaN, infinite or zero, or None."""
    if word == "nan":
        return "NaN", Tone.STOP
    if word in ("inf", "-inf"):
        return ("-inf" if word[0] == "-" else "+inf"), Tone.CAUTION
    return (word, Tone.MUTED) if word in ("0", "-0") else None


def cell_words(word: str, code: str, dtype: str, notation: Notation) -> tuple[str, Tone]:
    """Return one element as a grid has it; `word` in decimal with all digits, `code` its bits."""
    kind = DTYPES[dtype].kind
    found = special(word)
    tone = Tone.PLAIN if found is None else found[1]
    if kind == "complex" and found is None:
        tone = _tone_of_parts(word)
    if notation == "hex":
        floats = kind in ("float", "scale", "complex")
        mark = {Tone.STOP: " N", Tone.CAUTION: " I", Tone.MUTED: " Z"}.get(tone, "  ")
        return (f"{code}{mark}" if floats else code), tone
    if found is not None:
        return found
    if kind == "complex":
        value = complex(word)
        return f"{value.real:.3g}{value.imag:+.3g}j", tone
    if kind not in ("float", "scale"):
        return word, tone
    return _float(float(word), notation), tone


def _float(value: float, notation: Notation) -> str:
    if notation == "fixed":
        text = f"{value:.6f}"
        if len(text) <= _WIDTH and (float(text) or abs(value) < 1e-12):
            return text
    if notation == "short":
        return f"{value:.4g}"
    return f"{value:.3e}"


def _tone_of_parts(word: str) -> Tone:
    """Return the tone of a complex number: that of its stranger part."""
    if "nan" in word:
        return Tone.STOP
    if "inf" in word:
        return Tone.CAUTION
    return Tone.MUTED if complex(word) == 0 else Tone.PLAIN

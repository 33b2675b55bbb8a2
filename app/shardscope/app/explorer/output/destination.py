"""Where an output appears, what becomes of what stands there, and the words of a command that say so."""

from typing import Final, Literal

from msgspec import Struct

from shardscope.app.explorer.target import quoted

Standing = Literal["refuse", "keep", "remove"]
"""What becomes of a folder that stands at the target."""

_UNITS: Final = (
    ("TiB", 1 << 40),
    ("TB", 10**12),
    ("GiB", 1 << 30),
    ("GB", 10**9),
    ("MiB", 1 << 20),
    ("MB", 10**6),
    ("KiB", 1 << 10),
    ("KB", 10**3),
)


class Destination(Struct, frozen=True, kw_only=True):
    """A target as far as it was chosen; a draft of what is made there extends it."""

    out: str = ""
    """Where to, as it was typed."""
    standing: Standing = "refuse"
    allow_gap: bool = False
    resume: bool = False
    keep_staging: bool = False
    """Finished files stay, however a run ends."""

    @property
    def replace(self) -> bool:
        """Whether a folder that stands at the target is exchanged."""
        return self.standing != "refuse"

    @property
    def operand(self) -> str:
        """The target as a word of a command; `OUT` where it was not chosen yet."""
        return operand(self.out) if self.out else "OUT"


def operand(path: str) -> str:
    """Return a path as a word of a command that is no option."""
    return quoted(f"./{path}" if path.startswith("-") else path)


def size_word(count: int) -> str:
    """Return bytes as the command line takes them, in the largest unit that says them exactly."""
    return next(
        (f"{count // unit}{name}" for name, unit in _UNITS if count and count % unit == 0), str(count)
    )


def conduct_words(chosen: Destination) -> list[str]:
    """Return the options that say how an output appears at its target."""
    words = ["--replace"] if chosen.replace else []
    if chosen.standing == "remove":
        words.append("--discard-old")
    if chosen.replace and chosen.allow_gap:
        words.append("--allow-gap")
    if chosen.keep_staging:
        words.append("--keep-staging")
    return [*words, "--resume"] if chosen.resume else words

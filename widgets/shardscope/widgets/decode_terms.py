"""What decoding would do, before a person says yes: what is read, in what containment, within which limits, and what it is not."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.escalation import IsolationProfile
from shardscope.engine.model.limits import DecodeLimits
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, labelled
from shardscope.widgets.safe import Part, Tone, elide, visible

NAMED: Final = 2
"""Files that are named."""
LABEL: Final = 12
"""Cells of the quiet words at the left."""


class Terms(Struct, frozen=True):
    """What a person agrees to."""

    title: str
    """What a person calls the format."""
    files: tuple[tuple[str, int], ...]
    """The opaque files with their bytes."""
    limits: DecodeLimits
    command: str
    """What says the same without a screen."""
    containment: IsolationProfile | Blocker | None = None
    """As a worker found it just now, or why there is none; null while it is not known."""


class DecodeTerms(Paragraphs):
    """The terms as text that scrolls.

    `DecodeTerms(terms, *, glyphs=None, id=None)`, then `show(terms)` as often as something about them changes.
    """

    BINDING_GROUP_TITLE = "Decode"

    def __init__(
        self,
        terms: Terms,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
    ) -> None:
        """Show `terms`."""
        self._terms = terms
        super().__init__(glyphs=glyphs, id=id)

    @property
    def lines(self) -> int:
        """Lines that it needs at its present width."""
        return self.row_count()

    def show(self, terms: Terms) -> None:
        """Show other terms; what was scrolled to stays."""
        self._terms = terms
        self.rows_changed()

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return the terms."""
        terms = self._terms
        total = sum(length for _, length in terms.files)
        files = f"{plural(len(terms.files), 'opaque file')}, {size(total)}"
        yield Paragraph(((files, Tone.STRONG), f": {terms.title}"))
        yield Paragraph(
            (("Pickles are read as data: nothing is executed, nothing is remembered.", Tone.STRONG),)
        )
        yield from _reads(terms.files, width - LABEL, self.glyphs)
        yield from _contained(terms.containment, self.glyphs)
        yield _limits(terms.limits, self.glyphs)
        yield labelled(
            "is not",
            "proof, nor trust: containment is not proof, and what will be listed is what the files say of themselves.",
        )
        yield labelled("the same", (terms.command, Tone.STRONG))


def _reads(files: Sequence[tuple[str, int]], width: int, glyphs: Glyphs) -> Iterator[Paragraph]:
    for number, (name, length) in enumerate(files[:NAMED]):
        rest = len(files) - NAMED
        more = f" and {rest:,} more" if number == NAMED - 1 and rest > 0 else ""
        said = f"  {size(length)}{more}"
        shown = elide(visible(name), max(16, width - len(said)), glyphs.ellipsis, tail=0.7)
        yield labelled("" if number else "reads", shown, (said, Tone.MUTED))


def _contained(found: IsolationProfile | Blocker | None, glyphs: Glyphs) -> Iterator[Paragraph]:
    if found is None:
        yield labelled("contained", ("asking this machine what it denies a worker", Tone.CAUTION))
    elif isinstance(found, Blocker):
        yield labelled("contained", (f"{glyphs.stop} refused", Tone.STOP), f"  {found.message}")
        yield labelled("", found.remedy)
        yield labelled("", (found.code, Tone.MUTED))
    else:
        yield from _profile(found, glyphs)


def _profile(profile: IsolationProfile, glyphs: Glyphs) -> Iterator[Paragraph]:
    tried = profile.probes
    answers = (("open", tried.open), ("socket", tried.socket), ("fork", tried.fork), ("exec", tried.execute))
    parts: list[Part] = []
    for word, answer in answers:
        sign, tone = (glyphs.ok, Tone.OK) if answer == "denied" else (glyphs.stop, Tone.STOP)
        parts += [(f" {glyphs.dot} " if parts else f"{sign} ", tone if not parts else Tone.MUTED)]
        parts += [f"{word}\u00a0", (answer, tone)]
    yield labelled("contained", *parts)
    calls = plural(len(profile.system_calls), "system call")
    facts = (
        f"no_new_privs {'set' if profile.no_new_privs else 'not set'}",
        f"seccomp leaves {calls}",
        f"Landlock {'none' if profile.landlock is None else f'ABI {profile.landlock.abi}'}",
        f"Linux {profile.kernel}",
        "tried just now",
    )
    yield labelled("", *_dotted(facts, glyphs))


def _limits(limits: DecodeLimits, glyphs: Glyphs) -> Paragraph:
    facts = (
        f"{size(limits.pickle_bytes)} a pickle",
        f"{limits.pickle_opcodes:,} opcodes",
        f"depth {limits.pickle_depth:,}",
        f"{limits.pickle_seconds:,} s",
        f"worker {size(limits.worker_bytes)}",
        f"answer {size(limits.reply_bytes)}",
    )
    return labelled("limits", *_dotted(facts, glyphs), ("\u00a0(--limit)", Tone.MUTED))


def _dotted(facts: Iterable[str], glyphs: Glyphs) -> Iterator[Part]:
    between = ""
    for fact in facts:
        yield between, Tone.MUTED
        yield fact.replace(" ", "\u00a0")
        between = f" {glyphs.dot} "

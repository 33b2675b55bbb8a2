"""The answer at one glance: what it is, how sure, whether it is whole, and the one thing in the way."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import UNSET

from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Basis, Status
from shardscope.engine.model.resources import Estimate
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.topology import Mesh
from shardscope.engine.model.wholeness import Whole, wholeness
from shardscope.engine.model.workflow import StepState, Workflow
from shardscope.widgets.blockers_panel import severity_mark
from shardscope.widgets.evidence_panel import title, verdict
from shardscope.widgets.figures import HostFigures, memory_left, number, plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading, labelled
from shardscope.widgets.resources_panel import fits
from shardscope.widgets.safe import Part, Tone

_WHOLE: Final = {Whole.YES: Tone.OK, Whole.NO: Tone.STOP, Whole.NOT_KNOWN: Tone.CAUTION}
_PRESENCE: Final = {
    Presence.PRESENT: Tone.OK,
    Presence.OPAQUE: Tone.CAUTION,
    Presence.UNKNOWN: Tone.CAUTION,
    Presence.ABSENT: Tone.MUTED,
}
_STATE_WORDS: Final = {
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "rng": "random state",
    "scaler": "scaler",
    "progress": "progress",
    "data_position": "data position",
}
NAMED: Final = 4
"""Saves or parts that are named on one line."""
RANKS: Final = 6
"""Ranks that are named on one line."""

Hint = tuple[str, str]
"""A key and what it does."""


def worst(blockers: Sequence[Blocker]) -> Blocker | None:
    """Return the one thing in the way: of the most severe blockers, the one that blocks most."""
    serious = [item for item in blockers if item.severity is not Severity.INFO]
    return max(serious, key=lambda item: (item.severity.rank, len(item.blocks)), default=None)


class SummaryPanel(Paragraphs):
    """One glance.

    `SummaryPanel(*, glyphs=None, id=None, classes=None)`, then `show(descriptor, host, hints, offer)`, where `hints` are the
    next keys with what they do and `offer` is what could be done about opaque files. Before that it says that nothing was
    examined yet.
    """

    BINDING_GROUP_TITLE = "Summary"

    def __init__(
        self,
        descriptor: Descriptor | None = None,
        host: HostFigures | None = None,
        hints: Sequence[Hint] = (),
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`descriptor` is None while nothing was examined."""
        super().__init__(empty="Not examined yet", glyphs=glyphs, id=id, classes=classes)
        self._descriptor = descriptor
        self._host = host
        self._hints = tuple(hints)
        self._offer = ""

    def show(
        self,
        descriptor: Descriptor,
        host: HostFigures | None = None,
        hints: Sequence[Hint] = (),
        offer: str = "",
    ) -> None:
        """Show another checkpoint."""
        self._descriptor, self._host, self._hints = descriptor, host, tuple(hints)
        self._offer = offer
        self.rows_changed(0)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return the answer, the facts and what is in the way."""
        return () if self._descriptor is None else self._said(self._descriptor)

    def _said(self, found: Descriptor) -> Iterator[Paragraph]:
        classification = found.classification
        word, tone = verdict(classification)
        yield Paragraph(((_headline(found), Tone.STRONG),), side=(word, tone))
        if classification.status is Status.CONDITIONAL:
            yield Paragraph((("structural evidence, no promise to load or convert", Tone.MUTED),))
        yield Paragraph()
        whole = wholeness(found)
        yield labelled("whole?", (whole.answer.value, _WHOLE[whole.answer]), f", {whole.why}")
        yield from self._in_the_way(found.blockers)
        if self._offer:
            yield labelled("opaque", (self._offer, Tone.HERE))
        if self._hints:
            parts: list[Part] = []
            for key, words in self._hints:
                between = "   " if parts else ""
                parts += [between, (key, Tone.HERE), ("\u00a0" + words.replace(" ", "\u00a0"), Tone.MUTED)]
            yield labelled("next", *parts)
        yield Paragraph()
        yield from _parts(found, self.glyphs)
        yield from _topology(found, self.glyphs)
        yield _producer(found, self.glyphs)
        yield from _state(
            found.state_scope, self.glyphs, opaque="opaque until decoded" if _decodes(found) else "opaque"
        )
        yield _tensors(found, self.glyphs)
        if found.decoded is not UNSET:
            yield _decoded(found.decoded, self.glyphs)
        yield from self._sizes(found)
        yield from _trust(found, self.glyphs)
        yield from _steps(found.workflow, self.glyphs)

    def _sizes(self, found: Descriptor) -> Iterator[Paragraph]:
        source, needs = found.source, found.resources
        parts: list[Part] = [size(source.bytes)]
        if source.kind != "file":
            parts.append(f" in {plural(source.files, 'file')}")
        parts.append((f" {self.glyphs.dot} output ", Tone.MUTED))
        parts.append(_estimate(needs.output_bytes))
        if source.allocated_bytes < source.bytes - (source.bytes >> 3):
            parts.append(
                (
                    f" {self.glyphs.dot} only {size(source.allocated_bytes)} on disk: files have holes",
                    Tone.CAUTION,
                )
            )
        yield labelled("size", *parts)
        host = self._host
        if host is None:
            return
        answers = (
            (needs.output_bytes.bytes, host.disk_free, "free"),
            (needs.peak_ram_bytes.bytes, memory_left(host), "memory"),
        )
        parts = []
        for need, room, word in answers:
            parts.append(f"{' ' + self.glyphs.dot + ' ' if parts else ''}{size(room)} {word}")
            if need is not None and room is not None:
                answer, tone = fits(need, room)
                parts.append((f" ({answer})", tone))
        yield labelled("this box", *parts)

    def _in_the_way(self, blockers: Sequence[Blocker]) -> Iterator[Paragraph]:
        item = worst(blockers)
        if item is None:
            yield labelled("in the way", "nothing in what was examined; what was not examined is not clean")
            return
        mark, tone = severity_mark(item.severity, self.glyphs)
        others = sum(each.severity is not Severity.INFO for each in blockers) - 1
        yield labelled("in the way", (mark.replace(" ", "\u00a0"), tone), f"  {item.message}")
        yield labelled("", item.remedy)
        more = f"  and {plural(others, 'other')}, see Blockers" if others else ""
        yield labelled("", (f"{item.code}{more}", Tone.MUTED))


def _headline(found: Descriptor) -> str:
    saves = sum(each.kind == "candidate" for each in found.components)
    return f"{plural(saves, 'save')} side by side" if saves else title(found.classification)


def _parts(found: Descriptor, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Say what stands side by side, or what a composite is made of, in a line or two."""
    parts = found.components
    saves = [each for each in parts if each.kind == "candidate"]
    if not saves and found.classification.format != "composite":
        return
    if saves:
        words: list[Part] = [_listed([each.name for each in saves], glyphs)]
        for each in saves:
            if each.named_by is not None:
                words += [(f" {glyphs.dot} ", Tone.MUTED), (f"{each.named_by} names {each.name}", Tone.HERE)]
        yield labelled("saves", *words)
        return
    names = [each.name if each.name.startswith(each.kind) else f"{each.kind} {each.name}" for each in parts]
    yield labelled("parts", f"{len(parts):,}: ", _listed(names, glyphs))


def _listed(names: Sequence[str], glyphs: Glyphs) -> str:
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED - 1])} {glyphs.ellipsis} {names[-1]}"


def _steps(workflow: Workflow, glyphs: Glyphs) -> Iterator[Paragraph]:
    """Say for each of the six steps how it stands."""
    if not workflow.steps:
        return
    signs = {
        StepState.CURRENT: (glyphs.ok, Tone.OK),
        StepState.NOT_NEEDED: (glyphs.note, Tone.MUTED),
        StepState.STOPPED: (glyphs.stop, Tone.STOP),
        StepState.EXPERIMENTAL: (glyphs.caution, Tone.CAUTION),
        StepState.ON_REQUEST: (glyphs.caution, Tone.CAUTION),
        StepState.NOT_AVAILABLE: (glyphs.caution, Tone.CAUTION),
    }
    yield from heading("Steps", "what is open, and what stops the next one")
    for step in workflow.steps:
        sign, tone = signs[step.state]
        here = step.name is workflow.stops_at
        parts: list[Part] = [(f"{sign} {step.state.value:<15}", tone), step.says]
        if step.stopped_by:
            parts.append((f"  {step.stopped_by}", Tone.MUTED))
        name: Part = (f"{step.name.value:<12}", Tone.STRONG if here else Tone.MUTED)
        yield Paragraph((name, *parts), hang=29)
    yield Paragraph(((workflow.note, Tone.MUTED),))


def _estimate(estimate: Estimate) -> Part:
    if estimate.bytes is None or estimate.basis is Basis.UNKNOWN:
        return "unknown", Tone.CAUTION
    return f"about {size(estimate.bytes)} (estimate)"


def _topology(found: Descriptor, glyphs: Glyphs) -> Iterator[Paragraph]:
    meshes = found.topology.meshes
    if not meshes:
        yield labelled("topology", found.topology.note or "no rank is named anywhere that was examined")
    for place, mesh in enumerate(meshes):
        yield labelled(mesh.name if place else "topology", *_mesh(mesh, glyphs))


def _mesh(mesh: Mesh, glyphs: Glyphs) -> Iterator[Part]:
    between: Part = ""
    for axis in mesh.axes:
        yield between
        between = (f" {glyphs.dot} ", Tone.MUTED)
        size_tone = Tone.CAUTION if axis.size is None else Tone.PLAIN
        yield f"{axis.name.replace('_', ' ')} {number(axis.size)}".replace(" ", "\u00a0"), size_tone
        if axis.size is not None:
            tone = Tone.CAUTION if axis.basis is Basis.INFERRED else Tone.MUTED
            yield f"\u00a0({axis.basis.value})", tone
    for ranks, count, word, tone in (
        (mesh.ranks_missing, mesh.missing_count, "missing", Tone.STOP),
        (mesh.ranks_duplicate, len(mesh.ranks_duplicate), "twice", Tone.CAUTION),
    ):
        if ranks:
            shown = ", ".join(mesh.rank_name(rank).replace(" ", "\u00a0") for rank in ranks[:RANKS])
            more = f" and {count - RANKS:,} more" if count > RANKS else ""
            yield f" {glyphs.dot} {word}: {shown}{more}", tone


def _producer(found: Descriptor, glyphs: Glyphs) -> Paragraph:
    if not found.producer:
        return labelled("producer", ("unknown", Tone.CAUTION))
    parts: list[Part] = []
    for fact in found.producer:
        if parts:
            parts.append((f" {glyphs.dot} ", Tone.MUTED))
        parts += [f"{fact.name} {fact.version or '(version unknown)'}", (f" {fact.basis.value}", Tone.MUTED)]
    return labelled("producer", *parts)


def _decodes(found: Descriptor) -> bool:
    """Tell whether decoding could look into what is opaque, and not only recognise it."""
    return all(item.code != "layout.recognised_only" for item in found.blockers)


def _state(scope: StateScope, glyphs: Glyphs, *, opaque: str) -> Iterator[Paragraph]:
    yield labelled("weights", *_part(scope.weights, opaque))
    optimizer = scope.optimizer
    if optimizer.presence is not Presence.ABSENT:
        yield labelled("optimizer", *_part(optimizer, opaque))
    rest: dict[Presence, list[str]] = {}
    for field, word in _STATE_WORDS.items():
        part: StatePart = getattr(scope, field)
        if field != "optimizer" or part.presence is Presence.ABSENT:
            rest.setdefault(part.presence, []).append(word)
    parts: list[Part] = []
    for presence, words in rest.items():
        if parts:
            parts.append((f" {glyphs.dot} ", Tone.MUTED))
        parts.append((f"{presence.value}: {', '.join(words)}", _PRESENCE[presence]))
    yield labelled("state", *parts)


def _part(part: StatePart, opaque: str) -> Iterator[Part]:
    word = opaque if part.presence is Presence.OPAQUE else part.presence.value
    yield word, _PRESENCE[part.presence]
    yield f"  {part.reason}", Tone.MUTED


def _tensors(found: Descriptor, glyphs: Glyphs) -> Paragraph:
    tensors = found.tensors
    if not tensors.count:
        words = "none"
        if tensors.files_opaque:
            words = f"none could be listed{' without decoding' if _decodes(found) else ''}"
        return labelled("tensors", (words, Tone.CAUTION if tensors.files_opaque else Tone.PLAIN))
    parts: list[Part] = [f"{tensors.count:,}, {size(tensors.logical_bytes)}"]
    shares = sorted(tensors.dtypes, key=lambda share: -share.bytes)
    kinds = (
        f"all {shares[0].dtype}"
        if len(shares) == 1
        else ", ".join(f"{share.dtype} {size(share.bytes)}" for share in shares)
    )
    parts += [(f" {glyphs.dot} ", Tone.MUTED), kinds]
    if tensors.files_opaque:
        words = f" {glyphs.dot} {plural(tensors.files_opaque, 'opaque file')} not listed"
        parts.append((words, Tone.CAUTION))
    return labelled("tensors", *parts)


def _decoded(plane: DecodedPlane, glyphs: Glyphs) -> Paragraph:
    """Say what decoding read and listed, and which names in it are foreign."""
    if not plane.streams:
        return labelled("decoded", ("asked for; no pickle was read", Tone.CAUTION))
    dot: Part = (f" {glyphs.dot} ", Tone.MUTED)
    parts: list[Part] = [f"{plural(len(plane.streams), 'pickle stream')} read as data"]
    for each in plane.components:
        here = Tone.PLAIN if plane.listed in (each.component, "all") else Tone.MUTED
        parts += [dot, (f"{each.component} {each.tensors:,} in {plural(each.fragments, 'fragment')}", here)]
    parts += [dot, (f"listed: {plane.listed}", Tone.HERE)]
    foreign = sum(not item.known for item in plane.references)
    if foreign:
        parts += [dot, (f"{plural(foreign, 'foreign name')}, see Pickles", Tone.CAUTION)]
    return labelled("decoded", *parts)


def _trust(found: Descriptor, glyphs: Glyphs) -> Iterator[Paragraph]:
    trust = found.trust
    counts = [
        plural(len(files), noun)
        for files, noun in (
            (trust.opaque_files, "opaque file"),
            (trust.code_files, "code file"),
            (trust.code_references, "code reference"),
        )
        if files
    ]
    if counts:
        yield labelled("trust", (", ".join(counts), Tone.CAUTION), f" {glyphs.dot} nothing was executed")

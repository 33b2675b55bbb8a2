"""What inspection found as Markdown, for an issue or a comment: the answer, the figures, and what stands in the way.

Text of the checkpoint is escaped, so that no name becomes a link, a mention, markup or a cell of its own.
"""

import re
from collections.abc import Iterator
from typing import Final

from shardscope.engine.model.blocker import Blocker, Severity, human_bytes
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.secrets import redact
from shardscope.engine.model.text import counted, display_name

ALIKE: Final = 3
"""Blockers of one code that are shown before the rest of them is counted."""
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|~&])")
_LIST: Final = re.compile(r"\A(\s*(?:\d+(?=[.)])|(?=[-+=#])))")
_CALLED: Final = re.compile(r"([@#]|(?<=:)//|(?i:www)(?=\.))")
"""What services turn into links and mentions of people after the markup is read: only a code span keeps it apart."""
_WORDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def markdown(descriptor: Descriptor, *, everything: bool = False) -> str:
    """Return the descriptor as Markdown with line ends. `everything` cuts no list short."""
    return "\n".join((*_answer(descriptor), *_figures(descriptor), *_blockers(descriptor, everything), ""))


def escaped(text: str) -> str:
    """Return text of a checkpoint as Markdown shows it, character by character."""
    plain = _MARKUP.sub(r"\\\1", redact(display_name(text)))
    return _CALLED.sub(r"`\1`", _LIST.sub(r"\1\\", plain))


def _answer(descriptor: Descriptor) -> Iterator[str]:
    seen = descriptor.classification
    yield f"## {escaped(FORMAT_TITLES.get(seen.format, seen.format))}"
    yield ""
    confidence = "" if seen.confidence is Confidence.NONE else f", confidence {seen.confidence.value}"
    yield f"**{seen.status.value}**{confidence}. {seen.note}"
    yield ""


def _figures(descriptor: Descriptor) -> Iterator[str]:
    source, tensors = descriptor.source, descriptor.tensors
    yield "| | |"
    yield "|---|---|"
    yield f"| files | {counted(source.files, 'file')}, {human_bytes(source.bytes)} |"
    if tensors.count is not None:
        dtypes = ", ".join(escaped(share.dtype) for share in tensors.dtypes)
        yield f"| tensors | {tensors.count:,}{f', {dtypes}' if dtypes else ''} |"
    if descriptor.trust.opaque_files:
        yield f"| opaque | {counted(len(descriptor.trust.opaque_files), 'file')} |"
    for fact in {(each.name, each.version): each for each in descriptor.producer}.values():
        version = "version unknown" if fact.version is None else escaped(fact.version)
        yield f"| producer | {escaped(fact.name)}, {version} ({fact.basis.value}) |"
    for mesh in descriptor.topology.meshes:
        axes = ", ".join(f"{escaped(axis.name)} {axis.size}" for axis in mesh.axes if axis.size is not None)
        yield f"| topology | {escaped(mesh.name)}: {axes or 'not known'} |"
    yield f"| made by | {descriptor.tool.name} {descriptor.tool.version} |"
    yield ""


def _blockers(descriptor: Descriptor, everything: bool) -> Iterator[str]:
    if not descriptor.blockers:
        yield "Nothing that stands in the way was found in what was examined."
        return
    yield "### In the way"
    yield ""
    groups: dict[tuple[int, str], list[Blocker]] = {}
    for item in descriptor.blockers:
        groups.setdefault((-item.severity.rank, item.code), []).append(item)
    for key in sorted(groups):
        alike = groups[key]
        shown = alike if everything else alike[:ALIKE]
        blocks = f", blocks {', '.join(alike[0].blocks)}" if alike[0].blocks else ""
        yield f"- **{_WORDS[alike[0].severity]}** `{alike[0].code}`{blocks}"
        yield from (f"  - {escaped(item.message)}" for item in shown)
        if len(alike) > len(shown):
            yield f"  - and {len(alike) - len(shown):,} more like this"
        yield from (f"  - → {escaped(remedy)}" for remedy in dict.fromkeys(item.remedy for item in shown))

"""The claim rules as checks of sentences: who is cited, what a vendor is said to do, what is called safe.

The rules themselves stand in the register of sources; findings name them by number. A lint of words finds careless
sentences and proves nothing about careful ones.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.sources import SourceEntry, SourceGroup

CITATION: Final = re.compile(r"\[(R\d\d(?:\s*[,–-]\s*R\d\d)*)\](?!\()")
"""`[R01]`, `[R01, R04]` or `[R01-R03]`: ids of the register."""
LINKED: Final = re.compile(r"\[(R\d\d)\]\(")
"""`[R01](sources.md#r01)`: an id that leads to its entry."""
MARKED_OURS: Final = re.compile(r"\bour reading\b", re.IGNORECASE)
"""What marks an interpretation of this project."""
VENDOR_WORDS: Final = re.compile(r"\b(?:documents?|defines?|currently implements?)\b")

_VENDORS: Final = r"(?:PyTorch|torch|DCP|FSDP|Megatron(?: Core| Bridge|-LM)?|DeepSpeed|ZeRO|Accelerate|Transformers|PEFT|Hugging Face|NVIDIA)"
_NEGATION: Final = re.compile(
    r"\b(?:no|not|nor|never|neither|nothing|none|cannot|without|than|instead)\b|n't\b", re.IGNORECASE
)


class Rule(Struct, frozen=True):
    """Words that break a claim rule, unless the sentence denies them."""

    number: int
    problem: str
    pattern: re.Pattern[str]


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


RULES: Final = (
    Rule(
        1,
        "a vendor documents, defines or currently implements",
        re.compile(rf"\b{_VENDORS} (?:guarantees|ensures|promises|certifies|always|supports)\b"),
    ),
    Rule(
        2,
        "what a vendor documents is no support here",
        _words(r"\b(?:officially|fully|universally) (?:supported|compatible)\b"),
    ),
    Rule(
        5,
        "containment is no proof",
        _words(
            r"\b(?:isolation|sandbox\w*|container\w*|containment|seccomp|cgroups?|namespaces?)\b[^.]{0,60}"
            r"\b(?:proves?|guarantees?|ensures?|makes? \w+ safe)\b"
        ),
    ),
    Rule(
        6,
        "neither a flag nor a checksum nor a name is trust",
        _words(
            r"\b(?:weights_only\S*|checksums?|digests?|sha-?256|signatures?|file names?|(?:earlier|prior) scans?)`?\b[^.]{0,40}"
            r"\b(?:is|are|makes?|means?|proves?|shows?)\b[^.]{0,30}\b(?:safe|trusted|trustworthy|authentic|enough|sufficient)\b"
        ),
    ),
    Rule(
        6,
        "nothing is called safe",
        _words(
            r"\b(?:safe to (?:load|open|unpickle)|(?:proven|completely|perfectly) safe|free of malware)\b"
        ),
    ),
    Rule(4, "nothing is guaranteed", _words(r"\bguarantee(?:s|d)?\b")),
    Rule(
        7,
        "a control of the operating system bounds one exact profile",
        _words(r"\b(?:portable|universal|complete|secure) sandbox\b"),
    ),
)
"""Rules that a sentence breaks by its words."""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text or a Markdown page: code blocks are left out, table cells stand for themselves."""
    text = re.sub(r"(?ms)^```.*?^```\s*$|^ {4}\S.*?$|<!--.*?-->", "\n\n", text)
    for block in re.split(r"\n\s*\n|^[#>*-]+ |^\d+\. |\||\n(?=[-*] |\d+\. )", text, flags=re.MULTILINE):
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`\[*])", " ".join(block.split())):
            if sentence:
                yield sentence


def cited(sentence: str) -> Iterator[str]:
    """Yield the ids that a sentence cites, ranges spelled out."""
    for match in CITATION.finditer(sentence):
        for part in re.split(r"\s*,\s*", match[1]):
            first, _, last = re.sub(r"\s*[–-]\s*", "-", part).partition("-")
            for number in range(int(first[1:]), int((last or first)[1:]) + 1):
                yield f"R{number:02}"


def wording_findings(where: str, sentence: str) -> Iterator[Finding]:
    """Yield the first rule that a sentence breaks by its words. What is denied before or within them breaks none."""
    for rule in RULES:
        found = rule.pattern.search(sentence)
        if found is not None and not _NEGATION.search(sentence, 0, found.end()):
            yield _wording(where, rule.number, rule.problem, sentence)
            return


def page_findings(where: str, text: str, register: Mapping[str, SourceEntry]) -> Iterator[Finding]:
    """Yield what is wrong with the claims of a page: wording, and citations that lead nowhere or carry too much."""
    for sentence in sentences(text):
        yield from wording_findings(where, sentence)
        ids = list(cited(sentence))
        for name in (*ids, *LINKED.findall(sentence)):
            if name not in register:
                yield Finding("claims.source_unknown", {"where": where, "found": name})
        upstream = any(register[name].group is SourceGroup.UPSTREAM for name in ids if name in register)
        if upstream and not VENDOR_WORDS.search(sentence) and not MARKED_OURS.search(sentence):
            yield _wording(where, 1, "a vendor documents, defines or currently implements", sentence)


def _wording(where: str, rule: int, problem: str, sentence: str) -> Finding:
    return Finding(
        "claims.wording", {"where": where, "rule": rule, "problem": problem, "sentence": sentence[:200]}
    )

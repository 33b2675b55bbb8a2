"""What a stream names and what deserves a word: the evidence beside its facts."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.pickled import ReferenceUse
from shardscope.engine.parse.pickled.facts import Facts
from shardscope.engine.parse.pickled.shapes import GETATTR

FOREIGN_LISTED: Final = 20
"""Foreign calls that get a sentence each; the references list all."""


def references(facts: Facts) -> list[ReferenceUse]:
    """Return every name of the stream, in order of appearance."""
    explained = Counter(id(call.callee) for call in facts.explained.values())
    remade = Counter(id(kind) for _, kind in facts.remade.values())
    found = []
    for reference in facts.stream.references.values():
        key = (reference.module, reference.name)
        calls = reference.called + remade[id(reference)]
        known = key in facts.table.calls or (key in facts.table.names and not calls)
        if key in GETATTR:
            known = explained[id(reference)] == reference.called
        found.append(ReferenceUse(*key, "called" if calls else "named", calls or reference.named, known))
    return found


def findings(facts: Facts, references: Sequence[ReferenceUse]) -> list[Finding]:
    """Return what deserves a word."""
    found = list(facts.stream.findings)
    if facts.duplicates:
        found.append(Finding("pickle.duplicate_key", {"count": facts.duplicates}))
    if facts.persistent_ids:
        found.append(Finding("pickle.persistent_id", {"count": facts.persistent_ids}))
    found += [
        Finding("pickle.arguments", {"reference": name, "count": count})
        for name, count in facts.odd_calls.items()
    ]
    return found + _foreign([each for each in references if not each.known])


def _foreign(references: Sequence[ReferenceUse]) -> list[Finding]:
    """Return a finding for each name that a loader would call, up to a bound, and one for those that it would look up."""
    called = [each for each in references if each.use == "called"]
    found = [
        Finding("pickle.foreign_call", {"reference": _dotted(each), "count": each.count})
        for each in called[:FOREIGN_LISTED]
    ]
    if len(called) > FOREIGN_LISTED:
        found.append(Finding("pickle.foreign_calls_more", {"count": len(called) - FOREIGN_LISTED}))
    if named := [each for each in references if each.use == "named"]:
        found.append(Finding("pickle.foreign_name", {"reference": _dotted(named[0]), "count": len(named)}))
    return found


def _dotted(reference: ReferenceUse) -> str:
    return f"{reference.module}.{reference.name}"

"""Claims: what the support matrix, the glossary and the pages say, held against the register of sources."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning)


TABLE: Final[tuple[Code, ...]] = (
    _error(
        "matrix.shape",
        "The support matrix does not have its {what:word}: {problem:word}.",
        "Restore the rows, columns and words as they are listed in the documentation.",
        "The matrix has seven subjects, five capabilities and a closed vocabulary, each word with its meaning. A row more "
        "or less would be a claim that nobody agreed on.",
    ),
    _error(
        "matrix.dependence_missing",
        "{cell:word} is conditional and does not name {items:word}.",
        "List everything that it depends on.",
        "Conditional without its conditions reads like a promise.",
    ),
    _error(
        "matrix.unqualified",
        "{row:word} is called supported and was not retained with {items:word}.",
        "Call it experimental until all seven items are there.",
        "Supported means that somebody tried it and kept the proof: producer version, adapter version, fixture digest, "
        "candidate commit, environment, topology and result.",
    ),
    _error(
        "matrix.format_unknown",
        "{row:word} speaks for the format {found:text}, which is none of those that are recognised.",
        "Use the name that `classification.format` has in a descriptor.",
        "A row that speaks for no format can never be held against what inspection finds.",
    ),
    _error(
        "claims.source_unknown",
        "{where:word} cites {found:word}, which is not in the register of sources.",
        "Cite an entry that exists, or add one with its use and its qualification.",
        "The register is the authority: what cannot be found there cannot be looked up by whoever doubts it.",
    ),
    _error(
        "claims.source_weak",
        "{where:word} rests on {found:word} alone: {problem:word}.",
        "Cite a current interface, a format description or an implementation as well.",
        "Tutorials illustrate, and archived pages show what was. Neither says what holds today.",
    ),
    _error(
        "claims.source_foreign",
        "{where:word} says {found:word} of this product and cites no evidence of this project.",
        "Cite the project's own entry, or say less.",
        "The documentation of other software says how that software behaves. It never shows what this one can do.",
    ),
    _error(
        "claims.wording",
        "{where:word} breaks claim rule {rule:count} ({problem:word}): {sentence:text}",
        "Say what was seen, by whom and how far it goes; `docs/sources.md` has the rules.",
        "Sentences about vendors, trust and containment keep to words that the sources carry. A stronger word costs "
        "somebody a night when it turns out not to hold.",
    ),
    _error(
        "register.twice",
        "The register has {found:word} twice.",
        "Give each source an id of its own; ids are never used again.",
        "An id that means two sources means neither.",
    ),
    _error(
        "register.rules",
        "The register's rules are numbered {found:word}.",
        "Number them from 1, without gaps.",
        "Findings name a rule by its number.",
    ),
    _error(
        "glossary.terms",
        "The glossary does not have its eight terms: {problem:word}.",
        "Restore the terms as they are listed in the documentation.",
        "The glossary keeps eight things apart that are all called sharding. Two of them under one term is the mistake "
        "that it is there to prevent.",
    ),
)

"""Everything that can be chosen on the way to a conversion: what it is called, how it is shown, and how a choice changes the draft.

Pure: a field takes a draft and returns another one.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.app.explorer.convert.draft import CASTS, Draft, size_word
from shardscope.engine.model.decoded import ComponentFigures
from shardscope.widgets.figures import plural, size
from shardscope.widgets.plan_settings import Setting
from shardscope.widgets.safe import Part, Tone

LEAST: Final = 1
MOST_WORKERS: Final = 64


class Known(Struct, frozen=True):
    """What choices depend on beside the draft."""

    components: tuple[ComponentFigures, ...] = ()
    resumable: str | None = None
    """What an earlier run of this plan has left, in words."""


class UntakenError(ValueError):
    """What was typed cannot be taken; its text says what would be."""


class Field(Struct, frozen=True):
    """One choice."""

    name: str
    key: str
    label: str
    tooltip: str
    shown: Callable[[Draft, Known], Part]
    option: str = ""
    """Of the command line."""
    turned: Callable[[Draft, int], Draft] | None = None
    """The draft with the next choice, or the one before; null where something is typed."""
    typed: Callable[[Draft, str], Draft] | None = None
    """The draft with what was typed. Raises `UntakenError`."""
    text: Callable[[Draft], str] = lambda _: ""
    """What stands in the line that is typed in."""
    there: Callable[[Draft, Known], bool] = lambda *_: True
    """Whether it can be chosen now."""


def settings(fields: Sequence[Field], draft: Draft, known: Known) -> list[Setting]:
    """Return the rows of some fields."""
    return [
        Setting(item.name, item.key, item.label, item.shown(draft, known))
        for item in fields
        if item.there(draft, known)
    ]


# How drafts change


def _with(draft: Draft, **options: Any) -> Draft:
    return replace(draft, options=replace(draft.options, **options))


def _next(values: Sequence[Any], present: Any, by: int) -> Any:
    return values[(values.index(present) + by) % len(values)]


def _option(name: str, values: Sequence[Any]) -> Callable[[Draft, int], Draft]:
    return lambda draft, by: _with(draft, **{name: _next(values, getattr(draft.options, name), by)})


def _number(text: str, most: int | None = None) -> int:
    digits = text.strip().replace("_", "").replace(",", "")
    if (
        not digits.isascii()
        or not digits.isdigit()
        or int(digits) < LEAST
        or (most is not None and int(digits) > most)
    ):
        raise UntakenError(f"a number from 1 to {most}" if most is not None else "a number of 1 or more")
    return int(digits)


def _bytes(text: str) -> int:
    from shardscope.app.cli.planning import bytes_in

    count = bytes_in(text)
    if count is None:
        raise UntakenError("a number of bytes such as 512MiB or 5GB")
    return count


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _text(text: str) -> str | None:
    return text.strip() or None


def _of_numbers(name: str) -> Callable[[Draft, str], Draft]:
    return lambda draft, text: replace(draft, numbers=replace(draft.numbers, **{name: _number(text)}))


# How they are shown


def _is(name: str, words: dict[Any, Part]) -> Callable[[Draft, Known], Part]:
    return lambda draft, _: words[getattr(draft.options, name)]


def _given(text: str | None, otherwise: str) -> Part:
    return (otherwise, Tone.MUTED) if text is None else text


def _component(draft: Draft, known: Known) -> Part:
    chosen = draft.options.component
    found = [item for item in known.components if chosen in ("all", item.component)]
    total = None if any(item.bytes is None for item in found) else sum(item.bytes or 0 for item in found)
    said = f", {size(total)}" if found else ", none listed"
    return f"{'everything' if chosen == 'all' else chosen}{said}"


def _resharding(draft: Draft, _: Known) -> bool:
    return draft.kind == "reshard"


SHARING: Final[dict[Any, str]] = {
    "none": "none",
    "zero1": "ZeRO 1, optimizer",
    "zero2": "ZeRO 2, optimizer",
    "zero3": "ZeRO 3, all flattened",
    "fsdp": "FSDP, dimension 0",
}
KINDS: Final = {"convert": "safetensors (HF)", "reshard": "another topology"}


def _ranks(name: str, key: str, words: str) -> Field:
    return Field(
        name,
        key,
        name,
        f"How many {words} the output is for",
        lambda draft, _: f"{getattr(draft.numbers, name):,}",
        f"--{name}",
        typed=_of_numbers(name),
        text=lambda draft: str(getattr(draft.numbers, name)),
        there=_resharding,
    )


WHAT: Final = (
    Field(
        "kind",
        "o",
        "output",
        "Whole tensors as Hugging Face safetensors, or the shards of another topology's ranks",
        lambda draft, _: (KINDS[draft.kind], Tone.STRONG),
        turned=lambda draft, by: replace(draft, kind=_next(tuple(KINDS), draft.kind, by)),
    ),
    Field(
        "component",
        "m",
        "tensors",
        "The model's weights, the optimizer's state, or everything",
        _component,
        "--component",
        turned=_option("component", ("model", "optimizer", "other", "all")),
    ),
    _ranks("tp", "t", "tensor-parallel ranks"),
    _ranks("pp", "p", "stages of a pipeline"),
    _ranks("dp", "d", "data-parallel ranks"),
    _ranks("ep", "e", "expert-parallel ranks, among the data-parallel ones,"),
    Field(
        "sharing",
        "z",
        "sharing",
        "How data-parallel ranks share what they hold",
        lambda draft, _: SHARING[draft.numbers.sharding],
        "--zero",
        turned=lambda draft, by: replace(
            draft, numbers=replace(draft.numbers, sharding=_next(tuple(SHARING), draft.numbers.sharding, by))
        ),
        there=_resharding,
    ),
    Field(
        "layout",
        "f",
        "files",
        "How the files are named and what stands beside them",
        lambda draft, _: draft.layout,
        "--layout",
        turned=lambda draft, by: replace(
            draft, layout=_next(("ranks", "dcp-safetensors", "vllm"), draft.layout, by)
        ),
        there=_resharding,
    ),
    Field(
        "cuts",
        "c",
        "cuts",
        "The layout table that says how ranks cut which tensor, by name or file; empty: the only packaged one that fits",
        lambda draft, _: _given(draft.cuts, "the table that fits"),
        "--cuts",
        typed=lambda draft, text: replace(draft, cuts=_text(text)),
        text=lambda draft: draft.cuts or "",
        there=_resharding,
    ),
    Field(
        "fuse",
        "u",
        "fuse",
        "A naming taken the other way: a model's tensors put end to end as its producer has them",
        lambda draft, _: _given(draft.options.fuse, "nothing"),
        "--fuse",
        typed=lambda draft, text: _with(draft, fuse=_text(text)),
        text=lambda draft: draft.options.fuse or "",
        there=_resharding,
    ),
    Field(
        "multiple",
        "v",
        "vocab pad",
        "Pad vocabularies with zeros to a multiple of it that divides among tp",
        lambda draft, _: f"to a multiple of {draft.numbers.vocabulary_multiple:,}",
        "--vocab-multiple",
        typed=_of_numbers("vocabulary_multiple"),
        text=lambda draft: str(draft.numbers.vocabulary_multiple),
        there=_resharding,
    ),
)

STANDING: Final[dict[Any, Part]] = {
    "refuse": "is not touched",
    "keep": "exchanged, old one kept",
    "remove": ("exchanged, old one removed", Tone.CAUTION),
}
_STANDINGS: Final = tuple(STANDING)

WHERE: Final = (
    Field(
        "out",
        "o",
        "new folder",
        "Where the output appears: a folder that is made, beside which it is staged",
        lambda draft, _: _given(draft.out or None, "not chosen"),
        typed=lambda draft, text: replace(draft, out=os.path.expanduser(text.strip())),
        text=lambda draft: draft.out,
    ),
    Field(
        "standing",
        "r",
        "what is there",
        "What becomes of a folder that stands there: refused, or exchanged at the very end",
        lambda draft, _: STANDING[draft.standing],
        "--replace",
        turned=lambda draft, by: replace(draft, standing=_next(_STANDINGS, draft.standing, by)),
    ),
    Field(
        "gap",
        "a",
        "in two steps",
        "Where folders cannot be exchanged in one step, allow two: for an instant nothing stands there",
        lambda draft, _: "allowed" if draft.allow_gap else "never",
        "--allow-gap",
        turned=lambda draft, _: replace(draft, allow_gap=not draft.allow_gap),
        there=lambda draft, _: draft.replace,
    ),
    Field(
        "keep",
        "e",
        "if cut short",
        "What becomes of finished files when a run ends early; the loss of the terminal keeps them in any case",
        lambda draft, _: "finished files kept" if draft.keep_staging else "nothing is left",
        "--keep-staging",
        turned=lambda draft, _: replace(draft, keep_staging=not draft.keep_staging),
    ),
    Field(
        "resume",
        "u",
        "earlier run",
        "Go on with what an earlier run of this plan has finished, after verifying it",
        lambda draft, known: (
            ("gone on with", Tone.STRONG)
            if draft.resume
            else f"not used{': ' + known.resumable if known.resumable else ''}"
        ),
        "--resume",
        turned=lambda draft, _: replace(draft, resume=not draft.resume),
        there=lambda draft, known: draft.resume or known.resumable is not None,
    ),
)

OPTIONS: Final = (
    Field(
        "dtype",
        "d",
        "types",
        "Cast floats, round to nearest even; integers, booleans and floats of eight bits and less stay",
        lambda draft, _: "kept" if draft.options.dtype == "keep" else f"cast to {draft.options.dtype}",
        "--dtype",
        turned=_option("dtype", tuple(CASTS)),
    ),
    Field(
        "ties",
        "t",
        "tied tensors",
        "Tied tensors under one name, or under each",
        _is("ties", {"once": "one copy", "both": "under each name"}),
        "--ties",
        turned=_option("ties", ("once", "both")),
    ),
    Field(
        "vocab",
        "v",
        "vocabulary",
        "Rows of the vocabulary without its padding; empty: by evidence of the configuration, never by guess",
        lambda draft, _: (
            "by evidence" if draft.options.vocab_size is None else f"{draft.options.vocab_size:,} rows"
        ),
        "--vocab-size",
        typed=lambda draft, text: _with(draft, vocab_size=_number(text) if text.strip() else None),
        text=lambda draft: "" if draft.options.vocab_size is None else str(draft.options.vocab_size),
    ),
    Field(
        "mapping",
        "m",
        "names",
        "A mapping table that makes a model's own names of a producer's, by name or file; empty: the checkpoint's own",
        lambda draft, _: _given(draft.options.mapping, "as in the checkpoint"),
        "--mapping",
        typed=lambda draft, text: _with(draft, mapping=_text(text)),
        text=lambda draft: draft.options.mapping or "",
    ),
    Field(
        "renames",
        "r",
        "rename rules",
        "A file of ordered rules of renaming (`shardscope schema renames`)",
        lambda draft, _: (
            ("none", Tone.MUTED)
            if draft.renames_file is None
            else f"{plural(len(draft.options.renames), 'rule')}"
        ),
        "--rename",
        text=lambda draft: draft.renames_file or "",
    ),
    Field(
        "include",
        "i",
        "only",
        "Only names of the source that match one of these patterns, with spaces between",
        lambda draft, _: _given(" ".join(draft.options.include) or None, "all names"),
        "--include",
        typed=lambda draft, text: _with(draft, include=_words(text)),
        text=lambda draft: " ".join(draft.options.include),
    ),
    Field(
        "exclude",
        "x",
        "without",
        "Not names of the source that match one of these patterns, with spaces between",
        lambda draft, _: _given(" ".join(draft.options.exclude) or None, "nothing left out"),
        "--exclude",
        typed=lambda draft, text: _with(draft, exclude=_words(text)),
        text=lambda draft: " ".join(draft.options.exclude),
    ),
    Field(
        "shard",
        "s",
        "file size",
        "Bytes of tensors in one file; a run that ends early keeps whole files",
        lambda draft, _: f"at most {size_word(draft.options.max_shard_bytes)}",
        "--max-shard-size",
        typed=lambda draft, text: _with(draft, max_shard_bytes=_bytes(text)),
        text=lambda draft: size_word(draft.options.max_shard_bytes),
    ),
    Field(
        "memory",
        "b",
        "buffers",
        "Bytes of buffers, all workers together",
        lambda draft, _: f"{size(draft.options.memory_bytes)}",
        "--memory",
        typed=lambda draft, text: _with(draft, memory_bytes=_bytes(text)),
        text=lambda draft: size_word(draft.options.memory_bytes),
    ),
    Field(
        "workers",
        "w",
        "workers",
        "Threads that copy",
        lambda draft, _: plural(draft.options.workers, "thread"),
        "--workers",
        typed=lambda draft, text: _with(draft, workers=_number(text, MOST_WORKERS)),
        text=lambda draft: str(draft.options.workers),
    ),
    Field(
        "verify",
        "f",
        "verified",
        "How much of the staged output is compared with the source before it appears",
        _is("verify", {"full": "every byte", "sample": "a sample", "headers": "headers alone"}),
        "--verify",
        turned=_option("verify", ("sample", "full", "headers")),
    ),
    Field(
        "digest",
        "e",
        "digests",
        "SHA-256 of the output files; without them a run cannot be gone on with",
        _is("digest", {"sha256": "SHA-256", "none": ("none", Tone.CAUTION)}),
        "--digest",
        turned=_option("digest", ("sha256", "none")),
    ),
    Field(
        "digest_source",
        "u",
        "of the source",
        "Hash the source, too, and record it in the manifest",
        _is("digest_source", {True: "SHA-256", False: ("not hashed", Tone.MUTED)}),
        "--digest-source",
        turned=_option("digest_source", (False, True)),
    ),
    Field(
        "crc",
        "z",
        "checksums",
        "Check the checksums that zip records carry",
        _is("check_crc", {True: "checked", False: ("not checked", Tone.CAUTION)}),
        "--crc",
        turned=_option("check_crc", (True, False)),
    ),
    Field(
        "carry",
        "a",
        "carried along",
        "Copy configuration and tokenizer files along",
        _is("carry", {True: "config, tokenizer", False: "nothing"}),
        "--carry",
        turned=_option("carry", (True, False)),
    ),
    Field(
        "config",
        "o",
        "config from",
        "A folder with configuration and tokenizer to carry, in place of those beside the source",
        lambda draft, _: _given(draft.config, "beside the source"),
        "--config",
        typed=lambda draft, text: replace(draft, config=_text(text)),
        text=lambda draft: draft.config or "",
    ),
)

_STEPS: Final = ((1, WHAT), (2, WHERE), (3, OPTIONS))


def keys_from(step: int) -> dict[str, str]:
    """Return, for options of the command line, what to press at a step: a key, after the number of another step."""
    return {
        item.option: item.key if number == step else f"{number} {item.key}"
        for number, fields in _STEPS
        for item in fields
        if item.option
    }

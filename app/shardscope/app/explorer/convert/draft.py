"""What a person has chosen so far, and the command that does the same: pure, so that every choice is tested without a screen."""

from typing import Final, Literal

from shardscope.app.explorer.output.destination import Destination, conduct_words, size_word
from shardscope.app.explorer.target import Target, convert_words, quoted
from shardscope.engine.geometry.mapping.targets import Numbers, Sharding
from shardscope.engine.model.plan import Cast, PlanOptions, RankLayout

Kind = Literal["convert", "reshard"]
"""What is made; also the command that makes it, and the word that starts it."""

CASTS: Final[dict[Cast, str]] = {"keep": "keep", "BF16": "bf16", "F16": "f16", "F32": "f32"}
"""Types, as the command line calls them."""
_ZERO: Final[dict[Sharding, str]] = {"zero1": "1", "zero2": "2", "zero3": "3"}


class Draft(Destination, frozen=True, kw_only=True):
    """A conversion as far as it was chosen."""

    kind: Kind = "convert"
    options: PlanOptions = PlanOptions()
    numbers: Numbers = Numbers()
    """Of the topology that is written, where another one is."""
    layout: RankLayout = "ranks"
    cuts: str | None = None
    config: str | None = None
    renames_file: str | None = None
    """Whose rules `options.renames` are."""


def command_of(draft: Draft, target: Target, *, decoded: bool) -> str:
    """Return the command that does what was chosen. `OUT` stands for a target that was not chosen yet."""
    words = [*convert_words(target, draft.kind), draft.operand]
    if decoded:
        words.append("--decode")
    if draft.kind == "reshard":
        words += _topology(draft)
    words += _choices(draft)
    words += conduct_words(draft)
    return " ".join(words)


def _topology(draft: Draft) -> list[str]:
    numbers = draft.numbers
    words = ["--tp", str(numbers.tp)]
    for name, count in (("--pp", numbers.pp), ("--dp", numbers.dp), ("--ep", numbers.ep)):
        words += [name, str(count)] if count != 1 else []
    if numbers.sharding == "fsdp":
        words.append("--fsdp")
    elif numbers.sharding != "none":
        words += ["--zero", _ZERO[numbers.sharding]]
    if numbers.vocabulary_multiple != 1:
        words += ["--vocab-multiple", str(numbers.vocabulary_multiple)]
    if draft.layout != "ranks":
        words += ["--layout", draft.layout]
    if draft.cuts is not None:
        words += ["--cuts", quoted(draft.cuts)]
    if draft.options.fuse is not None:
        words += ["--fuse", quoted(draft.options.fuse)]
    return words


def _choices(draft: Draft) -> list[str]:
    chosen, usual = draft.options, PlanOptions()
    words: list[str] = []
    for name, value, default in (
        ("--component", chosen.component, usual.component),
        ("--dtype", CASTS[chosen.dtype], CASTS[usual.dtype]),
        ("--ties", chosen.ties, usual.ties),
        ("--max-shard-size", size_word(chosen.max_shard_bytes), size_word(usual.max_shard_bytes)),
        ("--memory", size_word(chosen.memory_bytes), size_word(usual.memory_bytes)),
        ("--workers", str(chosen.workers), str(usual.workers)),
        ("--digest", chosen.digest, usual.digest),
        ("--verify", chosen.verify, usual.verify),
    ):
        words += [name, value] if value != default else []
    for pattern in chosen.include:
        words += ["--include", quoted(pattern)]
    for pattern in chosen.exclude:
        words += ["--exclude", quoted(pattern)]
    for name, text in (
        ("--rename", draft.renames_file),
        ("--mapping", chosen.mapping),
        ("--vocab-size", None if chosen.vocab_size is None else str(chosen.vocab_size)),
        ("--config", draft.config),
    ):
        words += [name, quoted(text)] if text is not None else []
    for flag, given in (
        ("--digest-source", chosen.digest_source),
        ("--no-crc", not chosen.check_crc),
        ("--no-carry", not chosen.carry),
    ):
        words += [flag] if given else []
    return words

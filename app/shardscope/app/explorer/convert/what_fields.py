"""What is made: whole tensors or the shards of another topology, and of which tensors."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from shardscope.app.explorer.convert.draft import Draft
from shardscope.app.explorer.convert.fields import Field, Known, turned_option, with_options
from shardscope.app.explorer.output.fields import given, next_of, number_in, text_in
from shardscope.widgets.figures import size
from shardscope.widgets.safe import Part, Tone


def _of_numbers(name: str) -> Callable[[Draft, str], Draft]:
    return lambda draft, text: replace(draft, numbers=replace(draft.numbers, **{name: number_in(text)}))


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
        turned=lambda draft, by: replace(draft, kind=next_of(tuple(KINDS), draft.kind, by)),
    ),
    Field(
        "component",
        "m",
        "tensors",
        "The model's weights, the optimizer's state, or everything",
        _component,
        "--component",
        turned=turned_option("component", ("model", "optimizer", "other", "all")),
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
            draft,
            numbers=replace(draft.numbers, sharding=next_of(tuple(SHARING), draft.numbers.sharding, by)),
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
            draft, layout=next_of(("ranks", "dcp-safetensors", "vllm"), draft.layout, by)
        ),
        there=_resharding,
    ),
    Field(
        "cuts",
        "c",
        "cuts",
        "The layout table that says how ranks cut which tensor, by name or file; empty: the only packaged one that fits",
        lambda draft, _: given(draft.cuts, "the table that fits"),
        "--cuts",
        typed=lambda draft, text: replace(draft, cuts=text_in(text)),
        text=lambda draft: draft.cuts or "",
        there=_resharding,
    ),
    Field(
        "fuse",
        "u",
        "fuse",
        "A naming taken the other way: a model's tensors put end to end as its producer has them",
        lambda draft, _: given(draft.options.fuse, "nothing"),
        "--fuse",
        typed=lambda draft, text: with_options(draft, fuse=text_in(text)),
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

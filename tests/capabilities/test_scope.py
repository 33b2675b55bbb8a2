"""What this product is not: no training run goes on with its outputs, no job is touched, nothing of a producer comes through."""

import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from shardscope.app.cli.root import shardscope as command_line
from shardscope.engine.capabilities.claims import sentences
from shardscope.engine.capabilities.published import support_matrix
from shardscope.engine.model import catalogue
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.manifest import Manifest
from shardscope.engine.model.plan import RankLayout
from tests.documents.pages import pages, text
from tests.formats import decoding

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests/fixtures"
DENIED = re.compile(
    r"\b(?:no|not|nor|never|nothing|neither|none|without|somebody else's|out-of-scope|of your own)\b",
    re.IGNORECASE,
)
RESUME = re.compile(r"\bexact(?:ly)? resum|\bresum\w+ (?:a |the )?training|\bmulti-?node\b", re.IGNORECASE)
TRANSFER = re.compile(
    r"\brendezvous\b|\blive transfer\b|\bsnapshot consist|\btransports?\b|\bprocess groups?\b", re.IGNORECASE
)
BARE = re.compile(
    r"^(?:live )?(?:exact resume|multi-node(?: surgery| execution)?)$|^\W*`?[\w-]+`?(?:, `[\w-]+`)*\W*$",
    re.IGNORECASE,
)
"""A cell of a table or a heading that is the name of the thing alone."""


def helped() -> str:
    """Every sentence of `--help`."""
    import click

    told: list[str] = []

    def below(command: click.Command, context: click.Context) -> None:
        told.extend((command.help or "", getattr(command, "notes", "")))
        told.extend(option.help or "" for option in command.params if isinstance(option, click.Option))
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                if inner is not None:
                    below(inner, click.Context(inner, info_name=name, parent=context))

    below(command_line, click.Context(command_line))
    return "\n\n".join(told)


def claimed(pattern: re.Pattern[str]) -> list[str]:
    """Sentences of pages, codes and help that say the thing and do not deny it."""
    texts = [
        (page, text(page)) for page in pages() if page != "docs/sources.md"
    ]  # which says what others document
    texts += [(code, part) for code, row in CODES.items() for part in (row.message, row.remedy, row.meaning)]
    texts.append(("--help", helped()))
    return [
        f"{where}: {sentence[:160]}"
        for where, whole in texts
        for sentence in sentences(whole)
        if pattern.search(sentence)
        and not sentence.endswith("?")
        and not DENIED.search(sentence)
        and not BARE.fullmatch(sentence.strip())
    ]


# R092
def test_no_sentence_calls_a_conversion_a_resume_or_work_on_several_nodes() -> None:
    assert claimed(RESUME) == []


# R173
def test_no_sentence_claims_transfer_between_live_ranks() -> None:
    assert claimed(TRANSFER) == []


# R092 R173
@pytest.mark.parametrize(
    "sentence", ["The output resumes training.", "It is an exact resume.", "Multi-node conversion works."]
)
def test_a_claim_would_be_found(sentence: str) -> None:
    assert RESUME.search(sentence)
    assert not DENIED.search(sentence)


# R092
def test_every_manifest_says_that_it_is_no_resume() -> None:
    (note,) = [field.default for field in msgspec.structs.fields(Manifest) if field.name == "note"]

    assert "not an exact resume" in note


# R173
def test_the_matrix_refuses_what_is_live_in_every_row() -> None:
    for row in support_matrix().rows:
        cells = dict(row.each())
        assert cells["live_multi_node"].word.value in ("out-of-scope", "no"), row.id
        assert cells["exact_resume"].word.value == "out-of-scope", row.id


# R162
def test_what_is_written_is_full_tensors_or_files_of_ranks_and_never_a_universal_folder() -> None:
    assert set(get_args(RankLayout)) == {"ranks", "dcp-safetensors", "vllm"}
    writers = [
        path
        for room in ("convert", "converting")
        for path in (ROOT / "engine/shardscope/engine" / room).rglob("*.py")
    ]
    assert len(writers) > 20
    for path in writers:
        assert not re.search(
            r"[\"'](?:zero/|fp32\.pt|exp_avg\.pt|.*\.pt|.*\.distcp)[\"']", path.read_text(encoding="utf-8")
        ), path


# R162
def test_a_universal_folder_is_read_to_the_full_tensors_that_it_stands_for() -> None:
    fixture = FIXTURES / "deepspeed/uc-from-zero3-w3-fp32"
    found = {tensor.name: tuple(tensor.shape) for tensor in decoding.decode(fixture / "checkpoint").tensors}
    raw = (fixture / "expected.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    true = {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}

    assert len(true) > 20
    assert true.items() <= found.items()


# --- what a format hands on

PLAIN = {str, int, bool, float, type(None), bytes}


def nouns(root: Any) -> set[type]:
    """Every class that values of a type are made of, plain ones left out. Raises `AssertionError` for what may be anything."""
    found: set[type] = set()
    todo: list[Any] = [root]
    while todo:
        kind = todo.pop()
        assert kind not in (Any, object), "anything fits into it"
        if get_args(kind):
            todo += [
                each
                for each in get_args(kind)
                if each is not Ellipsis and (isinstance(each, type) or get_args(each))
            ]
        elif isinstance(kind, type) and kind not in PLAIN | found:
            found.add(kind)
            if issubclass(kind, msgspec.Struct):
                todo += get_type_hints(kind).values()
    return found


# R076
def test_a_tensor_that_a_format_hands_on_is_made_of_neutral_nouns_alone() -> None:
    """Names, types, shapes, places in files and a map: no object, no class and no code of a producer fits into it."""
    made_of = nouns(catalogue.LogicalTensor)

    assert {catalogue.LogicalTensor, catalogue.Fragment, catalogue.Record} <= made_of
    assert all(kind.__module__.startswith("shardscope.engine.model.") for kind in made_of), made_of


# R076
@pytest.mark.parametrize(
    "fixture",
    [
        "dcp/fsdp2_flat_world2",
        "deepspeed/zero3-w3-fp32",
        "megatron/legacy_tp2_pp2",
        "torch/zip_numpy_objects",
    ],
)
def test_what_a_decoded_checkpoint_becomes_are_such_tensors(fixture: str) -> None:
    tensors = decoding.decode(FIXTURES / fixture / "checkpoint").tensors

    assert tensors
    for tensor in tensors:
        assert type(tensor) is catalogue.LogicalTensor
        assert plain(msgspec.to_builtins(tensor)), tensor.name


def plain(value: Any) -> bool:
    """Whether a value is made of nothing but numbers, texts, lists and mappings."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return all(map(plain, value))
    return type(value) in PLAIN

"""What is chosen of a fix: every choice changes the draft, and the command that is shown comes to the same options."""

import shlex
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from shardscope.app.cli.fix import _options, fix
from shardscope.app.explorer.fix.draft import Draft, command_of, options_of, same_plan, with_operation
from shardscope.app.explorer.fix.fields import (
    FIELDS,
    KEYS,
    SAYS,
    Known,
    fields_of,
    pairs_in,
    repair_of,
    words_in,
    words_of,
)
from shardscope.app.explorer.fix.metadata import KeyOf, edited, keys_of, taken_away, text_of, value_of
from shardscope.app.explorer.offer import mended_by
from shardscope.app.explorer.output.fields import UntakenError, settings
from shardscope.app.explorer.target import Target
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.repair import REPAIRS
from shardscope.widgets.fix_rows import Line, changing
from tests.app.explorers import llama
from tests.app.fakes import a_blocker

FULL = Draft(
    chosen=tuple(each for each in REPAIRS if each != "merge"),
    out="-out dir",
    files=("model-*",),
    drop=("lm_head.*", "it's [red]\n*"),
    untie=True,
    pairs=(("a b", "c"),),
    prefixes=("model.",),
    set=(("run", "17=x"), ("esc", "\x1b[2J")),
    unset=("line\nbreak",),
    strip=True,
    max_shard_bytes=2 << 30,
    memory_bytes=64 << 20,
    standing="keep",
)


def parsed(draft: Draft) -> dict[str, Any]:
    """Return what the command line makes of the command of a draft."""
    words = shlex.split(command_of(draft, Target("ckpt")).replace("$'", "'"))
    assert words[:2] == ["shardscope", "fix"]
    return dict(fix.make_context("fix", words[2:]).params)


# R065
@pytest.mark.parametrize(
    "draft",
    [
        Draft(chosen=("index",), out="out"),
        Draft(chosen=("salvage", "merge"), out="out"),
        replace(FULL, drop=("lm_head.*",), set=(("run", "17=x"),), unset=("key",)),
        Draft(chosen=("drop", "metadata"), drop=("a b",), set=(("k", ""),), out="out"),
    ],
)
def test_the_command_asks_the_engine_for_what_was_chosen(draft: Draft) -> None:
    given = parsed(draft)
    words = shlex.split(command_of(draft, Target("ckpt")))
    context = fix.make_context("fix", words[2:])

    assert _options(context, dict(context.params)) == options_of(draft)
    assert given["target"] == ("./-out dir" if draft.out.startswith("-") else draft.out)
    assert given["replace"] is draft.replace


def test_a_command_shows_no_raw_byte_of_a_checkpoint() -> None:
    said = command_of(FULL, Target("ckpt"))

    assert "\x1b" not in said
    assert "\n" not in said
    assert "--unset $'line\\x0abreak'" in said
    assert command_of(Draft(), Target("ckpt")) == "shardscope fix ckpt OUT"


def test_an_operation_that_says_nothing_is_left_out_and_named() -> None:
    draft = Draft(chosen=("index", "drop", "rename", "metadata"))
    assert draft.lacking == ("drop", "rename", "metadata")
    assert draft.what == ("index",)
    assert replace(draft, drop=("*",), prefixes=("a",), strip=True).lacking == ()
    assert set(SAYS) == set(draft.lacking)


def test_operations_stand_in_their_order_and_one_file_excludes_many() -> None:
    draft = Draft()
    for repair in ("header", "merge", "salvage"):
        draft = with_operation(draft, repair)
    assert draft.chosen == ("salvage", "merge", "header")
    assert with_operation(draft, "split").chosen == ("salvage", "split", "header")
    assert with_operation(draft, "merge").chosen == ("salvage", "header")
    assert with_operation(draft, "merge", on=True) == draft


def test_only_what_an_operation_looks_at_makes_another_plan() -> None:
    assert same_plan(FULL, replace(FULL, out="other", resume=True))
    assert not same_plan(FULL, replace(FULL, strip=False))


def test_keys_are_single_letters_that_move_no_cursor_and_leave_nothing() -> None:
    keys = [field.key for field in FIELDS]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 1 and key.islower() for key in keys)
    assert not set(keys) & set("hjklgnqy")
    assert set(KEYS) == set(REPAIRS)
    assert {repair_of(field.name) for field in FIELDS} == {*REPAIRS, None}


@pytest.mark.parametrize("text", ["a b", "'a b' c", "", "model.*"])
def test_words_are_typed_as_they_are_shown(text: str) -> None:
    assert words_in(words_of(words_in(text))) == words_in(text)


@pytest.mark.parametrize(
    ("typed", "text"), [(words_in, "'a"), (pairs_in, "a"), (pairs_in, "=b"), (pairs_in, "a=")]
)
def test_what_cannot_be_taken_is_said(typed: Any, text: str) -> None:
    with pytest.raises(UntakenError):
        typed(text)


def test_a_key_is_added_edited_taken_away_and_left_alone() -> None:
    keys = keys_of([{"format": "pt", "run": "1"}, {"run": "2"}, {"format": "pt"}])
    assert keys == (KeyOf("format", ("pt",), 2), KeyOf("run", ("1", "2"), 2))
    form, run = keys
    draft = Draft(chosen=("metadata",))

    assert edited(draft, run, "17").set == (("run", "17"),)
    assert edited(edited(draft, run, "17"), run, "") == draft
    assert edited(draft, form, "pt") == draft
    assert taken_away(draft, run).unset == ("run",)
    assert taken_away(taken_away(draft, run), run) == draft
    assert taken_away(edited(draft, run, "17"), run) == draft
    assert edited(taken_away(draft, run), run, "3").unset == ()
    new = KeyOf("new", (), 0)
    assert taken_away(replace(draft, set=(("new", "x"),)), new) == draft

    assert value_of(draft, run) == "2 values in 2 files"
    assert value_of(draft, form) == '"pt"'
    assert "taken away" in value_of(taken_away(draft, run), run)[0]
    assert "set" in value_of(edited(draft, run, "17"), run)[0]
    assert value_of(replace(draft, strip=True), form) == '"pt"'
    assert "goes" in value_of(replace(draft, strip=True), run)[0]


@pytest.mark.parametrize("value", ["a\x1b[2Jb", "v" * 1_000, "hf_" + "a" * 34, "two\nlines"])
def test_a_value_that_a_line_cannot_show_is_written_anew(value: str) -> None:
    key = KeyOf("k", (value,), 1)
    assert text_of(Draft(), key) == ""
    assert edited(Draft(), key, "") == Draft()
    said = value_of(Draft(), key)
    assert isinstance(said, str)
    assert "\x1b" not in said
    assert "aaaaaa" not in said
    assert text_of(Draft(), KeyOf("k", ("plain",), 1)) == "plain"


def test_rows_are_those_of_what_was_chosen() -> None:
    known = Known(wrong=(("salvage", 2), ("index", 1)), keys=(KeyOf("format", ("pt",), 1),))

    def labels(draft: Draft) -> list[str]:
        return [item.label.strip() for item in settings(list(fields_of(draft, known).values()), draft, known)]

    assert labels(Draft()) == [*KEYS, "weight files"]
    assert "format" in labels(Draft(chosen=("metadata",), set=(("run", "1"),)))
    assert "run" in labels(Draft(chosen=("metadata",), set=(("run", "1"),)))
    shown = {
        item.label: item.value for item in settings(list(fields_of(Draft(), known).values()), Draft(), known)
    }
    assert shown["salvage"][0] == "[ ] mends 2, at a loss"
    assert shown["index"][0] == "[ ] mends 1"


def test_losses_are_counted_apart_and_loud() -> None:
    lines = [Line("added", "a"), Line("changed", "b"), Line("changed", "c"), Line("lost", "d")]
    assert changing(lines) == "1 added, 2 changed, 1 LOST"
    assert changing([]) == "0 changes"


def test_only_what_a_fix_mends_is_offered() -> None:
    blockers = (
        a_blocker("index.absent"),
        a_blocker("trust.code_file"),
        a_blocker("header.padding", severity=Severity.INFO),
    )
    found = structs.replace(llama().descriptor, blockers=blockers)
    assert mended_by(found) == {"index.absent"}
    other = structs.replace(found.classification, format="dcp")
    assert not mended_by(structs.replace(found, classification=other, components=()))

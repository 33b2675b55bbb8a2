"""What is chosen on the way to a conversion: every choice changes the draft, and the command that is shown comes to the same."""

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from msgspec.structs import replace

from shardscope.app.cli.convert import convert
from shardscope.app.cli.planning import options_of
from shardscope.app.cli.reshard import _aim, reshard
from shardscope.app.explorer.convert.choices import keys_from
from shardscope.app.explorer.convert.conversion import same_plan
from shardscope.app.explorer.convert.draft import Draft, command_of
from shardscope.app.explorer.convert.fields import Field, Known
from shardscope.app.explorer.convert.option_fields import OPTIONS
from shardscope.app.explorer.convert.what_fields import WHAT
from shardscope.app.explorer.output.destination import size_word
from shardscope.app.explorer.output.fields import UntakenError, settings
from shardscope.app.explorer.output.where_fields import WHERE
from shardscope.app.explorer.target import Target
from shardscope.engine.geometry.mapping.targets import Numbers
from shardscope.engine.model.plan import PlanOptions, RenameRule
from shardscope.widgets.safe import Tone

RULES = '{"schema": "shardscope.renames/1", "rules": [{"prefix": "a.", "to": "b."}]}'
TYPED = {
    "tp": "4", "pp": "2", "dp": "2", "ep": "2", "cuts": "hf-llama", "fuse": "megatron-llama", "multiple": "128",
    "out": "here/it is", "vocab": "32000", "mapping": "megatron-llama", "include": "*.weight", "exclude": "*.bias x*",
    "shard": "2GiB", "memory": "512MiB", "workers": "8", "config": "some dir",
}  # fmt: skip


def changed(field: Field, draft: Draft) -> Draft:
    if field.turned is not None:
        return field.turned(draft, 1)
    assert field.typed is not None
    return field.typed(draft, TYPED[field.name])


def parsed(draft: Draft, source: str = "ckpt") -> dict[str, Any]:
    """Return what the command line makes of the command of a draft."""
    words = shlex.split(command_of(draft, Target(source), decoded=True))
    assert words[0] == "shardscope"
    command = convert if words[1] == "convert" else reshard
    assert words[1] == draft.kind
    context = command.make_context(words[1], words[2:])
    return dict(context.params)


# R065
@pytest.mark.parametrize(
    "field", [item for item in OPTIONS if item.name != "renames"], ids=lambda item: item.name
)
def test_every_option_is_told_by_the_command(field: Field) -> None:
    draft = changed(field, Draft(out="out"))
    given = parsed(draft)

    assert draft != Draft(out="out")
    assert given["decode"] is True
    assert given["config"] == draft.config
    assert options_of(given) == draft.options


@pytest.mark.parametrize("field", WHAT, ids=lambda item: item.name)
def test_every_choice_of_a_topology_is_told_by_the_command(field: Field) -> None:
    draft = changed(field, Draft(kind="reshard", out="out"))
    if draft.kind == "convert":
        draft = replace(draft, kind="reshard")
    given = parsed(draft)
    with click.Context(reshard):
        aim = _aim(given, ())

    assert (aim.numbers, aim.layout, aim.cuts) == (draft.numbers, draft.layout, draft.cuts)
    assert replace(options_of(given), fuse=given["fuse"]) == draft.options


def test_all_choices_at_once_are_told_by_one_command(tmp_path: Path) -> None:
    rules = tmp_path / "it's rules.json"
    rules.write_text(RULES)
    draft = Draft(out="-out", renames_file=str(rules))
    for field in OPTIONS:
        draft = draft if field.name == "renames" else changed(field, draft)
    draft = replace(draft, options=replace(draft.options, renames=(RenameRule("b.", prefix="a."),)))
    given = parsed(draft, "-source")

    assert options_of(given) == draft.options
    assert given["path"] == "./-source"
    assert given["target"] == "./-out"


def test_what_becomes_of_an_old_output_and_of_a_run_that_ends_early_is_told() -> None:
    draft = Draft(out="out")
    names = ("replace", "discard_old", "allow_gap", "keep_staging", "resume")
    assert [parsed(draft)[name] for name in names] == [False] * 5
    by_name: dict[str, Any] = {field.name: field for field in WHERE}
    seen = []
    for field, expected in (
        ("standing", (True, False, False, False, False)),
        ("standing", (True, True, False, False, False)),
        ("gap", (True, True, True, False, False)),
        ("keep", (True, True, True, True, False)),
        ("resume", (True, True, True, True, True)),
    ):
        draft = changed(by_name[field], draft)
        seen.append((tuple(parsed(draft)[name] for name in names), expected))
    assert [found for found, _ in seen] == [expected for _, expected in seen]
    assert same_plan(draft, Draft(out="elsewhere"))
    assert not same_plan(draft, replace(draft, options=PlanOptions(dtype="BF16")))


@pytest.mark.parametrize("fields", [WHAT, WHERE, OPTIONS], ids=["what", "where", "options"])
def test_keys_are_single_letters_that_move_no_cursor_and_leave_nothing(fields: tuple[Field, ...]) -> None:
    keys = [field.key for field in fields]

    assert len(set(keys)) == len(keys)
    assert all(len(key) == 1 and key.islower() for key in keys)
    assert not set(keys) & set("hjklgnqy")


def test_turning_forth_and_back_comes_to_the_same() -> None:
    for fields, draft in ((WHAT, Draft(kind="reshard")), (WHERE, Draft(standing="keep")), (OPTIONS, Draft())):
        given: Any = fields
        for field in given:
            if field.turned is not None:
                assert field.turned(field.turned(draft, 1), -1) == draft, field.name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shard", "lots"), ("shard", "0"), ("shard", "9" * 5000), ("memory", "-1"), ("workers", "65"), ("workers", "0"),
        ("vocab", "٣"), ("vocab", "1.5"), ("vocab", "9" * 5000), ("tp", ""), ("tp", "two"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_says_what_would_be(name: str, text: str) -> None:
    field = next(item for item in (*WHAT, *OPTIONS) if item.name == name)
    assert field.typed is not None
    with pytest.raises(UntakenError, match="a number"):
        field.typed(Draft(), text)


def test_only_what_can_be_chosen_is_shown() -> None:
    assert [row.name for row in settings(WHAT, Draft(), Known())] == ["kind", "component"]
    assert len(settings(WHAT, Draft(kind="reshard"), Known())) == len(WHAT)
    shown = [row.name for row in settings(WHERE, Draft(), Known())]
    assert shown == ["out", "standing", "keep"]
    offered = settings(WHERE, Draft(), Known(resumable="3 files, 2.0 GiB"))
    assert offered[-1].name == "resume"
    assert "3 files, 2.0 GiB" in offered[-1].value
    assert settings(WHERE, Draft(standing="remove"), Known())[1].value[1] is Tone.CAUTION


@pytest.mark.parametrize(
    ("count", "word"),
    [
        (5_000_000_000, "5GB"),
        (256 << 20, "256MiB"),
        (1 << 40, "1TiB"),
        (1_500, "1500"),
        (2_000, "2KB"),
        (1, "1"),
    ],
)
def test_sizes_are_said_exactly(count: int, word: str) -> None:
    from shardscope.app.cli.planning import bytes_in

    assert size_word(count) == word
    assert bytes_in(word) == count


def test_a_decision_names_the_key_that_changes_it() -> None:
    here, there = keys_from(3), keys_from(4)

    assert here["--ties"] == "t"
    assert there["--ties"] == "3 t"
    assert here["--component"] == "1 m"
    assert Numbers(tp=2).ranks == 2

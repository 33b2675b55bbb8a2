"""Fixes from end to end: what is wrong, what is planned, what appears, and what never does."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.convert.plans import header as headers
from shardscope.engine.converting.fixing import Fix, check_idle, look_for_fix, plan_fix, prepare_fix
from shardscope.engine.converting.materializing import Converted, materialize
from shardscope.engine.converting.preparing import prepare
from shardscope.engine.converting.verify import verify
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.fix import Change, FixOptions
from shardscope.engine.model.manifest import MANIFEST_NAME, RUN_NAME
from shardscope.engine.model.plan import PlanOptions, RenameRule
from tests.mending.files import entry, index, metadata, numbers, read, same, save, write

FIXTURES = Path(__file__).parents[1] / "fixtures"
LLAMA = FIXTURES / "hf/llama_sharded/checkpoint"
ADAPTER = FIXTURES / "peft/lora_llama/checkpoint"
ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """A copy of a checkpoint of ten shards that transformers wrote."""
    return Path(shutil.copytree(LLAMA, tmp_path / "llama"))


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two shards with their index."""
    folder = tmp_path / "pair"
    save(folder / ONE, {"a": numbers(3), "b": numbers(2, 2)}, {"format": "pt", "shard": "1"})
    save(folder / TWO, {"c": numbers(5, begin=9)}, {"format": "pt", "shard": "2"})
    index(folder, {"a": ONE, "b": ONE, "c": TWO}, 48, made_by="hand")
    return folder


def fixed(source: Path, out: Path, **options: Any) -> Converted:
    """Fix, and make sure that the output holds what its manifest says, by itself, and that the source is as it was."""
    before = state(source)
    done = materialize(source, out, made(source, **options).prepared, confirm=lambda _: True)
    assert state(source) == before
    assert verify(out).same
    assert not {path.stat().st_ino for path in out.iterdir()} & {
        path.stat().st_ino for path in source.rglob("*")
    }
    assert all(path.stat().st_nlink == 1 for path in out.iterdir())
    return done


def made(source: Path, **options: Any) -> Fix:
    return prepare_fix(source, FixOptions(**options))


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def blocked(fix: Fix) -> list[str]:
    return [item.code for item in fix.document.plan.blockers]


def refused(source: Path, **options: Any) -> str:
    with pytest.raises(Fault) as fault:
        made(source, **options)
    return fault.value.finding.code


def rows(fix: Fix, kind: str) -> list[tuple[str, str, str | None, str | None]]:
    return [
        (each.action, each.name, each.old, each.new) for each in fix.document.changes if each.kind == kind
    ]


def index_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "model.safetensors.index.json").read_text())
    return found


# index


def test_an_index_is_made_of_headers_and_no_shard_changes_by_a_byte(llama: Path, tmp_path: Path) -> None:
    want = index_of(llama)
    (llama / "model.safetensors.index.json").unlink()
    done = fixed(llama, tmp_path / "out")

    assert done.plan.fix is not None
    assert done.plan.fix.what == ("index",)
    assert index_of(tmp_path / "out")["weight_map"] == want["weight_map"]
    assert index_of(tmp_path / "out")["metadata"] == {"total_size": want["metadata"]["total_size"]}
    for name in sorted(set(want["weight_map"].values())):
        assert (tmp_path / "out" / name).read_bytes() == (LLAMA / name).read_bytes()
    assert (tmp_path / "out/config.json").read_bytes() == (LLAMA / "config.json").read_bytes()


def test_every_entry_that_is_wrong_is_a_row_with_old_and_new(pair: Path, tmp_path: Path) -> None:
    index(pair, {"a": TWO, "c": TWO, "gone": ONE}, 7, made_by="hand", total_parameters=99)
    fix = made(pair, what=("salvage", "index"))

    assert rows(fix, "index") == [
        ("changed", "a", TWO, ONE),
        ("added", "b", None, ONE),
        ("removed", "gone", ONE, None),
    ]
    assert rows(fix, "index metadata") == [
        ("removed", "total_parameters", "99", None),
        ("changed", "total_size", "7", "48"),
    ]
    assert [(item.name, item.code) for item in fix.document.lost] == [("gone", "index.tensor_missing")]
    assert set(fix.document.kept) == {ONE, TWO}

    materialize(pair, tmp_path / "out", fix.prepared, confirm=lambda _: True)
    assert index_of(tmp_path / "out") == {
        "metadata": {"made_by": "hand", "total_size": 48},
        "weight_map": {"a": ONE, "b": ONE, "c": TWO},
    }


def test_what_only_the_index_has_wrong_needs_no_salvage(pair: Path) -> None:
    index(pair, {"a": TWO, "b": ONE, "c": TWO}, 48)
    fix = made(pair)

    assert fix.document.what == ("index",)
    assert blocked(fix) == []
    assert all(item.mended for item in fix.document.found)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"weight_map": 5}', '{"weight_map": {"a": "x", "a": "y"}}']
)
def test_an_index_that_is_none_is_made_anew(text: str, pair: Path, tmp_path: Path) -> None:
    (pair / "model.safetensors.index.json").write_text(text)
    fixed(pair, tmp_path / "out")

    assert index_of(tmp_path / "out")["weight_map"] == {"a": ONE, "b": ONE, "c": TWO}


# R142
def test_an_index_that_leaves_the_folder_is_not_followed(pair: Path, tmp_path: Path) -> None:
    save(tmp_path / "elsewhere.safetensors", {"a": numbers(3, begin=50)})
    index(pair, {"a": "../elsewhere.safetensors", "b": ONE, "c": TWO}, 48)
    fixed(pair, tmp_path / "out", what=("index",))

    assert read(tmp_path / "out")["a"].tolist() == [1.0, 2.0, 3.0]


def test_files_that_are_not_of_the_set_stay_behind_and_are_named(pair: Path, tmp_path: Path) -> None:
    save(pair / "old.safetensors", {"a": numbers(3, begin=40)})
    fix = made(pair)

    assert [(each.name, each.action) for each in fix.document.changes] == [("old.safetensors", "removed")]
    assert "other files" in {item.what for item in fix.document.plan.left_out}
    materialize(pair, tmp_path / "out", fix.prepared, confirm=lambda _: True)
    assert read(tmp_path / "out")["a"].tolist() == [1.0, 2.0, 3.0]
    assert not (tmp_path / "out/old.safetensors").exists()


# copies of a tensor


def test_copies_are_written_once_where_the_index_sends_a_loader(pair: Path, tmp_path: Path) -> None:
    save(pair / TWO, {"a": numbers(3, begin=70), "c": numbers(5, begin=9)})
    done = fixed(pair, tmp_path / "out", what=("index",))

    assert read(tmp_path / "out")["a"].tolist() == [1.0, 2.0, 3.0]
    assert done.manifest.fix == done.plan.fix


def test_copies_between_which_nothing_decides_are_compared_before_anything_is_written(
    pair: Path, tmp_path: Path
) -> None:
    (pair / "model.safetensors.index.json").unlink()
    save(pair / TWO, {"a": numbers(3), "c": numbers(5)})
    fixed(pair, tmp_path / "out")
    assert sorted(read(tmp_path / "out")) == ["a", "b", "c"]

    save(pair / TWO, {"a": numbers(3, begin=1), "c": numbers(5)})
    with pytest.raises(Fault) as fault:
        materialize(pair, tmp_path / "other", made(pair).prepared, confirm=lambda _: True)
    assert fault.value.finding.code == "convert.copies_differ"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pair"]

    save(pair / TWO, {"a": numbers(4), "c": numbers(5)})
    assert blocked(made(pair)) == ["fix.copies_unlike"]


def test_of_several_sets_none_is_picked(tmp_path: Path) -> None:
    source = tmp_path / "two"
    save(source / "model.safetensors", {"a": numbers(3)}, {"format": "pt"})
    save(source / "model.fp16.safetensors", {"a": numbers(3, dtype="<f2")})

    assert refused(source) == "fix.several_sets"
    assert refused(source, files=("nothing*",)) == "fix.no_match"
    done = fixed(
        source, tmp_path / "out", files=("model.fp16.*",), what=("metadata",), set=(("format", "pt"),)
    )
    assert [file.name for file in done.plan.files] == ["model.fp16.safetensors"]
    assert read(tmp_path / "out")["a"].dtype == "float16"


def test_a_file_that_loaders_take_before_the_index_is_another_set(pair: Path, tmp_path: Path) -> None:
    save(pair / "model.safetensors", {"a": numbers(3, begin=60)})

    assert refused(pair) == "fix.several_sets"
    done = fixed(pair, tmp_path / "out", files=("model-0*",), what=("merge",))
    assert sorted(item.name for item in done.plan.files[0].tensors) == ["a", "b", "c"]
    assert read(tmp_path / "out")["a"].tolist() == [1.0, 2.0, 3.0]


def test_an_adapter_beside_a_model_is_chosen_by_its_name(tmp_path: Path) -> None:
    source = Path(shutil.copytree(ADAPTER, tmp_path / "both"))
    save(source / "model.safetensors", {"a": numbers(3)}, {"format": "pt"})

    assert refused(source) == "fix.several_sets"
    done = fixed(source, tmp_path / "out", files=("adapter_*",), what=("metadata",), set=(("run", "1"),))
    assert [file.name for file in done.plan.files] == ["adapter_model.safetensors"]


# salvage


def test_of_a_file_that_was_cut_off_everything_whole_is_saved_and_the_rest_is_named(
    llama: Path, tmp_path: Path
) -> None:
    shard = llama / "model-00005-of-00010.safetensors"
    os.truncate(shard, shard.stat().st_size - 2_000)
    fix = made(llama)

    assert blocked(fix) == ["fix.damaged"]
    assert fix.document.plan.blockers[0].params["count"] == 1
    with pytest.raises(Fault) as fault:
        materialize(llama, tmp_path / "out", fix.prepared, confirm=lambda _: True)
    assert fault.value.finding.code == "fix.damaged"
    assert not (tmp_path / "out").exists()

    done = fixed(llama, tmp_path / "out", what=("salvage",))
    gone = "model.layers.1.self_attn.q_proj.weight"
    want = {name: value for name, value in read(LLAMA).items() if name != gone}
    assert same(read(tmp_path / "out"), want)
    assert done.manifest.fix is not None
    assert [(item.name, item.bytes, item.present) for item in done.manifest.fix.lost] == [(gone, 4096, 2096)]
    assert gone not in index_of(tmp_path / "out")["weight_map"]


def test_what_was_in_files_that_are_missing_or_no_files_at_all_is_named_by_the_index(
    llama: Path, tmp_path: Path
) -> None:
    (llama / "model-00003-of-00010.safetensors").unlink()
    (llama / "model-00009-of-00010.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    want = {
        name: code
        for name, file in index_of(LLAMA)["weight_map"].items()
        for number, code in (("00003", "index.shard_missing"), ("00009", "index.shard_unreadable"))
        if number in file
    }
    done = fixed(llama, tmp_path / "out", what=("salvage",))

    assert done.plan.fix is not None
    assert {item.name: item.code for item in done.plan.fix.lost} == want
    assert [file.name for file in done.plan.files] == [
        f"model-{number:05d}-of-00008.safetensors" for number in range(1, 9)
    ]
    assert same(read(tmp_path / "out"), {k: v for k, v in read(LLAMA).items() if k not in want})


def test_without_an_index_a_missing_file_is_lost_without_names(pair: Path, tmp_path: Path) -> None:
    (pair / "model.safetensors.index.json").unlink()
    (pair / ONE).unlink()
    assert blocked(made(pair)) == ["fix.damaged"]

    done = fixed(pair, tmp_path / "out", what=("salvage",))
    assert done.plan.fix is not None
    assert [(item.name, item.file) for item in done.plan.fix.lost] == [(None, ONE)]
    assert [file.name for file in done.plan.files] == ["model.safetensors"]


def test_dropping_what_is_damaged_by_name_is_no_loss(llama: Path, tmp_path: Path) -> None:
    shard = llama / "model-00005-of-00010.safetensors"
    os.truncate(shard, shard.stat().st_size - 2_000)
    done = fixed(llama, tmp_path / "out", what=("drop",), drop=("*.1.self_attn.q_proj.weight",))

    assert done.plan.fix is not None
    assert done.plan.fix.lost == ()
    assert len(read(tmp_path / "out")) == 20
    fix = made(llama, what=("drop",), drop=("*.1.self_attn.q_proj.weight",))
    assert [(item.blocker.code, item.mended) for item in fix.document.found] == [("header.truncated", True)]


def test_a_download_that_stopped_is_saved_under_whatever_name_it_has(tmp_path: Path) -> None:
    whole = save(tmp_path / "whole.safetensors", {"a": numbers(3), "b": numbers(4)})
    part = tmp_path / "model.safetensors.incomplete"
    part.write_bytes(whole.read_bytes()[:-8])
    done = fixed(part, tmp_path / "out", what=("salvage",))

    assert [file.name for file in done.plan.files] == ["model.safetensors"]
    assert same(read(tmp_path / "out"), {"a": numbers(3)})


def test_one_shard_alone_asks_for_no_others_and_is_numbered_no_more(tmp_path: Path) -> None:
    shard = LLAMA / "model-00005-of-00010.safetensors"
    done = fixed(shard, tmp_path / "out", what=("metadata",), set=(("run", "17"),))

    assert [file.name for file in done.plan.files] == ["model.safetensors"]
    assert not list((tmp_path / "out").glob("*.index.json"))
    assert metadata(tmp_path / "out/model.safetensors") == {"format": "pt", "run": "17"}


# headers


def test_a_header_is_laid_out_as_the_formats_own_library_does_it(tmp_path: Path) -> None:
    source = tmp_path / "gap"
    half = numbers(3, dtype="<f2")
    data = b"\xee" * 4 + half.tobytes() + b"\xee" * 6 + numbers(2).tobytes() + b"\xee" * 3
    header = {
        "__metadata__": {"format": "pt"},
        "b": entry(16, 24),
        "a": {"dtype": "F16", "shape": [3], "data_offsets": [4, 10]},
        "e": {"dtype": "I8", "shape": [0], "data_offsets": [5, 5]},
    }
    write(source / "model.safetensors", header, data)
    assert blocked(made(source, what=("metadata",), set=(("x", "y"),))) == ["fix.unasked"]
    fixed(source, tmp_path / "out")

    want = save(
        tmp_path / "want.safetensors",
        {"a": half, "b": numbers(2), "e": numbers(0, dtype="i1")},
        {"format": "pt"},
    )
    assert (tmp_path / "out/model.safetensors").read_bytes() == want.read_bytes()


def test_what_is_laid_out_so_already_stays_and_nothing_is_to_do(pair: Path) -> None:
    fix = made(pair, what=("header",))

    assert set(fix.document.kept) == {ONE, TWO}
    assert fix.idle
    with pytest.raises(Fault) as fault:
        check_idle(fix)
    assert fault.value.finding.code == "fix.nothing_to_do"


# split and merge


def test_what_is_split_and_merged_again_is_the_same_to_the_last_byte(llama: Path, tmp_path: Path) -> None:
    want = read(LLAMA)
    split = fixed(llama, tmp_path / "split", what=("split",), max_shard_bytes=20_000)
    assert len(split.plan.files) == 5
    assert all(sum(item.bytes for item in file.tensors) <= 20_000 for file in split.plan.files)
    assert index_of(tmp_path / "split")["metadata"] == index_of(LLAMA)["metadata"]
    assert same(read(tmp_path / "split"), want)

    fixed(tmp_path / "split", tmp_path / "merged", what=("merge",))
    whole = save(tmp_path / "whole.safetensors", want, {"format": "pt"})
    assert (tmp_path / "merged/model.safetensors").read_bytes() == whole.read_bytes()
    assert not list((tmp_path / "merged").glob("*.index.json"))
    assert (tmp_path / "merged/config.json").is_file()


def test_what_files_that_become_one_say_differently_is_left_out_and_shown(pair: Path, tmp_path: Path) -> None:
    fix = made(pair, what=("merge",))

    assert rows(fix, "metadata") == [("removed", "shard", "1 | 2", None)]
    assert rows(fix, "index") == [("removed", "model.safetensors.index.json", "3 tensors", None)]
    fixed(pair, tmp_path / "out", what=("merge", "metadata"), set=(("shard", "both"),))
    assert metadata(tmp_path / "out/model.safetensors") == {"format": "pt", "shard": "both"}


# names


def test_tensors_are_dropped_and_renamed_in_one_run_in_the_stated_order(pair: Path, tmp_path: Path) -> None:
    rules = (RenameRule(to="x", name="c"), RenameRule(to="y.{1}", pattern="x**"))
    done = fixed(pair, tmp_path / "out", what=("rename", "drop"), drop=("b",), renames=rules)

    assert done.plan.fix is not None
    assert done.plan.fix.what == ("drop", "rename")
    assert same(read(tmp_path / "out"), {"a": numbers(3), "y.": numbers(5, begin=9)})
    assert index_of(tmp_path / "out")["weight_map"] == {"a": ONE, "y.": TWO}
    assert verify(tmp_path / "out", pair).same


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"what": ("rename",), "renames": (RenameRule(to="b", name="a"),)}, "convert.rename_collision"),
        ({"what": ("rename",), "renames": (RenameRule(to="b", name="nobody"),)}, "fix.no_match"),
        ({"what": ("rename",), "renames": (RenameRule(to="", prefix="model."),)}, "fix.no_match"),
        ({"what": ("rename",), "renames": (RenameRule(to="__metadata__", name="a"),)}, "convert.header_name"),
        ({"what": ("rename",), "renames": (RenameRule(to="x"),)}, "convert.rename_rule"),
        ({"what": ("drop",), "drop": ("*",)}, "fix.nothing_left"),
        ({"what": ("drop",), "drop": ("a", "nobody")}, "fix.no_match"),
        ({"what": ("metadata",), "unset": ("nobody",)}, "fix.no_match"),
        ({"what": ("split", "merge")}, "fix.operations"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_code(options: dict[str, Any], code: str, pair: Path) -> None:
    assert refused(pair, **options) == code


def test_one_of_two_tied_tensors_is_not_dropped_unasked(tmp_path: Path) -> None:
    source = tmp_path / "tied"
    tensors = {"model.embed_tokens.weight": numbers(4, 2), "norm": numbers(2)}
    save(source / "model.safetensors", tensors, {"lm_head.weight": "model.embed_tokens.weight"})
    drop = {"what": ("drop",), "drop": ("*embed*",)}

    assert refused(source, **drop) == "fix.tied"
    assert blocked(made(source, **drop, untie=True)) == []
    save(source / "model.safetensors", tensors)
    assert blocked(made(source, **drop)) == []
    (source / "config.json").write_text('{"tie_word_embeddings": true}')
    assert refused(source, **drop) == "fix.tied"
    save(source / "model.safetensors", tensors | {"lm_head.weight": numbers(4, 2)})
    assert blocked(made(source, **drop)) == []


def test_a_tie_in_the_metadata_follows_its_tensor(tmp_path: Path) -> None:
    source = tmp_path / "tied"
    save(source / "model.safetensors", {"m.embed": numbers(2)}, {"head": "m.embed", "note": "m.embed.more"})
    fixed(source, tmp_path / "out", what=("rename",), renames=(RenameRule(to="", prefix="m."),))

    assert metadata(tmp_path / "out/model.safetensors") == {"head": "embed", "note": "m.embed.more"}


# metadata


def test_metadata_are_stripped_unset_and_set_in_that_order(pair: Path, tmp_path: Path) -> None:
    hostile = "[red]\x1b[2J\u202e\n" + "long" * 100
    done = fixed(
        pair, tmp_path / "out", what=("metadata",), strip=True, set=(("note", hostile), ("shard", "x"))
    )

    for name in (ONE, TWO):
        assert metadata(tmp_path / "out" / name) == {"format": "pt", "note": hostile, "shard": "x"}
    assert same(read(tmp_path / "out"), read(pair))
    assert done.plan.files[0].kept is None

    fixed(pair, tmp_path / "bare", what=("metadata",), unset=("format", "shard"))
    assert metadata(tmp_path / "bare" / ONE) is None


def test_a_file_whose_metadata_are_no_text_is_read_past_them(tmp_path: Path) -> None:
    source = tmp_path / "odd"
    header = {"__metadata__": {"format": "pt", "step": 5}, "a": entry(0, 12)}
    write(source / "model.safetensors", header, numbers(3).tobytes())
    assert blocked(made(source)) == ["fix.unasked"]

    fix = made(source, what=("metadata",), set=(("step", "5"),))
    assert Change(
        "metadata", "metadata", "removed", "step", "model.safetensors", "5", None, "it is no text"
    ) in (fix.document.changes)
    materialize(source, tmp_path / "out", fix.prepared, confirm=lambda _: True)
    assert metadata(tmp_path / "out/model.safetensors") == {"format": "pt", "step": "5"}
    assert same(read(tmp_path / "out"), {"a": numbers(3)})


def test_an_adapter_keeps_its_names_and_its_one_file(tmp_path: Path) -> None:
    done = fixed(ADAPTER, tmp_path / "out", what=("metadata",), set=(("run", "17"),))

    assert [file.name for file in done.plan.files] == ["adapter_model.safetensors"]
    assert same(read(tmp_path / "out"), read(ADAPTER))
    assert (tmp_path / "out/adapter_config.json").is_file()
    assert refused(ADAPTER, what=("split",)) == "fix.adapter_split"


# what is not fixed


@pytest.mark.parametrize(
    "source",
    ["dcp/fsdp2_flat_world2", "hf/bin_sharded", "hf/vllm_sharded_state_tp2", "deepspeed/zero3-w3-fp32"],
)
def test_nothing_else_is_fixed(source: str) -> None:
    assert refused(FIXTURES / source / "checkpoint") == "fix.other_format"


# staging


def test_one_look_serves_many_plans_and_planning_reads_nothing(pair: Path, tmp_path: Path) -> None:
    look = look_for_fix(pair)
    shutil.rmtree(pair)

    first = plan_fix(look, FixOptions(what=("merge",)))
    second = plan_fix(look, FixOptions(what=("drop",), drop=("a",)))
    assert [file.name for file in first.document.plan.files] == ["model.safetensors"]
    assert [file.name for file in second.document.plan.files] == [ONE, TWO]
    assert plan_fix(look, FixOptions(what=("merge",))).document == first.document


def test_two_runs_are_equal_and_a_plan_of_a_fix_is_none_of_a_conversion(pair: Path, tmp_path: Path) -> None:
    done = [fixed(pair, tmp_path / name, what=("merge",)) for name in ("one", "two")]
    one, two = (
        {p.name: p.read_bytes() for p in (tmp_path / n).iterdir() if p.name != RUN_NAME}
        for n in ("one", "two")
    )

    assert one == two
    assert MANIFEST_NAME in one
    with pytest.raises(Fault) as fault:
        prepare(pair, PlanOptions(), plan=done[0].plan)
    assert fault.value.finding.code == "plan.identity"


# R110
def test_a_source_that_changes_after_the_look_is_refused(pair: Path, tmp_path: Path) -> None:
    fix = made(pair, what=("merge",))
    os.utime(pair / TWO, ns=(1, 1))

    with pytest.raises(Fault) as fault:
        materialize(pair, tmp_path / "out", fix.prepared, confirm=lambda _: True)
    assert fault.value.finding.code == "source.changed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pair"]


KILLED = """
import os, signal, sys
from shardscope.engine import FixOptions, materialize, prepare_fix
from shardscope.engine.converting import making, materializing

step = sys.argv[3]
setattr(making if step == 'verify_staged' else materializing, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
fix = prepare_fix(sys.argv[1], FixOptions(what=("merge",)))
materialize(sys.argv[1], sys.argv[2], fix.prepared, confirm=lambda _: True)
"""


# R111 R113
@pytest.mark.parametrize("step", ["verify_staged", "promote"])
def test_a_run_that_is_killed_leaves_nothing_in_place_and_is_gone_on_with(
    step: str, pair: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = subprocess.run([sys.executable, "-c", KILLED, pair, out, step], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not out.exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".out.shardscope-staging-")]

    done = materialize(pair, out, made(pair, what=("merge",)).prepared, confirm=lambda _: True, resume=True)
    assert done.run.resumed_bytes == done.plan.files[0].bytes
    assert same(read(out), read(pair))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pair"]


# R088
def test_an_output_whose_metadata_are_not_those_of_the_plan_is_not_promoted(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shardscope.engine.convert.jobs import tasks

    monkeypatch.setattr(tasks, "canonical", lambda tensors, _: headers.canonical(tensors, {"format": "xx"}))
    with pytest.raises(Fault) as fault:
        materialize(
            pair,
            tmp_path / "out",
            made(pair, what=("metadata",), set=(("shard", "x"),)).prepared,
            confirm=lambda _: True,
        )
    assert fault.value.finding.code in ("verify.metadata", "map.incomplete", "stage.incomplete")
    assert not (tmp_path / "out").exists()


def test_memory_of_a_comparison_of_every_byte_does_not_grow_with_the_tensors(tmp_path: Path) -> None:
    source = tmp_path / "many"
    save(source / "model.safetensors", {f"t{number}": numbers(64) for number in range(100)}, {"format": "pt"})
    code = (
        "import sys; from shardscope.engine import *; "
        "fix = prepare_fix(sys.argv[1], FixOptions(what=('drop',), drop=('t0',))); "
        "done = materialize(sys.argv[1], sys.argv[2], fix.prepared, confirm=lambda _: True); "
        "print(done.run.peak_rss_bytes, done.plan.estimates.peak_ram_bytes.bytes)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, source, tmp_path / "out"], check=True, capture_output=True, text=True
    )
    peak, planned = map(int, said.stdout.split())
    assert peak <= planned

"""What is proven before anything is written: bundles that are wrong in one place each are refused by a code, and nothing appears.

All of it goes through the public API: `prepare`, then `materialize`.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file

from shardscope.engine import materialize, prepare
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.plan import PlanOptions, RenameRule
from tests.bundles import FILE, Bundled, fragments, shard

EMBED, UP, QKV, NORM, HEAD = (
    "model.embed.weight",
    "model.up.weight",
    "model.qkv.weight",
    "model.norm.weight",
    "lm_head.weight",
)
Break = Callable[[Bundled], object]


def converted(source: Path, **options: Any) -> Converted:
    prepared = prepare(source, PlanOptions(**options))
    return materialize(source, source.parent / "out", prepared, confirm=lambda _: True)


def refusal(tmp_path: Path, change: Break, **options: Any) -> Finding:
    """Return what a bundle with one change is refused for; nothing appears beside it."""
    bundle = Bundled()
    change(bundle)
    source = bundle.write(tmp_path / "in")
    with pytest.raises(Fault) as caught:
        converted(source, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    return caught.value.finding


# R084
def test_a_sound_bundle_becomes_what_it_says(tmp_path: Path) -> None:
    bundle = Bundled()
    done = converted(bundle.write(tmp_path / "in"))
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found.keys() == bundle.model.keys()
    for name, value in bundle.model.items():
        assert np.array_equal(found[name], value), name
    assert [(alias.name, alias.tensor) for alias in done.plan.aliases] == [(HEAD, EMBED)]
    assert {item.result for item in done.manifest.validation} <= {"held", "not recorded"}


def test_ties_can_be_written_under_every_name(tmp_path: Path) -> None:
    bundle = Bundled()
    converted(bundle.write(tmp_path / "in"), ties="both")
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert np.array_equal(found[HEAD], bundle.model[EMBED])


# --- coverage of shapes and ranges


def _runs(name: str, number: int, *runs: tuple[int, int, int], padding: int | None = None) -> Break:
    def change(bundle: Bundled) -> None:
        old = bundle.tensor(name)["shards"][number]
        kept = old["padding"] if padding is None else padding
        bundle.tensor(name)["shards"][number] = shard(number, old["shape"], list(runs), kept)

    return change


def _map(name: str, **changes: Any) -> Break:
    return lambda bundle: bundle.tensor(name)["map"].update(changes)


def _boxes(*boxes: tuple[list[int], list[int]]) -> Break:
    def change(bundle: Bundled) -> None:
        made = [{"offsets": offsets, "sizes": sizes} for offsets, sizes in boxes]
        bundle.tensor(UP)["map"] = {"node": "block", "axes": ["tp"], "boxes": made}

    return change


# R078
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (_boxes(([0, 0], [8, 3]), ([0, 3], [7, 3])), "map.uncovered"),
        (_runs(QKV, 1, (12, 0, 12), (32, 12, 4), padding=16), "map.uncovered"),
        (_runs(QKV, 0, (0, 0, 12), (24, 12, 8), (36, 16, 8)), "map.destination_collision"),
        (_runs(QKV, 0, (0, 0, 12), (24, 12, 8), (41, 20, 8)), "map.out_of_bounds"),
        (_runs(QKV, 0, (0, 0, 12), (24, 12, 8), (36, 21, 8)), "map.out_of_bounds"),
        (_runs(QKV, 0, (-1, 0, 12), (24, 12, 8), (36, 20, 8)), "map.out_of_bounds"),
        (_runs(QKV, 0, (12, 0, 12), (24, 12, 8), (36, 20, 8)), "map.uncovered"),
        (_runs(QKV, 1, (12, 0, 12), (32, 12, 4), (44, 16, 4), (0, 20, 12), padding=0), "map.holders"),
        (_boxes(([0, 0], [8, 3]), ([0, 4], [8, 3])), "map.invalid"),
        (_map(UP, widths=[3, 4]), "map.invalid"),
        (_map(UP, dim=2), "map.invalid"),
        (_map(UP, axis="pp"), "map.invalid"),
        (lambda b: b.tensor(QKV)["shards"][0]["pieces"][0].update(holders=[0, 1]), "map.holders"),
        (lambda b: b.tensor(QKV)["shards"][0]["pieces"][0].update(holders=[1]), "map.holders_self"),
        (lambda b: b.tensor(QKV)["shards"][0]["pieces"][0].update(holders=[0, 7]), "map.holders_unknown"),
        (lambda b: b.tensor(QKV)["shards"][0]["pieces"][0].update(scale=[0, 1]), "map.scale_zero"),
        (lambda b: b.tensor(QKV)["shards"][0]["pieces"][0].update(shape=[3, 4]), "map.malformed"),
        (lambda b: b.tensor(QKV)["shards"].append(shard(1, [7, 4], [])), "map.rank_labels"),
        (lambda b: b.tensor(QKV).update(map={"node": "replicate"}, mesh="dense"), "map.invalid"),
        (lambda b: b.tensor(QKV).update(shape=[1 << 40, 1 << 40]), "map.unsupported_size"),
    ],
)
def test_holes_overlaps_and_ranges_beyond_the_tensor_are_refused(
    change: Break, check: str, tmp_path: Path
) -> None:
    finding = refusal(tmp_path, change)
    assert finding.code == "bundle.unsound"
    assert str(finding.params["check"]).startswith(check)


# R078 R082
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda b: b.tensor(UP)["fragments"][1].update(rank=2), "has a fragment and no place in the map"),
        (lambda b: b.tensor(UP)["fragments"][1].update(rank=0), "has two fragments"),
        (lambda b: b.tensor(UP)["fragments"].pop(), "has no fragment"),
        (lambda b: b.tensor(UP)["fragments"].clear(), "has no fragment"),
        (
            lambda b: b.tensor(UP)["fragments"].append({"rank": 2, "file": "rank0.safetensors", "key": "up"}),
            "has a fragment and no place in the map",
        ),
        (
            lambda b: b.tensor(UP).update(replicas=[{"rank": 5, "file": "rank0.safetensors", "key": "up"}]),
            "has a fragment and no place in the map",
        ),
        (
            lambda b: b.document["meshes"]["dense"].update(ranks=[4, 5]),
            "has a fragment and no place in the map",
        ),
    ],
)
def test_the_ranks_of_a_map_and_its_fragments_are_the_same(
    change: Break, problem: str, tmp_path: Path
) -> None:
    finding = refusal(tmp_path, change)
    assert (finding.code, finding.params["problem"]) == ("bundle.rank", problem)


# R082
@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.document["meshes"].clear(),
        lambda b: b.tensor(UP).update(mesh="expert"),
        lambda b: b.document["meshes"]["dense"].update(axes=[{"name": "tp", "size": 3}]),
        lambda b: b.document["meshes"]["dense"].update(axes=[{"name": "dp", "size": 2}]),
        lambda b: b.document["meshes"]["dense"].update(ranks=[0, 0]),
        lambda b: b.document["meshes"]["dense"].update(ranks=[0, 1, 2]),
        lambda b: b.document["meshes"]["dense"].update(
            axes=[{"name": "tp", "size": 2}, {"name": "dp", "size": 1 << 40}]
        ),
    ],
)
def test_a_topology_that_does_not_fit_is_refused(change: Break, tmp_path: Path) -> None:
    assert refusal(tmp_path, change).code == "bundle.unsound"


# R078
def test_shards_of_another_shape_than_the_map_says_are_refused(tmp_path: Path) -> None:
    def exchanged(bundle: Bundled) -> None:
        one, two = bundle.tensor(QKV)["fragments"]
        one["file"], two["file"] = two["file"], one["file"]

    finding = refusal(tmp_path, exchanged)
    assert finding.code == "bundle.shape"
    assert (finding.params["found"], finding.params["expected"]) == ("8 x 4", "7 x 4")


def test_shards_of_another_type_are_refused(tmp_path: Path) -> None:
    def halved(bundle: Bundled) -> None:
        held = bundle.files["rank0.safetensors"]
        held["up"] = held["up"].astype(np.float16)

    finding = refusal(tmp_path, halved)
    assert finding.code == "bundle.dtype"
    assert (finding.params["found"], finding.params["expected"]) == ("F16", "F32")


def test_a_type_that_safetensors_does_not_have_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, lambda b: b.tensor(UP).update(dtype="complex256")).code == "convert.tensor"


# --- replicas


# R079
def test_ranks_that_should_hold_the_same_and_do_not_are_refused(tmp_path: Path) -> None:
    def drifted(bundle: Bundled) -> None:
        norm = bundle.files["parts/rank1.safetensors"]["norm"].copy()
        norm[3] = np.nextafter(norm[3], np.float32(9))
        bundle.files["parts/rank1.safetensors"]["norm"] = norm

    finding = refusal(tmp_path, drifted)
    assert finding.code == "map.replicas_disagree"


# R079
def test_boxes_that_overlap_hold_the_same_where_they_do(tmp_path: Path) -> None:
    def overlapping(bundle: Bundled) -> None:
        _boxes(([0, 0], [8, 4]), ([0, 3], [8, 3]))(bundle)
        bundle.files["rank0.safetensors"]["up"] = np.ascontiguousarray(bundle.model[UP][:, :4])

    def wrong(bundle: Bundled) -> None:
        overlapping(bundle)
        bundle.files["rank0.safetensors"]["up"][5, 3] += 1

    bundle = Bundled()
    overlapping(bundle)
    converted(bundle.write(tmp_path / "sound" / "in"))
    found = load_file(tmp_path / "sound" / "out" / "model.safetensors")
    assert np.array_equal(found[UP], bundle.model[UP])
    (tmp_path / "wrong").mkdir()
    assert refusal(tmp_path / "wrong", wrong).code == "map.replicas_disagree"


# R079
def test_further_copies_of_a_fragment_are_compared(tmp_path: Path) -> None:
    def copied(bundle: Bundled, by: float) -> None:
        bundle.files["copy.safetensors"] = {"up": bundle.files["rank0.safetensors"]["up"] + np.float32(by)}
        bundle.tensor(UP)["replicas"] = [{"rank": 0, "file": "copy.safetensors", "key": "up"}]

    bundle = Bundled()
    copied(bundle, 0)
    (tmp_path / "sound").mkdir()
    converted(bundle.write(tmp_path / "sound" / "in"))
    (tmp_path / "wrong").mkdir()
    finding = refusal(tmp_path / "wrong", lambda b: copied(b, 1))
    assert finding.code == "convert.copies_differ"
    assert {finding.params["first"], finding.params["second"]} == {"rank0.safetensors", "copy.safetensors"}


# --- padding


# R080
@pytest.mark.parametrize(
    ("change", "code"),
    [
        # Between rows of the shard, though every count is right.
        (_runs(QKV, 1, (12, 0, 12), (32, 16, 4), (44, 20, 4)), "bundle.padding"),
        # Before them.
        (_runs(QKV, 1, (12, 12, 12), (32, 24, 4), (44, 28, 4)), "bundle.padding"),
        # In the middle of a row.
        (_runs(QKV, 1, (12, 0, 12), (32, 12, 2), (34, 16, 2), (44, 20, 4)), "bundle.padding"),
        # More or less than declared.
        (_runs(QKV, 1, (12, 0, 12), (32, 12, 4), (44, 16, 4), padding=8), "bundle.unsound"),
        (_runs(QKV, 1, (12, 0, 12), (32, 12, 4), (44, 16, 4), padding=0), "bundle.unsound"),
        (lambda b: b.tensor(EMBED)["map"]["of"].update(padded_size=9), "bundle.unsound"),
        (lambda b: b.tensor(EMBED)["map"]["of"].update(logical_size=11), "bundle.unsound"),
        (lambda b: b.tensor(EMBED).update(padded_shape=[9, 4]), "bundle.padding"),
        (lambda b: b.tensor(EMBED).update(padded_shape=[12]), "bundle.padding"),
    ],
)
def test_padding_lies_behind_the_elements_and_nowhere_else(change: Break, code: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, change).code == code


# R080
def test_padding_never_reaches_the_output(tmp_path: Path) -> None:
    bundle = Bundled()
    bundle.files["parts/rank1.safetensors"]["embed"] = bundle.files["parts/rank1.safetensors"]["embed"].copy()
    bundle.files["parts/rank1.safetensors"]["embed"][4:] = 77
    bundle.files["parts/rank1.safetensors"]["qkv"][5:] = 77
    converted(bundle.write(tmp_path / "in"))
    for value in load_file(tmp_path / "out" / "model.safetensors").values():
        assert 77 not in value


# --- ties


# R081
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda b: b.tensor(HEAD).update(alias_of="gone"), "bundle.alias"),
        (lambda b: b.tensor(HEAD).update(alias_of=HEAD), "bundle.alias"),
        (lambda b: b.tensor(UP).update(alias_of=HEAD), "bundle.alias"),
        (lambda b: b.tensor(HEAD).update(shape=[4, 10]), "bundle.alias"),
        (lambda b: b.tensor(HEAD).update(dtype="F16"), "bundle.alias"),
        (
            lambda b: b.document["tensors"].update({HEAD: {**b.tensor(EMBED)}}),
            "bundle.tie_undeclared",
        ),
    ],
)
def test_ties_that_cannot_be_and_ties_that_nothing_says_are_refused(
    change: Break, code: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, change).code == code


def _apart(bundle: Bundled, by: float) -> None:
    """Store the tied tensor in places of its own."""
    for file, held in bundle.files.items():
        held["head"] = held["embed"] + np.float32(by if file == "rank0.safetensors" else 0)
    bundle.document["tensors"][HEAD] = {
        **{key: value for key, value in bundle.tensor(EMBED).items() if key != "padded_shape"},
        "alias_of": EMBED,
        "fragments": fragments("head"),
    }


# R081
@pytest.mark.parametrize(
    "renames", [(), (RenameRule(to="", prefix="model."),), (RenameRule(to="x.", prefix=""),)]
)
def test_ties_in_places_of_their_own_hold_the_same_bytes(
    renames: tuple[RenameRule, ...], tmp_path: Path
) -> None:
    bundle = Bundled()
    _apart(bundle, 0)
    (tmp_path / "sound").mkdir()
    converted(bundle.write(tmp_path / "sound" / "in"), renames=renames)
    (tmp_path / "wrong").mkdir()
    finding = refusal(tmp_path / "wrong", lambda b: _apart(b, 1), renames=renames)
    assert finding.code == "convert.copies_differ"
    assert finding.params["tensor"] == HEAD


# --- files


@pytest.mark.parametrize(
    "file",
    [
        "../rank0.safetensors",
        "parts/../rank0.safetensors",
        "/etc/passwd",
        "./rank0.safetensors",
        "parts//rank1.safetensors",
        "parts/",
        "..",
        "..\\rank0.safetensors",
        "rank0.safetensors\0",
    ],
)
def test_a_path_out_of_the_folder_is_refused(file: str, tmp_path: Path) -> None:
    finding = refusal(tmp_path, lambda b: b.tensor(UP)["fragments"][0].update(file=file))
    assert finding.code == "bundle.path_unsafe"


@pytest.mark.parametrize("file", ["gone.safetensors", "parts", FILE + "x", "é.safetensors", "\ud800"])
def test_a_file_that_is_not_here_is_refused(file: str, tmp_path: Path) -> None:
    finding = refusal(tmp_path, lambda b: b.tensor(UP)["fragments"][0].update(file=file))
    assert finding.code in ("bundle.file_missing", "json.lone_surrogate")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    source = Bundled().write(tmp_path / "a" / "in")
    (source / "rank0.safetensors").rename(tmp_path / "a" / "elsewhere.safetensors")
    os.symlink("../elsewhere.safetensors", source / "rank0.safetensors")
    with pytest.raises(Fault) as caught:
        converted(source)
    assert caught.value.finding.code == "bundle.file_missing"
    assert not (tmp_path / "a" / "out").exists()


def test_an_entry_that_is_not_there_is_refused(tmp_path: Path) -> None:
    finding = refusal(tmp_path, lambda b: b.tensor(UP)["fragments"][0].update(key="down"))
    assert (finding.code, finding.params["key"]) == ("bundle.key_missing", "down")


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    source = Bundled().write(tmp_path / "in")
    with (source / "rank0.safetensors").open("r+b") as file:
        file.truncate((source / "rank0.safetensors").stat().st_size - 4)
    with pytest.raises(Fault) as caught:
        converted(source)
    assert caught.value.finding.code == "header.truncated"
    assert not (tmp_path / "out").exists()


def test_one_that_needs_more_work_than_any_map_is_refused_in_time(tmp_path: Path) -> None:
    def many(bundle: Bundled) -> None:
        pieces = [(at, at, 1) for at in range(0, 200_000, 2)]
        bundle.tensor(QKV).update(shape=[200_000], shards=[shard(0, [200_000], pieces, 100_000)])

    began = time.process_time()
    assert refusal(tmp_path, many).code == "bundle.unsound"
    assert time.process_time() - began < 30


# --- the writer itself


def _tampered(prepared: Prepared, change: Callable[[LogicalTensor], LogicalTensor]) -> Prepared:
    found = tuple(change(tensor) if tensor.name == UP else tensor for tensor in prepared.catalogue.tensors)
    return msgspec.structs.replace(prepared, catalogue=Catalogue(found))


def _first(tensor: LogicalTensor, **changes: Any) -> LogicalTensor:
    fragment = msgspec.structs.replace(tensor.fragments[0], **changes)
    return msgspec.structs.replace(tensor, fragments=(fragment, *tensor.fragments[1:]))


# R084 R085
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda t: _first(t, offset=1 << 40), "convert.outside_record"),
        (lambda t: _first(t, shape=(8, 4)), "map.shard_size"),
        (lambda t: _first(t, label=9), "convert.fragment_missing"),
        (
            lambda t: _first(t, record=msgspec.structs.replace(t.fragments[0].record, file="/etc/passwd")),
            "convert.file_unclear",
        ),
        (
            lambda t: msgspec.structs.replace(t, map=msgspec.structs.replace(t.map, ranks=t.map.ranks[:1])),
            "convert.unsound",
        ),
    ],
)
def test_the_writer_takes_no_fragment_on_trust_and_opens_no_file_but_the_sources(
    change: Callable[[Any], LogicalTensor], code: str, tmp_path: Path
) -> None:
    source = Bundled().write(tmp_path / "in")
    prepared = _tampered(prepare(source, PlanOptions()), change)
    with pytest.raises(Fault) as caught:
        materialize(source, tmp_path / "out", prepared, confirm=lambda _: True)
    assert caught.value.finding.code == code
    assert [path.name for path in tmp_path.iterdir()] == ["in"]

"""Distributed checkpoints, decoded: every tensor by name, every chunk where its bytes are, every lie refused by its code."""

import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

from shardscope.engine.formats.decode import dcp_frames
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.engine.model.state import Presence
from tests.dcp_saves import Item, Kind, item_of, tensor_pickle, write_save
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES
from tests.parse import standins

DCP = FIXTURES / "dcp"
WHOLE = sorted(
    folder.name
    for folder in DCP.iterdir()
    if (folder / "expected.safetensors").exists() and list((folder / "checkpoint").glob("*.distcp"))
)


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DCP / name / "checkpoint", tmp_path / "checkpoint"))


def the(found: Found, code: str) -> Blocker:
    (item,) = (item for item in found.blockers if item.code == code)
    return item


def assert_equal(found: Found, fixture: Path, name: str = "expected") -> None:
    """Names, dtypes, shapes and every bit are those that the producer had in memory."""
    want = expected(fixture, name)
    got = {tensor.name: tensor for tensor in found.tensors}
    assert got.keys() == want.keys()
    for key, (dtype, shape, data) in want.items():
        assert (got[key].dtype, got[key].shape) == (dtype, shape), key
        assert value(found, got[key]) == data, key


@pytest.mark.parametrize("name", WHOLE)
def test_every_whole_save_is_listed_and_equal_bit_for_bit(name: str) -> None:
    found = decode(DCP / name / "checkpoint")
    assert not found.errors
    assert_equal(found, DCP / name)


# --- what the fixtures were damaged in


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("bad_hole", {"dcp.hole"}),
        ("bad_huge_size", {"dcp.tensor_size"}),
        ("bad_missing_rank_file", {"dcp.file_missing"}),
        ("bad_path_traversal", {"dcp.path_unsafe"}),
        ("bad_truncated_rank_file", {"dcp.item_range"}),
    ],
)
def test_damage_is_refused_by_its_code(name: str, codes: set[str]) -> None:  # R078
    found = decode(DCP / name / "checkpoint")
    assert found.errors == codes
    assert found.facts[0].confidence is Confidence.MEDIUM


def test_a_hole_is_named_to_the_element() -> None:
    params = the(decode(DCP / "bad_hole" / "checkpoint"), "dcp.hole").params
    assert (params["tensor"], params["missing"], params["total"]) == ("model.embed.weight", 65, 143)
    assert params["where"] == "6 to 11, 0 to 13"


def test_a_missing_file_says_which_tensors_lack_bytes() -> None:
    found = decode(DCP / "bad_missing_rank_file" / "checkpoint")
    params = the(found, "dcp.file_missing").params
    assert (params["first"], params["tensors"]) == ("__1_0.distcp", 11)
    assert found.named("model.gate").note is None  # its one row is in the other file
    assert found.named("model.up.weight").note == "1 chunk not found in the data files"
    assert found.facts[0].topology.meshes[0].ranks_missing == ((1,),)


def test_nothing_outside_the_folder_is_opened(tmp_path: Path) -> None:
    folder = copied("bad_path_traversal", tmp_path / "a" / "b")
    (tmp_path / "outside.distcp").write_bytes((folder / "__0_0.distcp").read_bytes())
    found = decode(folder)
    assert found.errors == {"dcp.path_unsafe"}
    assert found.named("model.up.weight").note == "1 chunk not found in the data files"


def test_a_canary_in_the_metadata_is_named_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = decode(DCP / "bad_metadata_canary" / "checkpoint")
    assert "posix.mkdir" in the(found, "pickle.foreign_call").message
    assert not found.errors
    assert not list(tmp_path.iterdir())
    assert_equal(found, DCP / "fsdp2_odd_world2")


def test_a_payload_byte_shows_in_the_checksum_that_the_catalogue_has() -> None:
    found = decode(DCP / "bad_payload_byte" / "checkpoint")
    assert not found.errors  # payload is read on request and by conversion
    wrong = []
    for tensor in found.tensors:
        for item in tensor.fragments:
            data = (found.root / item.record.file).read_bytes()[item.record.begin :][: item.record.length]
            if data and zlib.crc32(data) != item.record.crc:
                wrong.append((tensor.name, item.label))
    assert len(wrong) == 1


# --- what saves tell


def test_a_save_without_collectives_is_the_union_and_copies_are_replicas() -> None:  # R079
    found = decode(DCP / "fsdp2_no_collectives_world2" / "checkpoint")
    assert found.codes == {"dcp.ranks_united"}
    steps = found.named("model.steps")
    assert len(steps.fragments) == 1
    assert [item.record.file for item in (*steps.fragments, *steps.replicas)] == [
        "__0_0.distcp",
        "__1_0.distcp",
    ]
    assert steps.replicas[0].label == steps.fragments[0].label


def test_a_copy_takes_the_place_of_one_that_is_not_here(tmp_path: Path) -> None:
    folder = copied("fsdp2_no_collectives_world2", tmp_path)
    (folder / "__0_0.distcp").unlink()
    found = decode(folder)
    assert "dcp.file_missing" in found.errors
    steps = found.named("model.steps")
    assert [item.record.file for item in steps.fragments] == ["__1_0.distcp"]
    assert not steps.replicas
    assert steps.note is None


def test_metadata_of_ranks_that_disagree_is_refused(tmp_path: Path) -> None:
    folder = copied("fsdp2_no_collectives_world2", tmp_path)
    data = (folder / "__1.metadata").read_bytes()
    assert data.count(b"\x8c\x08bfloat16") == 1
    (folder / "__1.metadata").write_bytes(
        data.replace(b"\x8c\x08bfloat16", b"\x8c\x07float16").replace(
            b"\x95" + (len(data) - 11).to_bytes(8, "little"), b"\x95" + (len(data) - 12).to_bytes(8, "little")
        )
    )
    params = the(decode(folder), "dcp.ranks_disagree").params
    assert (params["tensor"], params["reason"]) == ("model.down.weight", "BF16 or F16")


def test_a_rank_that_left_nothing_at_all_leaves_a_hole(tmp_path: Path) -> None:  # R078
    folder = copied("fsdp2_no_collectives_world2", tmp_path)
    for name in ("__1.metadata", "__1_0.distcp"):
        (folder / name).unlink()
    assert "dcp.hole" in decode(folder).errors


def test_stale_files_are_named_and_are_no_part_of_the_topology() -> None:
    found = decode(DCP / "stale_files_world3_then_world2" / "checkpoint")
    assert found.codes == {"dcp.stale_file"}
    (facts,) = found.facts
    assert facts.topology.meshes[0].ranks_seen == ((0,), (1,))
    assert not facts.opaque


def test_the_parts_of_a_training_state_are_told_by_its_keys() -> None:
    found = decode(DCP / "model_optim_world2" / "checkpoint")
    components = {tensor.name: tensor.component for tensor in found.tensors}
    assert components["model.emb.weight"] == "model"
    assert components["optimizer.state.emb.weight.exp_avg"] == "optimizer"
    assert components["rng"] == components["train_state.tensors.0"] == "other"
    state = found.facts[0].state
    assert state.optimizer.presence is state.rng.presence is state.scheduler.presence is Presence.PRESENT
    assert state.data_position.presence is Presence.ABSENT


def test_the_path_that_the_writer_saved_to_is_shown_nowhere(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        vars(vars(metadata)["storage_meta"])["checkpoint_id"] = "/home/somebody/secret-run"

    write_save(tmp_path / "save", SMALL, 2, edit=edit)
    found = decode(tmp_path / "save")
    assert not found.blockers
    assert "somebody" not in repr(found.facts)


# --- items that are alike, and items that are not

SMALL: dict[str, Kind] = {
    "model.a.weight": ("bfloat16", (4, 6)),
    "model.b.weight": ("bfloat16", (4, 6)),
    "model.c.weight": ("float32", (2, 3)),
    "model.d.bias": ("bfloat16", (4, 6)),
}


def test_items_that_are_alike_are_decoded_once(tmp_path: Path) -> None:
    write_save(tmp_path / "save", SMALL, 3)
    found = decode(tmp_path / "save")
    assert not found.blockers
    assert [len(tensor.fragments) for tensor in found.tensors] == [3, 3, 3, 3]
    assert len(found.streams) == 3  # the metadata, and one item of each kind


@pytest.mark.parametrize("where", ["head", "tail"])
def test_every_byte_around_the_elements_counts(tmp_path: Path, where: str) -> None:
    item = item_of(SMALL["model.b.weight"])
    length = len(item.head) if where == "head" else len(item.tail)
    begin = item.length + (0 if where == "head" else len(item.head) + item.size)  # the second item of a file
    write_save(tmp_path / "save", SMALL, 1)
    file = tmp_path / "save" / "__0_0.distcp"
    whole = file.read_bytes()
    free = _free_bytes(item) if where == "tail" else set()
    unseen = []
    for at in range(0, length, 61):
        file.write_bytes(whole[: begin + at] + bytes([whole[begin + at] ^ 0x41]) + whole[begin + at + 1 :])
        found = decode(tmp_path / "save")
        same = len(found.streams) == 3 and not found.errors
        if same and at not in free:
            unseen.append(at)
    assert not unseen


def _free_bytes(item: Item) -> set[int]:
    """The identity is a hash that nobody checks."""
    at = item.tail.index(b"1" * 40)
    return set(range(at, at + 40))


def test_checksums_are_those_of_each_item(tmp_path: Path) -> None:
    found = decode(DCP / "fsdp2_odd_world2" / "checkpoint")
    for tensor in found.tensors:
        for item in tensor.fragments:
            data = (found.root / item.record.file).read_bytes()[item.record.begin :][: item.record.length]
            if item.record.size:
                assert zlib.crc32(data) == item.record.crc


def test_strides_of_an_item_are_its_own(tmp_path: Path) -> None:
    write_save(tmp_path / "save", {"w": ("float32", (2, 3))}, 1)
    values = np.arange(6, dtype="<f4")
    item = Item(tensor_pickle("float32", (2, 3), (1, 2)), 24, zlib.crc32(values.tobytes()))
    plain = item_of(("float32", (2, 3)))
    assert item.length == plain.length
    (tmp_path / "save" / "__0_0.distcp").write_bytes(item.head + values.tobytes() + item.tail)
    found = decode(tmp_path / "save")
    assert not found.blockers
    assert found.named("w").fragments[0].strides == (1, 2)
    assert value(found, found.named("w")) == values.reshape(3, 2).T.tobytes()


def test_an_item_of_another_kind_than_recorded_is_refused(tmp_path: Path) -> None:
    write_save(tmp_path / "save", {"w": ("float32", (2, 3)), "v": ("float32", (2, 3))}, 1)
    other = Item(tensor_pickle("float32", (3, 2)), 24)
    file = tmp_path / "save" / "__0_0.distcp"
    file.write_bytes(file.read_bytes()[: other.length] + other.head + bytes(24) + other.tail)
    found = decode(tmp_path / "save")
    assert found.errors == {"dcp.item_disagrees"}
    params = the(found, "dcp.item_disagrees").params
    assert (params["tensor"], params["found"], params["expected"]) == ("v", "F32, 3 x 2", "F32, 2 x 3")
    assert not found.named("v").fragments


def test_an_item_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    write_save(tmp_path / "save", SMALL, 2)
    file = tmp_path / "save" / "__1_0.distcp"
    file.write_bytes(bytes(file.stat().st_size))
    found = decode(tmp_path / "save")
    assert "dcp.items_unreadable" in found.errors
    assert the(found, "dcp.items_unreadable").params["count"] == 4


def _stored(metadata: object, name: str) -> object:
    return next(info for index, info in vars(metadata)["storage_data"].items() if vars(index)["fqn"] == name)


def test_items_that_share_bytes_are_refused(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        vars(_stored(metadata, "model.b.weight"))["offset"] = 0

    write_save(tmp_path / "save", SMALL, 1, edit=edit)
    assert decode(tmp_path / "save").errors == {"dcp.items_overlap"}


def test_an_item_far_beyond_its_file_is_refused(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        vars(_stored(metadata, "model.b.weight"))["offset"] = 1 << 40

    write_save(tmp_path / "save", SMALL, 1, edit=edit)
    assert decode(tmp_path / "save").errors == {"dcp.item_range"}


def test_a_chunk_without_a_place_is_refused_and_a_place_without_a_chunk_is_named(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        stored = vars(metadata)["storage_data"]
        index = next(index for index in stored if vars(index)["fqn"] == "model.c.weight")
        vars(index)["fqn"] = "model.nowhere"

    write_save(tmp_path / "save", SMALL, 1, edit=edit)
    found = decode(tmp_path / "save")
    assert found.errors == {"dcp.storage_unrecorded"}
    assert the(found, "dcp.storage_stray").params["tensor"] == "model.nowhere"


@pytest.mark.parametrize("path", ["a/data", "..", "a\\b", "/etc/passwd", ""])
def test_only_plain_names_lead_to_files(tmp_path: Path, path: str) -> None:
    def edit(metadata: object) -> None:
        vars(_stored(metadata, "model.c.weight"))["relative_path"] = path

    write_save(tmp_path / "save", SMALL, 1, edit=edit)
    (tmp_path / "save" / "a").mkdir()
    (tmp_path / "save" / "a" / "data").write_bytes((tmp_path / "save" / "__0_0.distcp").read_bytes())
    assert decode(tmp_path / "save").errors == {"dcp.path_unsafe"}


def test_a_link_is_no_data_file(tmp_path: Path) -> None:
    write_save(tmp_path / "save", SMALL, 1)
    (tmp_path / "save" / "__0_0.distcp").rename(tmp_path / "elsewhere")
    (tmp_path / "save" / "__0_0.distcp").symlink_to(tmp_path / "elsewhere")
    assert "dcp.file_missing" in decode(tmp_path / "save").errors


def test_keys_that_the_planner_spells_otherwise_are_named(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        vars(metadata)["planner_data"] |= {"model.a.weight": ("model", "z"), "model.gone": ("model", "gone")}

    write_save(tmp_path / "save", SMALL, 1, edit=edit)
    found = decode(tmp_path / "save")
    assert found.codes == {"dcp.names_disagree", "dcp.names_absent"}
    assert the(found, "dcp.names_absent").params["tensor"] == "model.gone"


def test_another_version_of_the_metadata_is_named(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        vars(metadata)["version"] = "2.0.0"

    write_save(tmp_path / "save", SMALL, 1, edit=edit)
    assert decode(tmp_path / "save").codes == {"dcp.metadata_version"}


def test_chunks_that_overlap_or_reach_beyond_are_refused(tmp_path: Path) -> None:  # R078
    def edit(metadata: object) -> None:
        described = vars(metadata)["state_dict_metadata"]
        vars(described["model.a.weight"])["size"] = standins.Size((7, 6))
        for index in vars(metadata)["storage_data"]:
            if vars(index)["fqn"] == "model.c.weight" and vars(index)["offset"][0]:
                vars(index)["offset"] = standins.Size((1, 0))
        vars(vars(described["model.c.weight"])["chunks"][1])["offsets"] = standins.Size((1, 0))

    write_save(tmp_path / "save", SMALL, 2, edit=edit)
    found = decode(tmp_path / "save")
    assert found.errors == {"dcp.chunk_range", "dcp.overlap", "dcp.hole"}
    assert the(found, "dcp.chunk_range").params["reach"] == "8 x 6"
    assert the(found, "dcp.overlap").params["repeated"] == 3


def test_proving_coverage_is_bounded(tmp_path: Path) -> None:  # R083
    write_save(tmp_path / "save", SMALL, 8)
    found = decode(tmp_path / "save", reading=Limits(fragment_steps=4))
    assert "limit.fragment_steps" in found.errors
    assert not found.tensors


# --- compressed items


def test_without_a_decompressor_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dcp_frames, "decompressor", lambda: None)
    found = decode(DCP / "fsdp2_zstd_world2" / "checkpoint")
    assert found.errors == {"dcp.zstd_missing"}
    assert "shardscope[zstd]" in the(found, "dcp.zstd_missing").remedy
    assert {tensor.name for tensor in found.tensors} == expected(DCP / "fsdp2_zstd_world2").keys()


@pytest.mark.parametrize(("at", "reason"), [(40, "decompress"), (-3, "decompress")])
def test_a_damaged_frame_is_refused(tmp_path: Path, at: int, reason: str) -> None:
    folder = copied("fsdp2_zstd_world2", tmp_path)
    file = folder / "__0_0.distcp"
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    data[at + 1] ^= 0xFF
    file.write_bytes(data)
    found = decode(folder)
    assert "dcp.items_unreadable" in found.errors


@pytest.mark.parametrize("elements", [6, 1 << 20])
def test_elements_of_compressed_items_are_compared_with_their_checksum(tmp_path: Path, elements: int) -> None:
    values = np.arange(elements, dtype="<f4").tobytes()
    item = Item(tensor_pickle("float32", (elements,)), len(values), zlib.crc32(values))
    for damage, errors in ((b"", set()), (b"\1", {"torch.record_crc", "dcp.items_unreadable"})):
        inside = item.head + values[: len(values) - len(damage)] + damage + item.tail
        found = decode(compressed(tmp_path / str(len(damage)), inside, ("float32", (elements,))))
        assert found.errors == errors
        assert [value(found, tensor) == values for tensor in found.tensors if tensor.fragments] == [True] * (
            not errors
        )
        assert {fragment.record.crc for tensor in found.tensors for fragment in tensor.fragments} <= {
            zlib.crc32(inside)
        }


def test_a_frame_that_grows_beyond_its_tensor_is_stopped(tmp_path: Path) -> None:
    found = decode(bomb(tmp_path, 64 << 20))
    assert "dcp.frame_size" in found.errors


def test_what_is_decompressed_is_bounded() -> None:  # R083
    found = decode(DCP / "fsdp2_zstd_world2" / "checkpoint", DecodeLimits(decompressed_bytes=20_000))
    assert "limit.decompressed_bytes" in found.errors


def bomb(tmp_path: Path, size: int) -> Path:
    """A save with one compressed item that decompresses to `size` zeros."""
    return compressed(tmp_path, bytes(size), ("float32", (2, 3)))


def compressed(tmp_path: Path, inside: bytes, kind: Kind) -> Path:
    """A save of one tensor, `w`, whose item is a frame around some bytes."""
    import zstandard

    frame = zstandard.ZstdCompressor(write_content_size=False).compress(inside)

    def edit(metadata: object) -> None:
        info = vars(_stored(metadata, "w"))
        info |= {"offset": 0, "length": len(frame), "transform_descriptors": ["stream.zstd/1"]}

    write_save(tmp_path / "save", {"w": kind}, 1, edit=edit)
    (tmp_path / "save" / "__0_0.distcp").write_bytes(frame)
    return tmp_path / "save"


def test_a_transformation_that_is_not_known_is_refused(tmp_path: Path) -> None:
    def edit(metadata: object) -> None:
        vars(_stored(metadata, "w"))["transform_descriptors"] = ["stream.rot13/7"]

    write_save(tmp_path / "save", {"w": ("float32", (2, 3))}, 1, edit=edit)
    found = decode(tmp_path / "save")
    assert found.errors == {"dcp.transform_unknown"}
    assert the(found, "dcp.transform_unknown").params["transform"] == "stream.rot13/7"

"""Formats that are told by names and first bytes, and not read further."""

import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Confidence
from tests.checkpoints import write_json, write_torch_zip
from tests.formats.looking import codes, errors, look, the

TABLE_END = bytes.fromhex("57fb808b247547db")
"""The number that every LevelDB table ends in, 0xdb4775248b80fb57, as it stands in the file."""


def write_nemo(root: Path) -> None:
    (root / "model_config.yaml").write_text("target: nemo\n")
    with tarfile.open(root / "model.nemo", "w") as archive:
        archive.add(root / "model_config.yaml", "./model_config.yaml")
    (root / "model_config.yaml").unlink()


def write_orbax(root: Path, step: str = "") -> None:
    top = root / step
    item = top / "default"
    for folder in ("d", "ocdbt.process_0/d"):
        (item / folder).mkdir(parents=True)
        (item / folder / "0123456789abcdef").write_bytes(bytes(64))
    for name in ("manifest.ocdbt", "ocdbt.process_0/manifest.ocdbt"):
        (item / name).write_bytes(bytes(16))
    write_json(item / "_METADATA", {"tree_metadata": {"('a',)": {}, "('b',)": {}}, "use_ocdbt": True})
    write_json(top / "_CHECKPOINT_METADATA", {"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2})


def write_tensorflow(root: Path) -> None:
    (root / "model.ckpt-9.index").write_bytes(bytes(64) + TABLE_END)
    for number in range(2):
        (root / f"model.ckpt-9.data-0000{number}-of-00002").write_bytes(bytes(8))
    (root / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')


def write_saved_model(root: Path) -> None:
    (root / "saved_model.pb").write_bytes(b"\x08\x01\x12\x04\x0a\x02xy")
    (root / "variables").mkdir()
    (root / "variables" / "variables.index").write_bytes(bytes(64) + TABLE_END)
    (root / "variables" / "variables.data-00000-of-00001").write_bytes(bytes(8))


def write_keras(root: Path, name: str = "model.keras") -> None:
    with zipfile.ZipFile(root / name, "w") as archive:
        for record in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(record, "{}")


def write_hdf5(root: Path) -> None:
    (root / "model.weights.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))


def write_onnx(root: Path) -> None:
    (root / "model.onnx").write_bytes(b"\x08\x0a\x12\x07pytorch\x1a\x032.9" + bytes(64))
    (root / "model.onnx_data").write_bytes(bytes(64))


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "nemo": ("nemo", write_nemo),
    "orbax": ("orbax", write_orbax),
    "tensorflow": ("tensorflow", write_tensorflow),
    "saved model": ("tensorflow", write_saved_model),
    "keras": ("keras", write_keras),
    "hdf5": ("keras", write_hdf5),
    "onnx": ("onnx", write_onnx),
}


def described(tmp_path: Path, writer: Callable[[Path], None]) -> Descriptor:
    writer(tmp_path)
    return look(tmp_path)


@pytest.mark.parametrize("name", WRITERS)
def test_a_format_is_recognised_and_nothing_is_claimed_beyond_it(name: str, tmp_path: Path) -> None:
    expected, writer = WRITERS[name]
    descriptor = described(tmp_path, writer)
    assert descriptor.classification.format == expected
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert codes(descriptor) == {"layout.recognised_only"}
    assert the(descriptor, "layout.recognised_only").blocks == ("decode", "convert", "load")
    assert descriptor.tensors.count is None
    scope = descriptor.state_scope
    assert scope.weights.presence == "opaque"
    assert {scope.optimizer.presence, scope.rng.presence, scope.progress.presence} == {"unknown"}
    assert descriptor.trust.requirement.startswith("Recognised only, which nothing here reads: ")


@pytest.mark.parametrize("name", WRITERS)
def test_every_figure_has_a_reason_where_it_has_no_number(name: str, tmp_path: Path) -> None:  # R024
    resources = described(tmp_path, WRITERS[name][1]).resources
    assert resources.source_bytes.bytes
    for figure in ("logical_bytes", "output_bytes", "temporary_bytes", "peak_ram_bytes"):
        estimate = getattr(resources, figure)
        assert estimate.bytes is None
        assert "recognised only" in estimate.note or "nothing here converts it" in estimate.note


@pytest.mark.parametrize(
    "name",
    [
        "model.gguf",
        "model.nemo",
        "a.npy",
        "a.npz",
        "model.keras",
        "model.h5",
        "model.onnx",
        "manifest.ocdbt",
        "saved_model.pb",
        "a.data-00000-of-00001",
    ],
)
def test_a_name_alone_is_low(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\xff\x00 nothing of that format")
    descriptor = look(tmp_path)
    assert descriptor.classification.confidence is Confidence.LOW
    assert descriptor.classification.format != "unknown"


@pytest.mark.parametrize("name", ["model.gguf", "model.nemo", "a.npy", "a.npz", "model.keras", "model.h5"])
def test_a_pointer_in_place_of_the_file_is_named(name: str, tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123456\n"
    (tmp_path / name).write_text(pointer)
    assert "file.lfs_pointer" in errors(look(tmp_path))


@pytest.mark.parametrize("magic", [b"lmgg", b"fmgg", b"tjgg", b"algg"])
def test_a_file_from_before_gguf_is_named(magic: bytes, tmp_path: Path) -> None:
    (tmp_path / "ggml-model-q4_0.bin").write_bytes(magic + bytes(64))
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "gguf"
    assert "gguf.older" in codes(descriptor)


def test_a_nemo_archive_shows_its_first_member(tmp_path: Path) -> None:
    descriptor = described(tmp_path, write_nemo)
    assert any("model_config.yaml" in item.says for item in descriptor.classification.evidence)


def test_an_unpacked_nemo_archive_keeps_its_weights_opaque(tmp_path: Path) -> None:
    (tmp_path / "model_config.yaml").write_text("target: nemo\n")
    write_torch_zip(tmp_path / "model_weights.ckpt")
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "nemo"
    assert {"trust.opaque_pickle", "nemo.context"} == codes(descriptor)


def test_the_weights_of_nemo_2_are_described_as_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "context").mkdir()
    write_json(tmp_path / "context" / "io.json", {"objects": {}})
    write_json(tmp_path / "weights" / "metadata.json", {"sharded_backend": "torch_dist"})
    (tmp_path / "weights" / ".metadata").write_bytes(b"\x80\x02}q\x00.")
    write_torch_zip(tmp_path / "weights" / "common.pt")
    (tmp_path / "weights" / "__0_0.distcp").write_bytes(bytes(64))
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "composite"
    assert {"megatron_dist", "nemo"} <= {part.format for part in descriptor.components}
    assert "nemo.context" in codes(descriptor)


def test_folders_called_weights_and_context_are_not_enough(tmp_path: Path) -> None:
    for name in ("weights", "context"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("x")
    classification = look(tmp_path).classification
    assert classification.format == "unknown"
    assert [item.format for item in classification.alternatives] == ["nemo"]


def test_an_orbax_tree_is_counted_by_its_json(tmp_path: Path) -> None:
    evidence = described(tmp_path, write_orbax).classification.evidence
    assert "declares a tree of 2 arrays" in {item.says for item in evidence}


def test_an_orbax_database_without_its_root_is_an_error(tmp_path: Path) -> None:
    write_orbax(tmp_path)
    (tmp_path / "default" / "manifest.ocdbt").unlink()
    assert "orbax.manifest_missing" in errors(look(tmp_path))


def test_an_orbax_item_without_its_description_is_reported(tmp_path: Path) -> None:
    write_orbax(tmp_path)
    (tmp_path / "default" / "_METADATA").unlink()
    assert "orbax.metadata_missing" in codes(look(tmp_path))


def test_an_unfinished_orbax_save_is_an_error(tmp_path: Path) -> None:
    write_orbax(tmp_path, "7.orbax-checkpoint-tmp-123")
    assert "orbax.unfinished" in errors(look(tmp_path))


def test_orbax_steps_are_not_merged(tmp_path: Path) -> None:
    for step in ("0", "100"):
        write_orbax(tmp_path, step)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "ambiguous"
    assert [part.name for part in descriptor.components] == ["0", "100"]


def test_a_missing_tensorflow_data_file_is_counted_from_zero(tmp_path: Path) -> None:
    write_tensorflow(tmp_path)
    (tmp_path / "model.ckpt-9.data-00000-of-00002").unlink()
    assert the(look(tmp_path), "layout.shard_gap").params["first"] == 0


@pytest.mark.parametrize(
    ("gone", "code"),
    [
        ("model.ckpt-9.index", "tensorflow.index_missing"),
        ("model.ckpt-9.data-*", "tensorflow.data_missing"),
    ],
)
def test_half_a_tensorflow_checkpoint_says_which_half(gone: str, code: str, tmp_path: Path) -> None:
    write_tensorflow(tmp_path)
    for file in tmp_path.glob(gone):
        file.unlink()
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "tensorflow"
    assert code in errors(descriptor)


def test_a_cut_tensorflow_index_is_an_error(tmp_path: Path) -> None:
    write_tensorflow(tmp_path)
    index = tmp_path / "model.ckpt-9.index"
    index.write_bytes(index.read_bytes()[:-3])
    assert "tensorflow.index_magic" in errors(look(tmp_path))


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("model.ckpt-8", "tracker.stale"),
        ("/data/run/model.ckpt-9", "tracker.unsafe"),
        ("../model.ckpt-9", "tracker.unsafe"),
    ],
)
def test_a_tensorflow_tracker_is_read_and_never_followed(target: str, code: str, tmp_path: Path) -> None:
    write_tensorflow(tmp_path)
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{target}"\n')
    assert code in codes(look(tmp_path))


def test_a_saved_model_without_variables_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x04\x0a\x02xy")
    assert "tensorflow.variables_missing" in errors(look(tmp_path))


def test_a_keras_archive_lacks_a_record(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", json.dumps({}))
    assert the(look(tmp_path), "keras.archive").params["missing"] == 2


def test_hdf5_of_any_name_does_not_make_keras(tmp_path: Path) -> None:
    (tmp_path / "measurements.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    assert look(tmp_path).classification.confidence is Confidence.LOW


def test_external_data_belong_to_their_onnx_model(tmp_path: Path) -> None:
    write_onnx(tmp_path)
    (tmp_path / "other_data").write_bytes(b"x")
    part = next(part for part in look(tmp_path).components if part.format == "onnx")
    assert part.files == ("model.onnx", "model.onnx_data")


@pytest.mark.parametrize(("name", "writer"), [("model.keras", write_keras), ("model.onnx", write_onnx)])
def test_a_single_file_is_recognised(name: str, writer: Callable[[Path], None], tmp_path: Path) -> None:
    writer(tmp_path)
    assert look(tmp_path / name).classification.format in {"keras", "onnx"}

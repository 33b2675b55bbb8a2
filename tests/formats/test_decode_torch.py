"""Files of torch.save decoded: every fixture, and every form that the container and its contents can take."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest

from shardscope.engine import inspect
from shardscope.engine.decoding import Decoding
from shardscope.engine.formats.decode.record_checks import check_records
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.engine.source.source import Source
from tests.checkpoints import write_json
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES, copied, the
from tests.torchfiles import Called, Keyed, Record, Tensor, floats, legacy, pickled, save, write_archive

TORCH = FIXTURES / "torch"
NOT_OURS = ("fsdp1_local", "fsdp1_sharded", "fsdp2")
READABLE = [
    f"torch/{path.name}"
    for path in sorted(TORCH.iterdir())
    if not path.name.startswith(NOT_OURS) and path.name not in ("zip_truncated", "zip_skip_data")
]
REFUSED = {
    "zip_complex128": ("complex128", "torch.tensor_dtype"),
    "zip_meta": ("m", "torch.tensor_meta"),
    "zip_missing_storage": ("bf16", "torch.tensor_lost"),
    "zip_quantized": ("q", "torch.tensor_kind"),
    "zip_sparse_coo": ("sparse", "torch.tensor_kind"),
    "zip_skip_data": ("w", "torch.storage_unwritten"),
}


def compare(fixture: str) -> Found:
    """Decode a fixture, compare every tensor that it should have bit for bit, and return what was found."""
    found = decode(FIXTURES / fixture / "checkpoint")
    for name, (dtype, shape, data) in expected(FIXTURES / fixture).items():
        tensor = found.named(name)
        assert (tensor.dtype, tensor.shape) == (dtype, shape), name
        assert value(found, tensor) == data, name
    return found


def named(found: Found, code: str) -> dict[str, object]:
    """Return the parameters of the one blocker of that code."""
    (item,) = (item for item in found.blockers if item.code == code)
    return dict(item.params)


# R025 R084
@pytest.mark.parametrize("fixture", READABLE)
def test_every_fixture_is_listed_and_its_values_are_where_the_fragments_say(fixture: str) -> None:
    found = compare(fixture)
    wanted = set(expected(FIXTURES / fixture))
    listed = {tensor.name for tensor in found.tensors}
    refused = REFUSED.get(fixture.removeprefix("torch/"))
    assert listed == wanted | ({refused[0]} if refused else set())
    assert "trust.opaque_pickle" not in found.codes
    assert not [entry for facts in found.facts for entry in facts.opaque]


@pytest.mark.parametrize(("fixture", "name", "code"), [(key, *row) for key, row in REFUSED.items()])
def test_what_cannot_be_written_is_listed_and_named_by_a_code_that_blocks(
    fixture: str, name: str, code: str
) -> None:
    found = decode(TORCH / fixture / "checkpoint")
    blockers = [item for item in found.blockers if item.code == code]
    assert [item.blocks for item in blockers] == [("convert", "load")]
    if code != "torch.storage_unwritten":
        assert blockers[0].params["tensor"] == name
        assert found.named(name).note


def test_a_cut_file_stays_opaque_to_decoding_and_is_reported_once() -> None:
    found = decode(TORCH / "zip_truncated" / "checkpoint")
    assert not found.tensors
    assert [item.code for item in found.blockers] == ["zip.no_end_record"]


def test_nothing_runs_and_a_foreign_call_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # R032
    monkeypatch.chdir(tmp_path)
    found = decode(TORCH / "zip_canary_reduce" / "checkpoint")
    assert not list(tmp_path.iterdir())
    assert [tensor.name for tensor in found.tensors] == ["w"]
    assert "pickle.foreign_call" in found.codes
    assert not found.errors


def test_parameters_buffers_and_frozen_ones_of_a_module_are_told_apart(tmp_path: Path) -> None:
    def module(**parts: object) -> Called:
        return Called("__main__", "Net", (), {"_parameters": {}, "_buffers": {}, "_modules": {}, **parts})

    def parameter(key: str, grad: bool) -> Called:
        return Called(
            "torch._utils",
            "_rebuild_parameter",
            (Tensor(key, 1, [1]), grad, Called("collections", "OrderedDict")),
        )

    inner = module(
        _parameters={"w": parameter("0", True), "b": parameter("1", False)},
        _buffers={"mean": Tensor("2", 1, [1]), "temp": Tensor("3", 1, [1])},
    )
    assert isinstance(inner.state, dict)
    inner.state["_non_persistent_buffers_set"] = Called("__builtin__", "set", (["temp"],))
    outer = module(_modules={"model": inner}, _parameters={"scale": parameter("4", True), "none": None})
    file = save(tmp_path / "net.pt", outer, {key: floats(float(key)) for key in "01234"})
    found = decode(file)
    assert {tensor.name: tensor.role for tensor in found.tensors} == {
        "scale": "parameter",
        "model.w": "parameter",
        "model.b": "frozen",
        "model.mean": "buffer",
    }
    assert {tensor.component for tensor in found.tensors} == {"model"}
    assert named(found, "torch.whole_module")["name"] == "__main__.Net"


TRAINING = {
    "epoch": 3,
    "model": {"w": Tensor("0", 4, [2, 2])},
    "optimizer": {"state": {0: {"exp_avg": Tensor("1", 4, [2, 2])}}, "param_groups": []},
    "rng_state": Tensor("2", 1, [1], dtype="U8"),
    "lr_scheduler": {"last": Tensor("3", 1, [])},
    "best": Tensor("4", 1, []),
}
BYTES = {"0": floats(1, 2, 3, 4), "1": floats(5, 6, 7, 8), "2": b"\1", "3": floats(9), "4": floats(0.5)}


def test_keys_at_the_top_say_what_is_model_optimizer_and_neither(tmp_path: Path) -> None:  # R090 R091
    found = decode(save(tmp_path / "last.ckpt", TRAINING, BYTES))
    assert {tensor.name: tensor.component for tensor in found.tensors} == {
        "model.w": "model",
        "optimizer.state.0.exp_avg": "optimizer",
        "rng_state": "other",
        "lr_scheduler.last": "other",
        "best": "other",
    }
    (facts,) = found.facts
    present = {
        name for name in facts.state.__struct_fields__ if getattr(facts.state, name).presence == "present"
    }
    assert present == {"weights", "optimizer", "rng", "scheduler", "progress"}


def test_a_flat_mapping_is_a_model_and_lone_optimizer_files_are_none(tmp_path: Path) -> None:
    save(
        tmp_path / "other.pt",
        {"a": Tensor("0", 4, [4]), "n": Tensor("1", 1, [], dtype="I64")},
        {"0": bytes(16), "1": bytes(8)},
    )
    save(
        tmp_path / "optimizer.pt",
        {"state": {0: {"exp_avg": Tensor("0", 4, [4])}}, "param_groups": []},
        {"0": bytes(16)},
    )
    save(
        tmp_path / "states.pt",
        {"state": {0: {"exp_avg": Tensor("0", 4, [4])}}, "param_groups": []},
        {"0": bytes(16)},
    )
    save(tmp_path / "rng_state.pth", {"cpu": Tensor("0", 16, [16], dtype="U8")}, {"0": bytes(16)})
    found = decode(tmp_path)
    by_component: dict[str, list[str]] = {}
    for tensor in found.tensors:
        by_component.setdefault(tensor.component, []).append(tensor.name)
    assert by_component == {
        "model": ["a", "n"],
        "optimizer": ["state.0.exp_avg", "state.0.exp_avg"],
        "other": ["cpu"],
    }
    assert found.named("n").role == "buffer"


def test_the_same_view_twice_is_an_alias_and_others_that_meet_are_noted() -> None:  # R081
    found = compare("torch/zip_shared_storage")
    assert found.named("lm_head.weight").alias_of == "embed.weight"
    assert {tensor.name for tensor in found.tensors if tensor.alias_of} == {"lm_head.weight"}
    noted = {tensor.name for tensor in found.tensors if tensor.note}
    assert {"embed.weight", "lm_head_t", "qkv", "q", "k", "v"} <= noted
    assert named(found, "torch.shared_views")["count"] == len(noted)


def test_strides_of_axes_of_one_slice_make_no_other_view(tmp_path: Path) -> None:
    value = {"a": Tensor("0", 4, [1, 4], [4, 1]), "b": Tensor("0", 4, [1, 4], [99, 1])}
    found = decode(save(tmp_path / "m.pt", value, {"0": floats(1, 2, 3, 4)}))
    assert found.named("b").alias_of == "a"
    assert found.named("b").fragments[0].strides is None


def test_views_side_by_side_do_not_meet_and_unused_bytes_are_counted(tmp_path: Path) -> None:
    value = {
        "a": Tensor("0", 8, [2], offset=0),
        "b": Tensor("0", 8, [2], offset=2),
        "e": Tensor("0", 8, [0, 3]),
    }
    found = decode(save(tmp_path / "m.pt", value, {"0": bytes(32)}))
    assert "torch.shared_views" not in found.codes
    assert named(found, "torch.storage_unused") == {"file": "m.pt", "size": 16, "count": 1}


def test_two_ways_to_one_name_are_an_error(tmp_path: Path) -> None:  # R078
    value = {
        "a": {"b": Tensor("0", 1, [1])},
        "a.b": Tensor("1", 1, [1]),
        "c": Keyed([(1, Tensor("0", 1, [1])), ("1", Tensor("1", 1, [1]))]),
    }
    found = decode(save(tmp_path / "m.pt", value, {"0": bytes(4), "1": bytes(4)}))
    assert named(found, "torch.name_twice")["count"] == 2
    assert len(found.tensors) == 4


def test_of_a_repeated_key_the_last_value_counts(tmp_path: Path) -> None:
    value = Keyed([("a", Tensor("0", 1, [1])), ("a", Tensor("1", 1, [1]))])
    found = decode(save(tmp_path / "m.pt", value, {"0": floats(1), "1": floats(2)}))
    (tensor,) = found.tensors
    assert value_of(found, "a") == floats(2)
    assert tensor.name == "a"


def value_of(found: Found, name: str) -> bytes:
    return value(found, found.named(name))


def test_keys_that_are_no_text_get_a_name_and_a_word(tmp_path: Path) -> None:
    value = Keyed(
        [(("x", 1), Tensor("0", 1, [1])), (2.5, [Tensor("1", 1, [1])]), ("plain", Tensor("2", 1, [1]))]
    )
    found = decode(save(tmp_path / "m.pt", value, {"0": bytes(4), "1": bytes(4), "2": bytes(4)}))
    assert [tensor.name for tensor in found.tensors] == ["(x, 1)", "2.5.0", "plain"]
    assert named(found, "torch.key_odd")["count"] == 2


def test_elements_that_are_stored_before_they_are_conjugated_are_not_the_values(tmp_path: Path) -> None:
    value = {
        "a": Tensor("0", 1, [1], metadata={"conj": True}),
        "b": Tensor("0", 1, [1], metadata={"neg": True}),
        "c": Tensor("0", 1, [1], metadata={"neg": False}),
    }
    found = decode(save(tmp_path / "m.pt", value, {"0": floats(1)}))
    blocked = {item.params["tensor"] for item in found.blockers if item.code == "torch.tensor_pending"}
    assert blocked == {"a", "b"}
    assert value_of(found, "c") == floats(1)


def test_a_foreign_object_graph_is_evidence_and_no_model(tmp_path: Path) -> None:
    arguments = Called("my.arguments", "Arguments", (), {"lr": 0.1, "dir": "x"})
    found = decode(save(tmp_path / "training_args.bin", arguments, {}))
    assert not found.tensors
    assert not found.errors
    assert "pickle.foreign_call" in found.codes
    (facts,) = found.facts
    assert facts.state.weights.presence == "absent"
    assert facts.state.progress.presence == "present"
    assert facts.opaque == ()


def test_tensors_that_pickle_itself_wrote_are_named_for_what_they_are(tmp_path: Path) -> None:
    storage = Called("torch.storage", "_load_from_bytes", ("not bytes",))
    hooks = Called("collections", "OrderedDict")
    tensor = Called("torch._utils", "_rebuild_tensor_v2", (storage, 0, (1,), (1,), False, hooks))
    (tmp_path / "m.pkl").write_bytes(pickled({"a": tensor}))
    assert named(decode(tmp_path / "m.pkl"), "torch.plain_pickle")["tensor"] == "a"


def test_a_tensor_that_is_all_of_a_file_has_a_name(tmp_path: Path) -> None:
    found = decode(save(tmp_path / "m.pt", Tensor("0", 2, [2]), {"0": floats(1, 2)}))
    assert [tensor.name for tensor in found.tensors] == ["tensor"]
    assert value_of(found, "tensor") == floats(1, 2)


@pytest.mark.parametrize("name", ["epoch=3.ckpt", "w.bin", "w.pth", "checkpoint.pth.tar", "w.pkl"])
@pytest.mark.parametrize("root", ["archive", "model", "a b"])
def test_names_of_file_and_archive_do_not_matter(tmp_path: Path, name: str, root: str) -> None:
    found = decode(save(tmp_path / name, {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)}, root=root))
    assert value_of(found, "a") == floats(1, 2)


def test_big_endian_numbers_are_turned_round(tmp_path: Path) -> None:
    found = decode(
        save(tmp_path / "m.pt", {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)[::-1]}, byteorder="big")
    )
    assert value_of(found, "a") == floats(2, 1)


# -- what is wrong with storages


def test_one_bad_storage_leaves_the_others_readable(tmp_path: Path) -> None:
    value = {"a": Tensor("0", 2, [2]), "b": Tensor("1", 2, [2]), "c": Tensor("2", 2, [2])}
    found = decode(save(tmp_path / "m.pt", value, {"0": floats(1, 2), "1": floats(3), "2": floats(5, 6)}))
    assert value_of(found, "a") + value_of(found, "c") == floats(1, 2, 5, 6)
    assert named(found, "torch.storage_size") == {
        "file": "m.pt",
        "count": 1,
        "key": "1",
        "size": 4,
        "expected": 8,
    }
    assert named(found, "torch.tensor_lost")["tensor"] == "b"


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor("0", 4, [5]),
        Tensor("0", 4, [2], offset=3),
        Tensor("0", 4, [2], offset=-1),
        Tensor("0", 4, [2, 2], [3, 2]),
        Tensor("0", 4, [2], [-1], offset=3),
        Tensor("0", 4, [2, 2], [1]),
        Tensor("0", 4, [1 << 62, 1 << 62]),
    ],
)
def test_a_view_beyond_its_storage_is_not_followed(tmp_path: Path, tensor: Tensor) -> None:
    found = decode(
        save(tmp_path / "m.pt", {"bad": tensor, "good": Tensor("0", 4, [4])}, {"0": floats(1, 2, 3, 4)})
    )
    assert named(found, "torch.tensor_malformed")["tensor"] == "bad"
    assert [item.name for item in found.tensors] == ["good"]
    assert value_of(found, "good") == floats(1, 2, 3, 4)


def test_encrypted_and_foreign_compression_are_refused(tmp_path: Path) -> None:
    records = [
        Record(
            "m/data.pkl",
            pickled({"a": Tensor("0", 1, [1]), "b": Tensor("1", 1, [1]), "c": Tensor("2", 1, [1])}),
        ),
        Record("m/data/0", floats(1), flags=0x0809),
        Record("m/data/1", floats(2), method=12),
        Record("m/data/2", floats(3)),
        Record("m/version", b"3\n"),
    ]
    found = decode(write_archive(tmp_path / "m.pt", records))
    assert value_of(found, "c") == floats(3)
    assert named(found, "torch.storage_missing")["count"] == 2
    assert named(found, "torch.tensor_lost")["count"] == 2
    records[0] = Record("m/data.pkl", records[0].data, method=12)
    assert "torch.pickle_unreadable" in decode(write_archive(tmp_path / "m.pt", records)).errors


def test_a_record_that_was_reserved_and_not_written_is_no_damage(tmp_path: Path) -> None:
    path = write_archive(
        tmp_path / "m.pt",
        [
            Record("m/data.pkl", pickled({"a": Tensor("0", 2, [2])})),
            Record("m/data/0", bytes(8), crc=0),
            Record("m/version", b"3\n"),
        ],
    )
    found = decode(path)
    assert "torch.storage_unwritten" in found.errors
    assert checked(path, found).damaged == ()


def test_the_checksum_of_the_structure_is_compared_before_it_is_read(tmp_path: Path) -> None:
    records = [
        Record("m/data.pkl", pickled({"a": Tensor("0", 1, [1])}), crc=1),
        Record("m/data/0", floats(1)),
        Record("m/version", b"3\n"),
    ]
    found = decode(write_archive(tmp_path / "m.pt", records))
    assert "torch.record_crc" in found.errors
    assert not found.tensors


# -- checksums of storages, on request


def checked(path: Path, found: Found):  # type: ignore[no-untyped-def]
    with Source(path, limits=Limits(), hf_cache=False) as source:
        probe = Probe(source, source.walk(), Limits())
        result = check_records(probe, found.tensors)
        found.blockers[:] = probe.blockers
    return result


def test_checksums_of_sound_files_agree_stored_and_deflated() -> None:
    for fixture, records in (("zip_dtypes", 20), ("zip_deflated", 5), ("zip_shared_storage", 3)):
        path = TORCH / fixture / "checkpoint"
        result = checked(path, decode(path))
        assert result.damaged == ()
        assert result.records >= records - 5
        assert result.unrecorded == 0


def test_checksums_that_were_not_recorded_are_no_damage() -> None:
    path = TORCH / "zip_crc_disabled" / "checkpoint"
    result = checked(path, decode(path))
    assert (result.records, result.unrecorded, result.damaged) == (0, 2, ())


@pytest.mark.parametrize("fixture", ["zip_shared_storage", "zip_deflated"])
def test_one_changed_byte_of_a_tensor_is_found(tmp_path: Path, fixture: str) -> None:
    copied(f"torch/{fixture}", tmp_path)
    found = decode(tmp_path)
    record = found.tensors[0].fragments[0].record
    data = bytearray((tmp_path / "model.pt").read_bytes())
    data[record.begin + record.length // 2] ^= 0x10
    (tmp_path / "model.pt").write_bytes(data)
    result = checked(tmp_path, found)
    assert [item.begin for item in result.damaged] == [record.begin]
    assert named(found, "torch.record_crc")["count"] == 1
    assert found.tensors[0].name in str(named(found, "torch.record_crc")["record"])


def test_a_changed_byte_in_a_distributed_save_is_found() -> None:
    path = FIXTURES / "dcp" / "bad_payload_byte" / "checkpoint"
    found = decode(path)
    if not found.tensors:
        pytest.skip("the family is not decoded")
    result = checked(path, found)
    assert len(result.damaged) == 1
    assert "torch.record_crc" in found.errors


# -- the older stream


def test_a_stream_whose_counts_and_keys_disagree_is_refused(tmp_path: Path) -> None:
    value = {"a": Tensor("7", 2, [2], legacy=True)}
    good = {"7": (2, floats(1, 2))}
    cases = {
        "torch.stream_count": legacy(value, {"7": (3, floats(1, 2))}),
        "torch.stream_cut": legacy(value, good)[:-1],
        "torch.stream_rest": legacy(value, good) + b"\0",
        "torch.stream_keys": legacy(value, good, keys=["8"]),
    }
    for code, data in cases.items():
        (tmp_path / "m.pt").write_bytes(data)
        found = decode(tmp_path / "m.pt")
        assert code in found.errors, code
        assert not found.tensors
        assert "trust.opaque_pickle" in found.codes
    (tmp_path / "m.pt").write_bytes(legacy(value, good, keys=[]))
    assert "torch.stream_keys" in decode(tmp_path / "m.pt").errors


def test_views_of_storages_in_very_old_streams(tmp_path: Path) -> None:
    value = {
        "a": Tensor("7", 4, [4], legacy=True),
        "b": Tensor("7", 4, [2], legacy=True, view=("9", 1, 2)),
        "c": Tensor("7", 4, [2], legacy=True, view=("10", 3, 2)),
    }
    (tmp_path / "m.pt").write_bytes(legacy(value, {"7": (4, floats(1, 2, 3, 4))}))
    found = decode(tmp_path / "m.pt")
    assert value_of(found, "a") == floats(1, 2, 3, 4)
    assert value_of(found, "b") == floats(2, 3)
    assert named(found, "torch.tensor_lost")["tensor"] == "c"


def test_a_long_structure_of_a_stream_is_read_in_growing_windows(tmp_path: Path) -> None:
    value = {"note": "x" * (3 << 20), "a": Tensor("7", 1, [1], legacy=True)}
    (tmp_path / "m.pt").write_bytes(legacy(value, {"7": (1, floats(1))}))
    assert value_of(decode(tmp_path / "m.pt"), "a") == floats(1)
    found = decode(tmp_path / "m.pt", DecodeLimits(pickle_bytes=1 << 20))
    assert "limit.pickle_bytes" in found.errors


def test_the_oldest_form_is_recognised_and_refused(tmp_path: Path) -> None:
    for name, code in (
        ("sys_info pickle storages tensors", "torch.tar_form"),
        ("weights.bin", "torch.not_torch"),
    ):
        with tarfile.open(tmp_path / "m.pt", "w") as archive:
            for member in name.split():
                info = tarfile.TarInfo(member)
                info.size = 3
                archive.addfile(info, io.BytesIO(b"abc"))
        found = decode(tmp_path / "m.pt")
        assert code in found.errors
        assert "trust.opaque_pickle" in found.codes


# -- sizes


def test_five_gibibytes_in_one_storage(tmp_path: Path) -> None:
    size = 5 << 30
    value = {"big": Tensor("0", size // 4, [size // 4]), "after": Tensor("1", 2, [2])}
    path = write_archive(
        tmp_path / "m.pt",
        [
            Record("m/data.pkl", pickled(value)),
            Record("m/data/0", hole=size, crc=1),
            Record("m/data/1", floats(1, 2)),
            Record("m/version", b"3\n"),
        ],
    )
    found = decode(path)
    assert not found.errors
    (fragment,) = found.named("after").fragments
    with path.open("rb") as file:
        file.seek(fragment.record.begin + fragment.offset)
        assert file.read(8) == floats(1, 2)
    assert fragment.record.begin > size
    assert found.named("big").fragments[0].record.size == size


def test_a_hundred_gigabytes_are_decoded_from_less_than_twenty_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # R087
    layers, size = 1000, 100_000_000
    value = {f"layers.{n}.weight": Tensor(str(n), size // 4, [size // 4]) for n in range(layers)}
    records = [Record("m/data.pkl", pickled(value))]
    records += [Record(f"m/data/{n}", hole=size, crc=1) for n in range(layers)]
    try:
        path = write_archive(tmp_path / "m.pt", [*records, Record("m/version", b"3\n")])
    except OSError:
        pytest.skip("the file system takes no file of 100 GB")
    assert path.stat().st_size > 100_000_000_000
    read = 0
    pread = os.pread

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        nonlocal read
        data = pread(descriptor, length, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    found = decode(path)
    assert len(found.tensors) == layers
    assert 0 < read < 20_000_000
    assert not found.errors


def test_containers_shared_many_times_over_end(tmp_path: Path) -> None:
    """Forty lists, each twice in the next one: 2^40 ways to one tensor."""
    level = b"(" + b"](" + _tensor_opcodes() + b"eq\0"
    data = b"\x80\x02" + level[1:]
    for number in range(1, 40):
        data += b"0](" + bytes([ord("h"), number - 1]) * 2 + b"e" + bytes([ord("q"), number])
    records = [Record("m/data.pkl", data + b"."), Record("m/data/0", floats(1)), Record("m/version", b"3\n")]
    found = decode(write_archive(tmp_path / "m.pt", records))
    assert "torch.names_unbounded" in found.errors
    assert 1 <= len(found.tensors) < 100_000


def _tensor_opcodes() -> bytes:
    return pickled(Tensor("0", 1, [1]))[2:-1]


# -- sets of files


@pytest.mark.parametrize(
    "fixture",
    ["hf/bin_sharded", "hf/bin_single_tied", "peft/lora_gpt2_bin_rslora", "torch/fsdp1_full_world2"],
)
def test_sets_of_torch_files_hold_what_they_should(fixture: str) -> None:
    found = compare(fixture)
    assert {tensor.name for tensor in found.tensors} == set(expected(FIXTURES / fixture))
    assert not found.errors
    assert "trust.opaque_pickle" not in found.codes


def test_tied_weights_of_one_file_are_aliases() -> None:  # R081
    found = decode(FIXTURES / "hf" / "bin_single_tied" / "checkpoint")
    aliases = {tensor.name: tensor.alias_of for tensor in found.tensors if tensor.alias_of}
    assert aliases in (
        {"lm_head.weight": "transformer.wte.weight"},
        {"transformer.wte.weight": "lm_head.weight"},
    )


def test_an_index_is_held_against_decoded_names(tmp_path: Path) -> None:
    save(tmp_path / "pytorch_model-00001-of-00002.bin", {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)})
    save(tmp_path / "pytorch_model-00002-of-00002.bin", {"b": Tensor("0", 2, [2])}, {"0": floats(3, 4)})

    def index(total: int = 16, **names: int) -> set[str]:
        files = {name: f"pytorch_model-0000{number}-of-00002.bin" for name, number in names.items()}
        write_json(
            tmp_path / "pytorch_model.bin.index.json",
            {"metadata": {"total_size": total}, "weight_map": files},
        )
        found = decode(tmp_path)
        assert {tensor.name for tensor in found.tensors} == {"a", "b"}
        return {code for code in found.codes if code.startswith("index.")}

    assert index(a=1, b=2) == set()
    assert index(17, a=1, b=2) == {"index.total_size"}
    assert index(a=1, b=2, c=2) == {"index.tensor_missing"}
    assert index(a=2, b=2) >= {"index.tensor_elsewhere", "index.tensor_missing"}


def test_a_name_in_two_files_of_a_set_is_an_error(tmp_path: Path) -> None:
    for number in (1, 2):
        save(
            tmp_path / f"pytorch_model-0000{number}-of-00002.bin",
            {"a": Tensor("0", 2, [2])},
            {"0": floats(1, 2)},
        )
    assert "index.tensor_duplicate" in decode(tmp_path).codes


# -- Meta's release layout


def release(
    folder: Path, parts: dict[str, list[tuple[list[int], bytes]]], params: dict[str, object]
) -> Found:
    """Write two ranks with the shapes and bytes of their parts, and decode them."""
    folder.mkdir(exist_ok=True)
    for rank in (0, 1):
        value = {
            name: Tensor(str(n), len(held[rank][1]) // 4, held[rank][0])
            for n, (name, held) in enumerate(parts.items())
        }
        storages = {str(n): held[rank][1] for n, held in enumerate(parts.values())}
        save(folder / f"consolidated.0{rank}.pth", value, storages)
    write_json(folder / "params.json", params)
    return decode(folder)


PARAMS: dict[str, object] = {"dim": 4, "n_layers": 1, "n_heads": 2, "vocab_size": 6}
NORM = [([4], floats(1, 2, 3, 4))] * 2


def test_a_release_of_two_ranks_is_put_together() -> None:
    found = compare("hf/meta_consolidated_mp2")
    assert {tensor.name for tensor in found.tensors} == set(
        expected(FIXTURES / "hf" / "meta_consolidated_mp2")
    )
    assert "consolidated.dimensions" not in found.codes
    assert named(found, "consolidated.cut_inferred")["count"] == len(found.tensors)
    assert all((tensor.note or "").startswith("inferred") for tensor in found.tensors)
    assert {fragment.label for tensor in found.tensors for fragment in tensor.fragments} == {0, 1}


def test_the_axis_of_the_embedding_follows_from_its_shape(tmp_path: Path) -> None:
    rows = release(
        tmp_path / "rows",
        {"tok_embeddings.weight": [([3, 4], bytes(48)), ([3, 4], bytes(48))], "norm.weight": NORM},
        PARAMS,
    )
    columns = release(
        tmp_path / "columns", {"tok_embeddings.weight": [([6, 2], bytes(48)), ([6, 2], bytes(48))]}, PARAMS
    )
    for found, axis in ((rows, 0), (columns, 1)):
        tensor = found.named("tok_embeddings.weight")
        assert tensor.shape == (6, 4)
        assert f"axis {axis}" in (tensor.note or "")
    assert value(rows, rows.named("norm.weight")) == floats(1, 2, 3, 4)


def test_what_does_not_follow_is_listed_rank_by_rank(tmp_path: Path) -> None:
    found = release(
        tmp_path,
        {"norm.weight": NORM, "layers.0.strange.weight": [([2, 4], bytes(32)), ([2, 4], bytes(32))]},
        PARAMS,
    )
    assert named(found, "consolidated.cut_unproven")["tensor"] == "layers.0.strange.weight"
    held = [tensor for tensor in found.tensors if tensor.name == "layers.0.strange.weight"]
    assert [tensor.fragments[0].label for tensor in held] == [0, 1]
    assert "consolidated.dimensions" in found.codes


def test_copies_that_differ_and_parts_alike_of_unknown_width_are_not_believed(tmp_path: Path) -> None:
    other = [([4], floats(1, 2, 3, 4)), ([4], floats(1, 2, 3, 5))]
    alike = [([3, 4], bytes(48)), ([3, 4], bytes(48))]
    found = release(tmp_path, {"norm.weight": other, "layers.0.feed_forward.w1.weight": alike}, PARAMS)
    assert named(found, "consolidated.cut_unproven")["count"] == 2
    unlike = [([3, 4], bytes(48)), ([3, 4], floats(*range(12)))]
    found = release(tmp_path, {"norm.weight": NORM, "layers.0.feed_forward.w1.weight": unlike}, PARAMS)
    assert found.named("layers.0.feed_forward.w1.weight").shape == (6, 4)


def test_a_rank_that_is_absent_leaves_nothing_whole(tmp_path: Path) -> None:
    copied("hf/meta_consolidated_mp2", tmp_path)
    (tmp_path / "consolidated.00.pth").unlink()
    found = decode(tmp_path)
    assert {"consolidated.rank_missing", "consolidated.cut_unproven"} <= found.errors


# -- NeMo


def nemo(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_weights_are_read_where_they_stand_in_an_archive(tmp_path: Path) -> None:
    weights = save(tmp_path / "w", {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)}).read_bytes()
    (tmp_path / "w").unlink()
    path = nemo(
        tmp_path / "m.nemo",
        {"./model_config.yaml": b"a: 1\n", "./" + "long/" * 40 + "x": b"y", "./model_weights.ckpt": weights},
    )
    found = decode(path)
    assert value_of(found, "a") == floats(1, 2)
    assert "layout.recognised_only" not in found.codes
    assert checked(path, found).records == 1
    for members, code in (
        ({"model_config.yaml": b""}, "nemo.weights_missing"),
        ({"mp_rank_00/model_weights.ckpt": weights, "mp_rank_01/model_weights.ckpt": weights}, "nemo.inside"),
        ({"model_weights/.metadata": b"x", "model_weights/__0_0.distcp": b"x"}, "nemo.inside"),
    ):
        found = decode(nemo(path, members))
        assert code in found.errors
        assert not found.tensors
    assert "nemo.compressed" in decode(nemo(path, {"model_weights.ckpt": weights}, "w:gz")).errors
    data = bytearray(nemo(path, {"model_weights.ckpt": weights}).read_bytes())
    data[130] ^= 1
    path.write_bytes(data)
    assert "tar.header" in decode(path).errors


def test_an_unpacked_archive_is_a_torch_file_beside_its_configuration(tmp_path: Path) -> None:
    save(tmp_path / "model_weights.ckpt", {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)})
    (tmp_path / "model_config.yaml").write_text("a: 1\n")
    assert value_of(decode(tmp_path), "a") == floats(1, 2)


def test_our_archives_are_read_by_the_standard_library_too(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt", {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("archive/data/0") == floats(1, 2)
    assert msgspec.structs.asdict(Record("x"))["crc"] is None


def test_checksums_are_compared_where_a_person_asks_for_it(tmp_path: Path) -> None:
    copied("torch/zip_shared_storage", tmp_path)

    def looked_at() -> Descriptor:
        wish = Decoding(Intent("inspect", "command line"), checksums=True)  # an intent is good for one run
        return inspect(tmp_path, digest="none", decoding=wish).descriptor

    descriptor = looked_at()
    assert the(descriptor, "torch.records_checked").params["count"] == 2
    assert isinstance(descriptor.decoded, DecodedPlane)
    assert descriptor.decoded.payload_bytes == the(descriptor, "torch.records_checked").params["size"]
    record = decode(tmp_path).tensors[0].fragments[0].record
    data = bytearray((tmp_path / "model.pt").read_bytes())
    data[record.begin] ^= 1
    (tmp_path / "model.pt").write_bytes(data)
    descriptor = looked_at()
    assert the(descriptor, "torch.record_crc").blocks == ("convert", "load")
    assert the(descriptor, "torch.records_checked").params["count"] == 1

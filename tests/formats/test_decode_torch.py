"""Files of torch.save decoded: every fixture, names, parts, aliases, and what cannot be written out."""

from pathlib import Path

import pytest

from tests.formats.decoding import decode, expected
from tests.formats.looking import FIXTURES
from tests.formats.torch_decoding import compare, named, value_of
from tests.torchfiles import Called, Keyed, Tensor, floats, pickled, save

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


def test_tensors_that_a_foreign_object_is_made_of_are_listed_by_place(tmp_path: Path) -> None:
    def tensor(key: str) -> Tensor:
        return Tensor(key, 1, [1])

    value = {
        "named": Called("__main__", "Pair", (tensor("0"), 7)),
        "deep": Called("__main__", "Box", ({"w": [tensor("1")]},)),
        "slots": Called("__main__", "Cell", (), (3, tensor("2"))),
        "plain": Called("__main__", "Colour", (1,)),
    }
    found = decode(save(tmp_path / "m.pt", value, {key: floats(float(key)) for key in "012"}))
    assert {each.name: value_of(found, each.name) for each in found.tensors} == {
        "named.0": floats(0),
        "deep.0.w.0": floats(1),
        "slots.0.1": floats(2),
    }


def test_a_random_generator_of_numpy_is_understood(tmp_path: Path) -> None:
    seeds = Called(
        "numpy.random.bit_generator",
        "__pyx_unpickle_SeedSequence",
        ("SeedSequence", 65708578, None),
        (1, 0, None, 4, ()),
    )
    bits = Called(
        "numpy.random._pickle",
        "__bit_generator_ctor",
        ("PCG64",),
        ({"bit_generator": "PCG64", "state": {"state": 1 << 100}}, seeds),
    )
    generator = Called("numpy.random._pickle", "__generator_ctor", (bits,))
    found = decode(save(tmp_path / "m.pt", {"rng": generator, "w": Tensor("0", 1, [1])}, {"0": floats(1)}))
    assert [tensor.name for tensor in found.tensors] == ["w"]
    assert not [code for code in found.codes if code.startswith("pickle.")]


def test_a_pickle_that_lost_its_archive_has_tensors_without_bytes(tmp_path: Path) -> None:
    (tmp_path / "data.pkl").write_bytes(pickled({"a": Tensor("0", 2, [2])}))
    found = decode(tmp_path / "data.pkl")
    assert named(found, "torch.tensor_lost")["tensor"] == "a"

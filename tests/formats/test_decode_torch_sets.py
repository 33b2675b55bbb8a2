"""Sets of torch files decoded: Hugging Face shards, Meta's releases, NeMo archives."""

import io
import tarfile
from pathlib import Path

import pytest

from tests.checkpoints import write_json
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES, copied
from tests.formats.torch_decoding import checked, compare, named, value_of
from tests.torchfiles import Tensor, floats, save


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

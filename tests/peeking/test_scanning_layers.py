"""Layers and experts that are copies of each other, or nearly, and findings that are said once of many tensors."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.scan import ScanDocument
from shardscope.engine.peeking.scanning import scan

Scan = Callable[[dict[str, np.ndarray]], ScanDocument]
chance = np.random.default_rng(10)


def noise(*shape: int, size: float = 0.02) -> np.ndarray:
    return (chance.standard_normal(shape) * size).astype("f4")


def layer(width: int = 48) -> dict[str, np.ndarray]:
    norm = 1 + noise(width)
    return {"q.weight": noise(width, width), "up.weight": noise(2 * width, width), "norm.weight": norm}


@pytest.fixture
def scanned(tmp_path: Path) -> Scan:
    def work(tensors: dict[str, np.ndarray]) -> ScanDocument:
        save_file(tensors, tmp_path / "model.safetensors")
        return scan(tmp_path / "model.safetensors")

    return work


def model(layers: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {
        f"model.layers.{n}.{name}": value for n, some in enumerate(layers) for name, value in some.items()
    }


def told(document: ScanDocument, code: str) -> list[Blocker]:
    return [each for each in document.findings if each.code == code]


def test_layers_of_a_model_that_was_trained_are_no_copies(scanned: Scan) -> None:
    assert not scanned(model([layer() for _ in range(8)])).findings


def test_layers_that_were_copied_by_upscaling_are_one_finding(scanned: Scan) -> None:
    layers = [layer() for _ in range(6)]

    document = scanned(model([*layers, *layers[2:]]))

    (found,) = document.findings
    assert found.code == "scan.duplicate_layer"
    assert found.params == {
        "tensor": "model.layers.{6-9}",
        "other": "model.layers.{2-5}",
        "count": 3,
        "total": 3,
    }
    assert found.subject is not None
    assert found.subject.startswith("model.layers.6.")


def test_layers_that_were_trained_a_little_after_they_were_copied_are_nearly_equal(scanned: Scan) -> None:
    layers = [layer(), layer()]
    later = {
        name: (value + noise(*value.shape, size=0.0004)).astype("f4") for name, value in layers[1].items()
    }

    document = scanned(model([*layers, later]))

    (found,) = document.findings
    assert found.code == "scan.near_duplicate"
    assert (found.params["tensor"], found.params["other"]) == ("model.layers.2", "model.layers.1")
    assert (found.params["count"], found.params["total"]) == (3, 3)
    one, two = (value.astype("f8").ravel() for value in (layers[1]["q.weight"], later["q.weight"]))
    assert float(str(found.params["cosine"])) <= one @ two / np.linalg.norm(one) / np.linalg.norm(two) + 1e-6
    assert 0.015 < float(str(found.params["apart"])) < 0.025


def test_norms_that_are_alike_make_no_layers_alike(scanned: Scan) -> None:
    layers = [layer(), layer()]
    layers[1]["norm.weight"] = (layers[0]["norm.weight"] + noise(48, size=0.0002)).astype("f4")

    assert not scanned(model(layers)).findings


def test_one_tensor_alone_that_was_copied_says_of_how_many(scanned: Scan) -> None:
    layers = [layer() for _ in range(3)]
    layers[2]["up.weight"] = layers[0]["up.weight"]

    (found,) = scanned(model(layers)).findings

    assert (found.params["tensor"], found.params["other"]) == ("model.layers.2", "model.layers.0")
    assert (found.params["count"], found.params["total"]) == (1, 3)


def test_experts_that_are_all_equal_are_said_once_for_all_layers(scanned: Scan) -> None:
    tensors = {}
    for number in range(3):
        value = noise(32, 32)
        for expert in range(4):
            tensors[f"layers.{number}.mlp.experts.{expert}.up.weight"] = value
        tensors[f"layers.{number}.mlp.gate.weight"] = noise(4, 32)

    (found,) = scanned(tensors).findings

    assert found.code == "scan.equal_experts"
    assert found.params == {"tensor": "layers.{0-2}.mlp.experts", "count": 4}


def test_some_experts_that_are_equal_are_named(scanned: Scan) -> None:
    values = [noise(32, 32) for _ in range(4)]
    values[3] = values[1]

    (found,) = scanned({f"experts.{n}.up.weight": value for n, value in enumerate(values)}).findings

    assert found.code == "scan.duplicate_layer"
    assert (found.params["tensor"], found.params["other"]) == ("experts.3", "experts.1")


def test_new_biases_and_norms_make_no_layers_equal_and_are_said_once(scanned: Scan) -> None:
    tensors = {}
    for number in range(5):
        tensors[f"layers.{number}.w"] = noise(32, 32)
        tensors[f"layers.{number}.bias"] = np.zeros(32, "f4")
        tensors[f"layers.{number}.norm"] = np.ones(32, "f4")

    document = scanned(tensors)

    assert {(each.code, each.params["tensor"], each.params["numbers"]) for each in document.findings} == {
        ("scan.zeros", "layers.{0-4}.bias", 160),
        ("scan.constant", "layers.{0-4}.norm", 160),
    }


def test_a_weight_that_was_untied_is_a_plain_copy(scanned: Scan) -> None:
    value = noise(40, 40)

    (found,) = scanned({"embed.weight": value, "lm_head.weight": value}).findings

    assert found.code == "scan.duplicate"
    assert {found.params["tensor"], found.params["other"]} == {"embed.weight", "lm_head.weight"}


def test_permuted_numbers_are_no_copies(scanned: Scan) -> None:
    value = noise(40, 40)

    assert not scanned({"a.weight": value, "b.weight": value[::-1].copy()}).findings


def test_dead_channels_are_counted_whatever_the_signs_of_zeros(scanned: Scan) -> None:
    value = noise(60, 50)
    value[[7, 9]] *= 0
    value[:, 4] *= 0
    value[3] = 0.5

    (found,) = scanned({"w": value}).findings

    assert found.code == "scan.dead_channels"
    assert {key: found.params[key] for key in ("rows", "all_rows", "columns", "all_columns")} == {
        "rows": 3,
        "all_rows": 60,
        "columns": 0,
        "all_columns": 50,
    }


def test_what_half_precision_cannot_hold_is_said(scanned: Scan) -> None:
    large, tiny, fits = noise(8, 8), noise(8, 8), noise(8, 8).astype("f2")
    large[2, 2], tiny[1, 1] = -70_000, 1e-40
    fits[0, 0] = 6e-8

    document = scanned({"large": large, "tiny": tiny, "fits": fits})

    (over,), (under,) = told(document, "scan.f16_overflow"), told(document, "scan.subnormal")
    assert (over.subject, over.params["value"]) == ("large", "70000")
    assert (under.subject, under.params["exponent"]) == ("tiny", "-133")
    assert len(document.findings) == 2

"""docs/geometry.md and the maps of the gallery say what the engine does."""

import json
import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from shardscope.engine import Planner, read_shard_map
from shardscope.engine.geometry.constructors import attention, cuts, flat
from shardscope.engine.geometry.language.document import read_document
from shardscope.engine.model.shardmap import Contiguous, Node, TensorMap
from tests.geometry.documentation import examples, meaning
from tests.geometry.trees import Shown, evaluate

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "geometry.md").read_text(encoding="utf-8")
MAPS = sorted(path.stem for path in (DOCS / "maps").glob("*.json"))
GALLERY = (DOCS / "gallery.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", list(examples(PAGE)), ids=lambda example: example.map[:60])
def test_every_example_of_the_page_is_what_the_engine_says(example: tuple[str, str]) -> None:
    written, says = example

    assert says == meaning(written)


def test_the_page_has_an_example_of_every_node_and_of_both_refusals() -> None:
    shown = list(examples(PAGE))
    tags = {kind.__struct_config__.tag for kind in get_args(Node)}

    assert {tag for tag in tags if any(f'"{tag}"' in one.map for one in shown)} == tags
    assert {
        code for code in ("map.invalid", "map.unproven") if any(one.says.startswith(code) for one in shown)
    } == {
        "map.invalid",
        "map.unproven",
    }


def test_the_document_of_the_page_is_one() -> None:
    (text,) = [part.partition("```")[0] for part in PAGE.split("```json document\n")[1:]]

    read_document(json.loads(text), "geometry.md")


# R153 R154 R155 R156 R157 R169 R197
@pytest.mark.parametrize("name", MAPS)
def test_every_map_of_the_gallery_holds_together_and_is_shown(name: str) -> None:
    maps = read_shard_map(DOCS / "maps" / f"{name}.json")

    for tensor in maps.names:
        assert maps.check(tensor).invertible
    assert f"maps/{name}.json" in GALLERY


def node(name: str, tensor: str | None = None) -> TensorMap:
    maps = read_shard_map(DOCS / "maps" / f"{name}.json")
    tree = maps.tree(tensor or maps.names[0])
    assert tree is not None
    return tree[0]


# R194
def test_the_gallery_agrees_with_the_constructors() -> None:
    group = flat.zero_group([(7, 4), (9,), (5, 3)], 2)
    unit = flat.flat_parameter([(5, 4), (6,)], 2)
    two, four = cuts.mesh(tp=2), cuts.mesh(tp=4)
    data, wide = cuts.mesh(dp=2), cuts.mesh(dp=4)
    same = [
        (node("bloom"), attention.head_interleaved((24, 8), 2, 4), two),
        (node("codegen"), attention.codegen((24, 8), 2, 8), two),
        (node("gpt_bigcode"), attention.multi_query((48, 8), (8, 8, 8, 8)), four),
        (node("yuan", "v_proj.weight"), attention.shared_query_key((32, 8), 2, 8), two),
        (node("yuan", "o_proj.weight"), attention.shared_query_key((8, 32), 2, 8, dim=1), two),
        (node("gate_up"), cuts.gated((16, 8), 2), two),
        (node("vocabulary"), cuts.padded_vocabulary((10, 6), 4), four),
        (node("zero3"), flat.zero3((7, 5), 4), wide),
        *(
            (node("zero12", name), group.parameter(n), data)
            for n, name in enumerate(("a.weight", "a.bias", "b.weight"))
        ),
        *((node("fsdp_flat", name), unit.parameter(n), data) for n, name in enumerate(("weight", "bias"))),
    ]
    planner = Planner()
    for written, made, mesh in same:
        assert written.shape == made.shape
        assert planner.lower(written, mesh) == planner.lower(made, mesh)
    uneven = node("uneven_heads").map
    assert isinstance(uneven, Contiguous)
    assert cuts.grains(24, 4, 4) == (8, 8, 4, 4) == uneven.widths


def test_codegen_deals_blocks_as_its_rule_says() -> None:
    full = np.arange(math.prod((24, 8)), dtype=np.int64).reshape(24, 8)
    for rank in range(2):
        held: Shown = evaluate(node("codegen").map, full, {"tp": rank}, {"tp": 2})
        rows = [int(row) // 8 for row in held.elements[:, 0]]
        expected = []
        for e in range(4):
            for third in range(3):
                block, within = divmod(4 * rank + e, 2)
                expected.append(block * 6 + third * 2 + within)
        assert rows == expected

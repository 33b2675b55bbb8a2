"""Outlines of pickles: what a person sees of a graph, bounded, harmless, and each shared thing once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine import inspect
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.outline import OutlineNode
from shardscope.engine.model.pickled import (
    Bytes,
    Items,
    Long,
    Named,
    Node,
    Pairs,
    Pickled,
    PickledStorage,
    PickledTensor,
    Plain,
    Record,
    ReferenceUse,
)
from shardscope.engine.model.text import UNSAFE
from shardscope.engine.parse.pickled.outline import LONGEST, WIDE, outline
from tests import torchfiles
from tests.hostile import HOSTILE


def pickled(*nodes: Node, roots: tuple[int, ...] = (0,), known: tuple[tuple[str, str], ...] = ()) -> Pickled:
    references = tuple(ReferenceUse(module, name, "named", 1, True) for module, name in known)
    storages = (PickledStorage("0", "F32", "cuda:0", 8),)
    return Pickled(nodes, roots, storages, references, (0,), 1, 2)


def lines(nodes: tuple[OutlineNode, ...]) -> list[str]:
    depth: list[int] = []
    for node in nodes:
        depth.append(0 if node.parent < 0 else depth[node.parent] + 1)
    return [f"{'  ' * level}{node.key}: {node.words}" for level, node in zip(depth, nodes, strict=True)]


def test_every_kind_of_node_has_words() -> None:
    found = outline(
        pickled(
            Pairs("dict", (1, 1, 2), (3, 4, 5)),
            Plain("key"),
            Plain(7),
            Items("list", (6, 7)),
            PickledTensor("strided", "F32", (2, 2), (2, 1), 0, 0, parameter=True, state=8),
            Record("Namespace", ("a",), (9,)),
            Bytes(b"abc"),
            Long("ffffffffffffffffff"),
            Named("torch", "bfloat16", False),
            Plain(None),
            known=(("torch", "bfloat16"),),
        )
    )
    assert lines(found) == [
        "object: dict of 3 keys",
        "  key: list of 2 items",
        "  key: F32 [2, 2]  storage 0, saved from cuda:0  parameter",
        "  7: Namespace of 1 field",
        "    [0]: 3 bytes: 61 62 63",
        "    [1]: 0xffffffffffffffffff",
        "    attributes: torch.bfloat16",
        "    a: None",
    ]
    assert not any(node.foreign for node in found)


def test_foreign_names_are_told() -> None:
    found = outline(pickled(Named("os", "system", True, others=1), Items("tuple", ())))
    assert (found[0].words, found[0].foreign) == ("os.system (called)", True)


def test_what_is_shared_is_opened_once_and_a_cycle_ends() -> None:
    found = outline(pickled(Items("list", (0, 1, 1)), Items("list", (2,)), Plain(1)))
    assert lines(found) == [
        "object: list of 3 items",
        "  [0]: the same as object",
        "  [1]: list of 1 item",
        "  [2]: the same as [1]",
        "    [0]: 1",
    ]


def test_it_is_bounded_and_says_what_is_left_out() -> None:
    wide = outline(pickled(Items("list", (1,) * 10_000), Plain(1)))
    assert len(wide) == WIDE + 1
    assert wide[0].left_out == 10_000 - WIDE
    few = outline(pickled(Items("list", (1,) * 10), Items("list", (2, 2)), Plain(1)), limit=6)
    assert len(few) <= 6
    assert few[0].left_out == 5
    long = outline(pickled(Plain("x" * 10_000)))
    assert len(long[0].words) <= LONGEST + 2


@given(st.lists(st.lists(st.integers(0, 7), max_size=5), min_size=8, max_size=8), st.integers(1, 12))
def test_any_graph_is_a_tree_within_the_bound(edges: list[list[int]], limit: int) -> None:
    nodes = [Items("list", tuple(each)) for each in edges]
    found = outline(pickled(*nodes), limit=limit)
    assert 1 <= len(found) <= limit
    for place, node in enumerate(found):
        assert node.parent < place
        held = sum(each.parent == place for each in found)
        if node.kind != "shared":
            assert f"list of {held + node.left_out} item" in node.words


@pytest.mark.parametrize("raw", [raw for raw, _ in HOSTILE.values()])
def test_every_text_is_harmless(raw: str) -> None:
    found = outline(
        pickled(
            Pairs("dict", (1, 3), (1, 2)),
            Plain(raw),
            Named(raw, raw, True),
            Plain(f"{raw}2"),
        )
    )
    assert not any(UNSAFE.search(node.key + node.words) for node in found)


def test_decoding_keeps_outlines_on_request(tmp_path: Path) -> None:  # R032
    value = {"w": torchfiles.Tensor("0", 4, (2, 2)), "step": 3}
    torchfiles.save(tmp_path / "pytorch_model.bin", value, {"0": bytes(16)})
    wish = Decoding(Intent("inspect", "command line"))
    assert inspect(tmp_path, decoding=wish).outlines == ()
    (found,) = inspect(tmp_path, decoding=Decoding(Intent("inspect", "command line"), outlines=True)).outlines
    assert found.file == "pytorch_model.bin"
    assert [node.key for node in found.nodes[:3]] == ["object", "w", "step"]
    assert not found.left_out

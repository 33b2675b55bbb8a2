"""Facts of a pickle as plain data: bounded, whatever the facts are."""

import pytest

from shardscope.engine.formats.decode import plain as module
from shardscope.engine.formats.decode.plain import plain
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import Items, Named, Node, Pairs, Pickled, Plain
from shardscope.engine.parse.pickled.tree import Tree


def tree(*nodes: Node) -> Tree:
    """Return facts whose root is the last node."""
    return Tree(Pickled(list(nodes), [len(nodes) - 1], [], [], [0], 0, 2))


def made(*nodes: Node) -> object:
    """Return what the last node holds."""
    return plain(tree(*nodes), len(nodes) - 1, "entry")


def test_mappings_lists_and_values_are_those_of_python() -> None:
    nodes = (Plain("k"), Plain(3), Items("tuple", [1, 1]), Pairs("OrderedDict", [0, 1], [2, 0]))
    assert made(*nodes) == {"k": [3, 3], 3: "k"}
    assert plain(tree(Plain(1)), None, "entry") is None
    assert made(Named("m", "n", called=True)) is None


def test_shared_parts_stay_shared() -> None:
    found = made(Plain(1), Items("list", [0]), Items("list", [1, 1]))
    assert isinstance(found, list)
    assert found[0] is found[1]


def test_what_holds_itself_is_refused() -> None:
    with pytest.raises(Fault) as caught:
        made(Items("list", [1]), Items("list", [0]))
    assert caught.value.finding.params["reason"] == "it holds itself"


def test_depth_and_size_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: list[Node] = [Plain(1)]
    for _ in range(70):
        deep.append(Items("list", [len(deep) - 1]))
    with pytest.raises(Fault, match=r"deepspeed\.entry_unreadable"):
        made(*deep)
    monkeypatch.setattr(module, "_MOST_VALUES", 1_000)
    laughs: list[Node] = [Plain(1)]
    for _ in range(12):
        laughs.append(Items("list", [len(laughs) - 1] * 4))
    with pytest.raises(Fault, match=r"deepspeed\.entry_unreadable"):
        made(*laughs)

"""The module tree: grouping, folding layers that are alike, the odd one out, and what it says on the screen."""

import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.fakes import tensor_table
from tests.conftest import settle
from tests.hostile import HOSTILE
from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import UNSAFE
from shardscope.widgets import tensor_tree
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.tensor_folds import ranges
from shardscope.widgets.tensor_marks import TensorMarks
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.tensor_tree import ModuleTree

Shape = tuple[int, ...]


def model(layers: int = 6, odd: int | None = 5, experts: int = 8) -> TensorTable:
    """Return a small mixture of experts; layer `odd` has another shape and an additional bias."""

    def rows() -> Iterable[tuple[str, str, Shape, int, str]]:
        yield "model.embed.weight", "BF16", (100, 8), 1_600, "a.safetensors"
        for layer in range(layers):
            shape = (4, 4) if layer == odd else (8, 4)
            yield f"model.layers.{layer}.attn.q.weight", "BF16", shape, 2 * shape[0] * 4, "a.safetensors"
            yield f"model.layers.{layer}.norm.weight", "F32", (8,), 32, "a.safetensors"
            if layer == odd:
                yield f"model.layers.{layer}.attn.q.bias", "BF16", (4,), 8, "a.safetensors"
            for expert in range(experts):
                yield f"model.layers.{layer}.experts.{expert}.w", "F32", (2, 2), 16, "b.safetensors"
        yield "head.weight", "BF16", (100, 8), 1_600, "b.safetensors"

    return tensor_table(rows())


def below(tree: ModuleTree, *labels: str) -> list[str]:
    """Return the labels of what the branch under `labels` holds."""
    return [text(tree, child) for child in tree.children(find(tree, *labels))]


def find(tree: ModuleTree, *labels: str) -> int | None:
    node = None
    for label in labels:
        node = next(child for child in tree.children(node) if text(tree, child) == label)
    return node


def text(tree: ModuleTree, node: int) -> str:
    label = tree.label(node)
    return label if isinstance(label, str) else label[0]


def leaves(tree: ModuleTree, node: int | None = None) -> list[int]:
    """Return all tensors of the tree, every branch opened."""
    found: list[int] = []
    for child in tree.children(node):
        if tree.is_branch(child):
            assert tree.parent(child) == node
            inner = leaves(tree, child)
            assert sorted(inner) == sorted(tree.rows(child))
            assert tree.bytes(child) == sum(map(tree.bytes, inner))
            found += inner
        else:
            assert tree.parent(child) == node
            found.append(child)
    return found


def test_layers_that_are_alike_are_one_row_and_the_odd_one_is_shown() -> None:
    tree = ModuleTree(model())
    assert below(tree) == ["head.weight", "model"]
    assert below(tree, "model") == ["embed.weight", "layers"]
    assert below(tree, "model", "layers") == ["0-4  x5", "5"]
    assert below(tree, "model", "layers", "0-4  x5") == ["0", "1", "2", "3", "4"]
    assert below(tree, "model", "layers", "5") == ["attn.q", "experts", "norm.weight"]
    assert below(tree, "model", "layers", "5", "experts") == ["0-7  x8"]
    assert below(tree, "model", "layers", "5", "experts", "0-7  x8") == [f"{n}.w" for n in range(8)]


def test_the_odd_one_has_a_mark_and_tells_how_it_differs() -> None:
    tree = ModuleTree(model())
    odd = find(tree, "model", "layers", "5")
    assert odd is not None
    assert [letter for letter, _ in tree.marks(odd)] == ["d"]
    assert tree.difference(odd) == "adds attn.q.bias; other type or shape: attn.q.weight"
    assert tree.words(odd) == (
        "model.layers.5  11 tensors  adds attn.q.bias; other type or shape: attn.q.weight"
    )
    fold = find(tree, "model", "layers", "0-4  x5")
    assert fold is not None
    assert tree.name(fold) == "model.layers.{0-4}"
    assert not tree.marks(fold)
    assert tree.difference(fold) == ""


def test_a_branch_tells_counts_types_and_bytes() -> None:
    tree = ModuleTree(model())
    layers = find(tree, "model", "layers")
    assert layers is not None
    assert len(tree.rows(layers)) == 6 * 10 + 1
    assert tree.kind(layers) == "F32 BF16"
    assert tree.detail(layers) == "1.3 KiB"
    embed = find(tree, "model", "embed.weight")
    assert embed is not None
    assert tree.kind(embed) == "BF16 [100, 8]"


def test_two_that_are_alike_are_not_folded_and_nothing_is_where_folding_is_off() -> None:
    assert below(ModuleTree(model(layers=2, odd=None)), "model", "layers") == ["0", "1"]
    assert below(ModuleTree(model(odd=None), folded=False), "model", "layers") == list("012345")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0, 1, 2, 31], "0-2, 31"),
        ([7], "7"),
        (list(range(32)), "0-31"),
        ([0, 2, 4, 6, 8], "0, 2, 4 ... 8"),
    ],
)
def test_numbers_in_words(numbers: list[int], words: str) -> None:
    assert ranges(numbers) == words


def test_names_that_are_odd_each_have_a_row() -> None:
    names = ["a", "a", "a.b", "a.", "", ".", "..", "a/b/c", "0", "1", "2", "٣", "a.0", "a.1", "a.2", "a.02"]
    tree = ModuleTree(tensor_table((name, "F32", (), 4, "f") for name in names))
    assert sorted(leaves(tree)) == list(range(len(names)))


@given(st.lists(st.text(st.sampled_from("ab01./\x1b"), max_size=9), max_size=40))
def test_every_tensor_is_in_the_tree_once(names: list[str]) -> None:
    tree = ModuleTree(tensor_table((name, "F32", (), 4, "f") for name in names))
    assert sorted(leaves(tree)) == list(range(len(names)))
    for row in range(len(names)):
        assert tree.way(row) is not None


def test_numbers_that_no_layer_has_are_no_numbers() -> None:
    names = [f"a.{'9' * 5_000}{n}.w" for n in range(4)] + [f"a.{n}.w" for n in ("0", "00", "1")]
    tree = ModuleTree(tensor_table((name, "F32", (), 4, "f") for name in names))
    assert sorted(leaves(tree)) == list(range(7))
    assert sum(text(tree, child).startswith("999") for child in tree.children(find(tree, "a"))) == 4


def test_members_of_a_fold_are_what_they_were() -> None:
    table = model()
    tree = ModuleTree(table)
    fold = find(tree, "model", "layers", "0-4  x5")
    for child in tree.children(fold):
        prefix = f"model.layers.{text(tree, child)}."
        assert all(table.names[row].startswith(prefix) for row in tree.rows(child))


def test_the_largest_come_first_on_request() -> None:
    tree = ModuleTree(model())
    tree.largest_first = True
    sizes = [tree.bytes(child) for child in tree.children(find(tree, "model"))]
    assert sizes == sorted(sizes, reverse=True)


def test_large_branches_wait_for_a_worker_that_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_tree, "INLINE", 20)
    tree = ModuleTree(model())
    assert not tree.is_ready(None)
    assert tree.way(3) is None
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        tree.group(None, cancel)
    groups = tree.group(None)
    tree.adopt(None, groups)
    tree.adopt(None, groups)
    assert below(tree) == ["head.weight", "model"]


# On the screen


async def test_t_turns_table_into_tree_with_the_cursor_on_the_same_tensor() -> None:
    panel = TensorPanel(model())
    app = Stage(panel)
    async with app.run_test(size=(80, 32)) as pilot:
        panel.rows.focus()
        await settle(pilot)
        wanted = "model.layers.3.experts.2.w"
        assert panel.find(wanted)
        await pilot.press("t")
        await settle(pilot)
        assert panel.tree_rows.has_focus
        assert panel.tensor is not None
        assert panel.tensor.name == wanted
        shown = screen_text(app)
        assert "0-4  x5" in shown
        assert "d 5" in shown
        assert wanted in shown

        await pilot.press("up", "up", "left", "t")
        await settle(pilot)
        assert panel.rows.has_focus
        assert panel.tensor is not None
        assert panel.tensor.name == "model.layers.3.experts.0.w"


async def test_a_search_is_a_table_and_the_tree_comes_back() -> None:
    panel = TensorPanel(model())
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.rows.focus()
        await pilot.press("t")
        await settle(pilot)
        panel.search()
        await pilot.press(*"norm")
        await settle(pilot)
        assert not panel.is_tree
        assert "6 of 63 tensors" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert panel.tree_rows.has_focus
        assert "layers" in screen_text(app)


async def test_tensors_and_modules_are_selected_and_their_names_given() -> None:
    panel = TensorPanel(model())
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.rows.focus()
        await settle(pilot)
        await pilot.press("space", "space")
        await settle(pilot)
        assert "* 2 selected, 1.6 KiB" in screen_text(app)
        await pilot.press("t", "end", "up")
        await settle(pilot)
        assert "+ model" in screen_text(app)
        await pilot.press("u", "home", "space")
        await settle(pilot)
        assert "* 1 selected" in screen_text(app)
        await pilot.press("c")
        await settle(pilot)
        (said,) = [each for each in app.said if isinstance(each, TensorPanel.NamesWanted)]
        assert list(said.names) == ["head.weight"]

        await pilot.press("a")
        await settle(pilot)
        assert "* 63 selected" in screen_text(app)
        await pilot.press("a")
        await settle(pilot)
        assert "selected" not in screen_text(app)


async def test_a_branch_of_very_many_is_grouped_beside_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_tree, "INLINE", 20)
    panel = TensorPanel(model())
    app = Stage(panel)
    async with app.run_test(size=(80, 24)) as pilot:
        panel.rows.focus()
        await pilot.press("t")
        await settle(pilot)
        await pilot.press("end", "enter")
        await settle(pilot)
        await pilot.press("end", "enter")
        await settle(pilot)
        assert "0-4  x5" in screen_text(app)


async def test_without_other_signs_it_is_ascii_and_narrow_ones_keep_name_and_bytes() -> None:
    panel = TensorPanel(samples.tensors(64), glyphs=ASCII)
    app = Stage(panel)
    async with app.run_test(size=(44, 40)) as pilot:
        panel.rows.focus()
        await pilot.press("t")
        await settle(pilot)
        shown = screen_text(app)
        assert shown.isascii()
        assert "0-15  x16" in shown
        assert "bytes" in shown
        assert "tensors  type" not in shown


async def test_no_name_in_the_tree_acts_on_the_terminal() -> None:
    names = [f"a.{raw}.{number}" for raw, _ in HOSTILE.values() for number in range(4)]
    panel = TensorPanel(tensor_table((name, "F32", (), 4, "f") for name in names))
    app = Stage(panel)
    async with app.run_test(size=(120, 60)) as pilot:
        panel.rows.focus()
        await pilot.press("t")
        await settle(pilot)
        for line in range(panel.tree_rows.row_count() - 1, -1, -1):
            panel.tree_rows.open_line(line)
        await settle(pilot)
        shown = screen_text(app)
        assert "0-3  x4" in shown
        assert not UNSAFE.search(shown.replace("\n", ""))


def test_a_selection_counts_what_it_holds_once() -> None:
    marks = TensorMarks(samples.tensors(40))
    marks.toggle(range(10))
    marks.toggle(range(5, 15))
    assert marks.count == 15
    marks.toggle(range(15))
    assert marks.count == marks.bytes == 0
    assert marks.sign(range(3)) == " "
    marks.toggle((1,))
    assert marks.sign(range(3)) == "+"
    assert marks.sign((1,)) == "*"
    assert 1 in marks
    assert marks.names() == [samples.tensors(40).names[1]]

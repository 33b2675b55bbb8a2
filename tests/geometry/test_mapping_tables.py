"""Mapping tables: the packaged ones are sound, templates mean what they say, and a table that contradicts itself is refused."""

import json
import time

import msgspec
import numpy as np
import pytest

from shardscope.engine.geometry.mapping.sections import Asked, sectioned, taken
from shardscope.engine.geometry.mapping.tables import LayoutTable, NamingTable
from shardscope.engine.geometry.mapping.templates import VARIANTS, Names, variants, written
from shardscope.engine.mappings import MEGATRON, META, NAMES, VLLM, read_table, table, tables
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapping import (
    Kind,
    Layout,
    Made,
    MappingDocument,
    ModelFacts,
    Naming,
    Section,
    Target,
    View,
)
from shardscope.engine.model.schemas import MAPPING

ASKED = Asked("table", "w")


def layout(*kinds: Kind) -> MappingDocument:
    return MappingDocument(MAPPING, "own", "title", "source", Layout(kinds=kinds))


def naming(*made: Made, on: str = "own") -> MappingDocument:
    return MappingDocument(MAPPING, "names", "title", "source", Naming(layout=on, models=(), made=made))


# --- templates


@pytest.mark.parametrize(
    ("template", "name", "numbers", "stacked"),
    [
        ("a.{layer}.w", "a.12.w", {"layer": 12}, ()),
        ("a[.{layer}].w", "a.3.w", {"layer": 3}, ()),
        ("a[.{layer}].w", "a.w", {}, ("layer",)),
        ("a[.{layer}].e[.{expert}].fc1.w", "a.e.7.fc1.w", {"expert": 7}, ("layer",)),
        ("a[.{layer}].e[.{expert}].fc1.w", "a.e.fc1.w", {}, ("layer", "expert")),
        ("fc1.w{expert}", "fc1.w9", {"expert": 9}, ()),
        ("(x|y).{layer}", "y.0", {"layer": 0}, ()),
    ],
)
def test_a_template_finds_its_numbers(
    template: str, name: str, numbers: dict[str, int], stacked: tuple[str, ...]
) -> None:
    names: Names[str] = Names()
    names.add(template, "it")
    ((variant, numbered, value),) = names.find(name)
    assert (numbered.numbers, numbered.stacked, value) == (numbers, stacked, "it")
    assert variant.written(numbers) == name


@pytest.mark.parametrize(
    "name", ["a.x.w", "a.01.w", "a..w", "a.1.w.", "b.1.w", "a.1.fc3", "a.#.w", "a.9999999999.w", "a.١.w", ""]
)
def test_other_names_are_not_found(name: str) -> None:
    names: Names[str] = Names()
    names.add("a.{layer}.w", "it")
    names.add("a.{layer}.fc2", "other")
    assert list(names.find(name)) == []


@pytest.mark.parametrize(
    "template",
    [
        "a[.b]", "a[.{x}", "a.{x}]", "a[[.{x}]]", "{x}{y}", "1{x}", "{x}.{x}", "a{", "a.{X}", "a|b", "(a(b))",
        "(a|b)" * 9, "a[.{x}{y}]",
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_told_apart_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        variants(template)


def test_a_template_is_written_with_numbers() -> None:
    assert written("m.layers.{layer}.w", {"layer": 4}) == "m.layers.4.w"
    assert len(variants("(a|b)(c|d).{x}")) == 4 <= VARIANTS


def test_finding_takes_no_longer_with_many_templates() -> None:
    names: Names[int] = Names()
    for number in range(2_000):
        names.add(f"kind_{'x' * (number % 50)}_{number}.{{layer}}.w", number)
    began = time.process_time()
    for layer in range(2_000):
        assert len(list(names.find(f"kind_{'x' * (layer % 50)}_{layer}.{layer}.w"))) == 1
    assert time.process_time() - began < 1.0


# --- sections


def test_sections_are_taken_in_their_order() -> None:
    rows = np.arange(2 * (2 + 1 + 1) * 3)
    view = View(
        0,
        ("groups",),
        (Section("query", "heads_per_group"), Section("key", 1), Section("value", 1)),
        ("head_size",),
    )
    facts = ModelFacts(heads=4, groups=2, head_size=3)
    cut = sectioned(view, rows.size, facts, ASKED)
    by_group = rows.reshape(2, 4, 3)
    for take, expected in ((("key",), by_group[:, 2]), (("query",), by_group[:, :2])):
        assert _made(rows, taken(rows.shape, 0, cut, take)).tolist() == expected.reshape(-1).tolist()
    both = _made(rows, taken(rows.shape, 0, cut, ("value", "key")))
    assert both.tolist() == [*by_group[:, 3].reshape(-1), *by_group[:, 2].reshape(-1)]


def test_factors_are_put_into_another_order() -> None:
    """Rotary rows in pairs, as Meta keeps them, and in halves."""
    rows = np.arange(2 * 3 * 2 * 5).reshape(12, 5)
    cut = sectioned(View(0, ("heads", None), (), (2,)), 12, ModelFacts(heads=2), ASKED)
    found = _made(rows, taken(rows.shape, 0, cut, (), (0, 3, 2, 1)))
    assert np.array_equal(found, rows.reshape(2, 3, 1, 2, 5).transpose(0, 3, 2, 1, 4).reshape(12, 5))


def _made(source: np.ndarray, part) -> np.ndarray:  # type: ignore[no-untyped-def]
    flat, out = source.reshape(-1), np.full(int(np.prod(part.shape)), -1)
    for block in part.blocks:
        for at in np.ndindex(*block.shape):
            place = block.b.offset + sum(i * s for i, s in zip(at, block.b.strides, strict=True))
            out[place] = flat[block.a.offset + sum(i * s for i, s in zip(at, block.a.strides, strict=True))]
    return out.reshape(part.shape)


@pytest.mark.parametrize(
    ("view", "extent", "code"),
    [
        (View(0, ("heads",)), 8, "mapping.fact_missing"),
        (View(0, (3,)), 8, "mapping.size"),
        (View(0, (), (Section("a"), Section("b"))), 7, "mapping.size"),
        (View(0, (), (Section("a", 9), Section("b"))), 8, "mapping.size"),
        (View(0, (None, None)), 8, "mapping.size"),
        (View(0, (None,), (Section("a"),)), 8, "mapping.size"),
        (View(0, (3, None)), 8, "mapping.size"),
    ],
)
def test_sections_that_do_not_come_to_the_extent_are_refused(view: View, extent: int, code: str) -> None:
    with pytest.raises(Fault) as caught:
        sectioned(view, extent, ModelFacts(), ASKED)
    assert caught.value.finding.code == code


# --- tables


def test_the_packaged_tables_are_sound() -> None:
    assert [one.name for one in tables()] == list(NAMES)
    layouts = {one.name: LayoutTable(one) for one in tables() if isinstance(one.table, Layout)}
    assert set(layouts) >= {MEGATRON, VLLM, META}
    assert all(layouts[name].layout.formats for name in (MEGATRON, VLLM, META))
    for one in tables():
        if isinstance(one.table, Naming):
            found = NamingTable(one, layouts[one.table.layout])
            assert found.naming.models
            assert set(layouts[one.table.layout].kinds) >= {made.of for made in found.naming.made}
    with pytest.raises(KeyError):
        table("other")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_read_as_it_is_written(name: str) -> None:
    assert read_table(msgspec.json.encode(table(name)), Limits()) == table(name)


def test_a_table_of_another_form_is_refused() -> None:
    document = json.loads(msgspec.json.encode(table(MEGATRON)))
    document["table"]["kinds"][0]["colour"] = "red"
    with pytest.raises(Fault) as caught:
        read_table(json.dumps(document).encode(), Limits())
    assert caught.value.finding.code == "mapping.invalid"
    assert caught.value.finding.params["place"] == "`$.table.kinds[0]`"


W = Kind("w", ("a.{layer}.w",), cut=0, view=View(0, (), (Section("x"), Section("y"))))


@pytest.mark.parametrize(
    "kind",
    [
        msgspec.structs.replace(W, names=("a.{layer",)),
        msgspec.structs.replace(W, aliases=("b.{other}.w",)),
        msgspec.structs.replace(W, each=True, cut=1),
        msgspec.structs.replace(W, each=True, view=None),
        msgspec.structs.replace(W, each=True, view=View(0, (2,), (Section("x"),))),
        msgspec.structs.replace(W, each=True, view=View(0, (), (Section("x", shared=True),))),
        msgspec.structs.replace(W, view=View(0, (), (Section("x", 2, shared=True),))),
    ],
)
def test_a_layout_that_contradicts_itself_is_refused(kind: Kind) -> None:
    with pytest.raises(Fault) as caught:
        LayoutTable(layout(kind))
    assert caught.value.finding.code == "mapping.invalid"


@pytest.mark.parametrize(
    "made",
    [
        Made("other", (Target("b"),)),
        Made("w", (Target("b", take=("z",)),)),
        Made("w", (Target("b.{expert}"),)),
        Made("w", (Target("b", order=(0, 2)),)),
        Made("w", (Target("(b|c)"),)),
    ],
)
def test_a_naming_that_its_layout_does_not_bear_is_refused(made: Made) -> None:
    base = LayoutTable(layout(W))
    assert NamingTable(naming(Made("w", (Target("b.{layer}", take=("x",)),))), base).made("w")
    with pytest.raises(Fault) as caught:
        NamingTable(naming(made), base)
    assert caught.value.finding.code == "mapping.invalid"
    for document in (naming(Made("w", ()), Made("w", ())), naming(on="megatron-core"), layout(W)):
        with pytest.raises(Fault):
            NamingTable(document, base)


def test_the_first_kind_whose_facts_hold_is_meant() -> None:
    kinds = (
        Kind("gated", ("f",), when={"gated": True}),
        Kind("plain", ("f",), when={"gated": False}),
        Kind("any", ("f",)),
    )
    base = LayoutTable(layout(*kinds))
    for gated, expected in ((True, "gated"), (False, "plain")):
        placed = base.place("f", ModelFacts(gated=gated))
        assert placed is not None
        assert placed.kind.id == expected
    with pytest.raises(Fault) as caught:
        base.place("f", ModelFacts())
    assert caught.value.finding.code == "mapping.fact_missing"

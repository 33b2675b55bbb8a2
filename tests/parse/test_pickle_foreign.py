"""Names outside of the table stay names, and nothing of any fixture runs."""

import gc
import math
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from shardscope.engine.model.blocker import Fault, Severity, blocker
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import (
    DcpChunks,
    Named,
    Pickled,
    PickledTensor,
)
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.pickled.table import TABLE
from shardscope.engine.parse.pickled.tree import Tree
from tests.parse.assembling import (
    ODICT,
    Called,
    Outside,
    Ref,
    codes,
    facts_of,
    tensor,
    tree_of,
)
from tests.parse.fixture_pickles import fixture_pickles


def test_a_name_outside_of_the_table_stays_a_name() -> None:
    found = facts_of([Ref("os", "system"), Called(Ref("os", "system"), ("true",)), tensor()])
    tree = Tree(found)

    assert tree.node(tree.get(0, 0)) == Named("os", "system", called=False)
    assert tree.node(tree.get(0, 1)) == Named("os", "system", called=True)
    assert tree.tensor(0, 2) is not None
    assert [(each.use, each.count) for each in found.references if not each.known] == [("called", 1)]
    said = [blocker(each, "file") for each in found.findings]
    assert [(each.code, each.severity) for each in said] == [("pickle.foreign_call", Severity.WARNING)]
    assert "os.system" in said[0].message


def test_foreign_calls_are_listed_up_to_a_bound_and_counted() -> None:
    found = facts_of([Called(Ref("m", f"f{number}")) for number in range(50)])
    said = [each.code for each in found.findings]
    assert said == ["pickle.foreign_call"] * 20 + ["pickle.foreign_calls_more"]
    assert found.findings[-1].params == {"count": 30}
    assert len(found.references) == 50


@pytest.mark.parametrize(
    "value",
    [
        Called(Ref("builtins", "getattr"), (ODICT, "keys")),
        Called(Ref("builtins", "getattr"), (Ref("torch", "Tensor"), "__reduce__")),
        Called(Called(Ref("builtins", "getattr"), (Ref("os", "path"), "join")), ("a",)),
        Called(Ref("torch", "float32")),
        Called(Ref("torch", "FloatStorage"), (4,)),
        Called(Called(Ref("functools", "partial"), (Ref("builtins", "print"),))),
    ],
)
def test_ways_around_the_table_are_foreign(value: Called) -> None:
    found = facts_of(value)
    assert isinstance(Tree(found).node(0), Named)
    assert "pickle.foreign_call" in {each.code for each in found.findings}


def test_what_is_put_into_an_opaque_object_stays_in_reach() -> None:
    module = Called(
        Ref("__main__", "Net"), (), [{"_parameters": {"w": tensor()}}], items=[("k", tensor())], new=True
    )
    tree = tree_of(module)
    root = tree.node(0)
    assert isinstance(root, Named)
    assert tree.tensor(root.state, "_parameters", "w") is not None
    assert tree.tensor(root.items, "k") is not None


def test_an_id_of_something_else_keeps_no_source() -> None:
    source = Outside(("module", Ref("__main__", "Net"), "/home/someone/train.py", "class Net: secret"))
    found = facts_of([source])
    assert Tree(found).node(1) == Named("module", "__main__.Net", called=False, persistent=True)
    assert b"secret" not in msgspec.msgpack.encode(found)
    assert b"someone" not in msgspec.msgpack.encode(found)
    assert codes([Outside(7)]) == {"pickle.persistent_id"}


@pytest.mark.parametrize("key", [[], {}, {1}, ([],), ((1, ([],)),)])
def test_a_key_that_none_can_be_refuses_the_pickle(key: object) -> None:
    with pytest.raises(Fault) as caught:
        facts_of(Called(Ref("collections", "OrderedDict"), items=[(key, 1)]))
    assert caught.value.finding.code == "pickle.key"


def test_keys_that_come_twice_are_counted() -> None:
    twice = Called(
        Ref("collections", "OrderedDict"),
        items=[("a", 1), ("a", 2), (1, 1), (1.0, 1), (True, 1), (math.nan, 1), (math.nan, 1), ("1", 1)],
    )
    found = facts_of(twice)
    assert [(each.code, each.params) for each in found.findings] == [("pickle.duplicate_key", {"count": 3})]


def test_nested_files_of_torch_are_kept_and_not_read() -> None:
    found = facts_of(Called(Ref("torch.storage", "_load_from_bytes"), (b"\x80\x02N.",)))
    assert [each.code for each in found.findings] == ["pickle.nested"]


def test_every_pickle_of_every_fixture_is_read_and_passes_the_wire() -> None:
    foreign: set[str] = set()
    count = 0
    for found in fixture_pickles():
        if found.file.endswith("zip_truncated/checkpoint/model.pt"):
            continue
        pickled = read_pickles(found.data, DecodeLimits(), pickles=found.pickles)
        assert [
            each.code for each in pickled.findings if each.code in ("pickle.arguments", "pickle.key")
        ] == []
        foreign |= {f"{each.module}.{each.name}" for each in pickled.references if not each.known}
        wire = msgspec.msgpack.encode(pickled)
        assert msgspec.msgpack.encode(msgspec.msgpack.decode(wire, type=Pickled)) == wire
        count += 1
    assert count > 1_000
    assert foreign == {"posix.mkdir", "__main__.Net", "torch.nn.modules.linear.Linear"}


def test_a_canary_does_not_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # R032
    monkeypatch.chdir(tmp_path)
    canaries = [found for found in fixture_pickles() if b"PICKLE_WAS_EXECUTED" in found.data]
    assert len(canaries) == 2
    for found in canaries:
        pickled = read_pickles(found.data, DecodeLimits())
        assert [each.params["reference"] for each in pickled.findings] == ["posix.mkdir"]
        kinds = {type(each) for each in pickled.nodes}
        assert kinds & {PickledTensor, DcpChunks}  # what is around it is read
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_closed_and_made_of_pairs() -> None:
    assert all(module and name for module, name in TABLE.calls)
    assert not TABLE.calls.keys() & TABLE.names
    for key in (
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "print"),
        ("subprocess", "Popen"),
    ):
        assert not TABLE.knows(key)


def test_reading_leaves_the_collector_as_it_was() -> None:
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            read_pickles(b"N.", DecodeLimits())
            with pytest.raises(Fault):
                read_pickles(b"N", DecodeLimits())
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


def test_the_decoder_imports_little() -> None:
    """The worker starts for each decoding: what is imported is waited for."""
    script = (
        "import sys; from shardscope.engine.model.limits import DecodeLimits; "
        "from shardscope.engine.parse.pickled import read_pickles; read_pickles(b'N.', DecodeLimits()); "
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert (
        loaded & {"numpy", "textual", "orjson", "asyncio", "pickle", "pickletools", "humanize", "json"}
        == set()
    )
    ours = {name for name in loaded if name.startswith("shardscope.")}
    rooms = ("shardscope.engine.model", "shardscope.engine.parse.pickle")
    assert {name for name in ours if not name.startswith(rooms)} == {
        "shardscope.engine",
        "shardscope.engine.parse",
    }

"""Every case of group D, a pickle each, through the decoder: class, code, facts, time and memory."""

import sys
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shardscope.engine.model.blocker import Blocker, Blocks, Fault, Finding, Severity, blocker
from shardscope.engine.model.codes import CODES as TABLE
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Items, Long, Named, Pickled, PickledTensor
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.pickled.tree import Tree
from shardscope.engine.parse.torch_storages import LEGACY_OBJECT, LEGACY_PICKLES, in_stream
from tests.corpus.decoding import CODES, DEVIATIONS, UNDERSTOOD, expected
from tests.corpus.expectations import Case
from tests.parse.readers import FileReader

CASES = 316
SECONDS = 2.0
BYTES = 200 << 20
LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa85019")


class Decoded:
    """What was said about one pickle."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.legacy = data.startswith(LEGACY_MAGIC)
        self.pickled: Pickled | None = None
        findings: list[Finding] = []
        try:
            self.pickled = read_pickles(data, DecodeLimits(), pickles=LEGACY_PICKLES if self.legacy else 1)
            findings += self.pickled.findings
            if self.legacy:
                with FileReader(str(path)) as reader:
                    in_stream(reader, self.pickled)
        except Fault as fault:
            findings.append(fault.finding)
        self.blockers: list[Blocker] = [blocker(finding, "file") for finding in findings]

    @property
    def codes(self) -> set[str]:
        return {each.code for each in self.blockers}

    @property
    def rejected(self) -> bool:
        return any(
            each.severity is Severity.ERROR and Blocks.CONVERT in each.blocks for each in self.blockers
        )

    @property
    def tree(self) -> Tree:
        assert self.pickled is not None
        return Tree(self.pickled, LEGACY_OBJECT if self.legacy else 0)

    def fact(self, name: str) -> Any:
        """Return what the manifest calls by a name."""
        assert self.pickled is not None
        tree = self.tree
        root = tree.node(tree.root)
        match name:
            case "keys":
                return [key for key, _ in tree.entries(tree.root)]
            case "tensors":
                return [
                    ".".join(map(str, path))
                    for path, number in tree.leaves()
                    if isinstance(tree.node(number), PickledTensor)
                ]
            case "value":
                return tree.value(tree.root)
            case "length":
                assert isinstance(root, Items)
                return len(root.items)
            case "bits":
                assert isinstance(root, Long)
                return int(root.digits, 16).bit_length()
            case "globals":
                return sorted(f"{each.module}.{each.name}" for each in self.pickled.references)
            case "foreign":
                return sorted(
                    f"{each.module}.{each.name}" for each in self.pickled.references if not each.known
                )
            case "foreign_count":
                return sum(not each.known for each in self.pickled.references)
        raise AssertionError(f"no fact {name}")


@pytest.fixture(scope="module")
def decoded(cases: dict[str, list[Case]], corpus: Path) -> dict[str, Decoded]:
    assert len(cases["D"]) == CASES
    return {case["id"]: Decoded(corpus / case["path"]) for case in cases["D"]}


def test_every_pickle_gets_its_class_and_our_code(
    cases: dict[str, list[Case]], decoded: dict[str, Decoded]
) -> None:  # R044 R045
    wrong = []
    for case in cases["D"]:
        found = decoded[case["id"]]
        if case["expected"] == "accept" and found.rejected:
            wrong.append((case["id"], "refused", found.codes))
        elif case["expected"] == "reject" and not found.rejected:
            wrong.append((case["id"], "not refused", found.codes))
        wanted = expected(case)
        if wanted and not found.codes & wanted:
            wrong.append((case["id"], f"not one of {sorted(wanted)}", found.codes))
    assert wrong == []


def test_every_pickle_says_what_the_manifest_knows_of_it(
    cases: dict[str, list[Case]], decoded: dict[str, Decoded]
) -> None:
    wrong = []
    looked = 0
    for case in cases["D"]:
        found = decoded[case["id"]]
        for name, value in case.get("facts", {}).items():
            if found.pickled is None:
                continue
            fact = found.fact(name)
            wanted = [] if name == "foreign" and case["id"] in UNDERSTOOD else value
            wanted = sorted(wanted) if name in ("foreign", "globals") else wanted
            fact = len(fact) if name == "tensors" and isinstance(wanted, int) else fact
            looked += 1
            if fact != wanted:
                wrong.append((case["id"], name, fact, wanted))
    assert wrong == []
    assert looked > 40


def examine(data: bytes) -> None:
    with suppress(Fault):
        read_pickles(data, DecodeLimits())


@pytest.mark.untraced
def test_no_pickle_takes_long(cases: dict[str, list[Case]], corpus: Path) -> None:  # R045
    patience = SECONDS * (10 if sys.gettrace() else 1)  # counting lines takes a multiple
    slow = []
    for case in cases["D"]:
        data = (corpus / case["path"]).read_bytes()
        began = time.process_time()
        examine(data)
        if (took := time.process_time() - began) > patience:
            slow.append((case["id"], took))
    assert slow == []


@pytest.mark.untraced  # tracing takes memory and five times the time
def test_no_pickle_takes_much_memory(cases: dict[str, list[Case]], corpus: Path) -> None:  # R045
    hungry = []
    tracemalloc.start()
    try:
        for case in cases["D"]:
            data = (corpus / case["path"]).read_bytes()
            tracemalloc.reset_peak()
            examine(data)
            if (peak := tracemalloc.get_traced_memory()[1]) > BYTES:
                hungry.append((case["id"], peak))
    finally:
        tracemalloc.stop()
    assert hungry == []


def test_facts_of_every_pickle_pass_the_wire(decoded: dict[str, Decoded]) -> None:
    for case, found in decoded.items():
        if found.pickled is not None:
            wire = msgspec.msgpack.encode(found.pickled)
            again = msgspec.msgpack.decode(wire, type=Pickled)
            assert msgspec.msgpack.encode(again) == wire, case


def test_a_tensor_key_stays_exact(decoded: dict[str, Decoded]) -> None:
    assert decoded["D.key-ansi"].fact("tensors") == ["w\x1b[2J\n\u202ex"]
    assert decoded["D.key-surrogate"].fact("tensors") == ["w\\ud800"]


def test_a_foreign_call_is_named_and_changes_nothing_else(decoded: dict[str, Decoded]) -> None:
    found = decoded["D.foreign-overwritten"]
    root = found.tree.root

    assert "builtins.print" in found.blockers[-1].message
    assert isinstance(found.tree.node(root), type(decoded["D.ok-proto-1"].tree.node(0)))
    assert found.tree.value(root, "w") is None
    assert not any(isinstance(node, Named) for node in [found.tree.node(found.tree.get(root, "w"))])


def test_the_table_names_codes_and_cases_that_exist(cases: dict[str, list[Case]]) -> None:
    ours = set().union(*CODES.values(), *(each.codes for each in DEVIATIONS.values()))
    assert ours <= TABLE.keys()
    assert DEVIATIONS.keys() <= {case["id"] for case in cases["D"]}
    assert set(UNDERSTOOD) <= DEVIATIONS.keys()


def test_every_deviation_is_named_in_the_notes() -> None:
    notes = (Path(__file__).parents[2] / "docs" / "format-notes.md").read_text(encoding="utf-8")
    assert [case for case in DEVIATIONS if f"`{case}`" not in notes] == []

"""A record allows one decoding of certain bytes, here and now, and neither side takes it for another."""

import ast
import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shardscope.engine import isolation
from shardscope.engine.isolation.containment import Containment
from shardscope.engine.isolation.escalation import LEDGER, Ledger, host, runtime
from shardscope.engine.model import escalation
from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.escalation import Circumstances, Escalation, Intent
from shardscope.engine.model.limits import DecodeLimits
from tests.isolation.conftest import Contain, text

DATA = b"bytes of a pickle"

Change = Callable[[Circumstances], Circumstances]

CHANGES: dict[str, Change] = {
    "operation": lambda here: replace(here, operation="convert"),
    "host": lambda here: replace(here, host="0" * 64),
    "runtime": lambda here: replace(here, runtime=replace(here.runtime, python="cpython 2.7")),
    "profile": lambda here: replace(here, profile=replace(here.profile, no_new_privs=False)),
    "limits": lambda here: replace(here, limits=DecodeLimits(pickle_opcodes=7)),
}
"""What makes other circumstances, by the end of the code that refuses them."""

FINER: dict[str, tuple[str, Change]] = {
    "another shardscope": (
        "runtime",
        lambda here: replace(here, runtime=replace(here.runtime, shardscope="0.0.1")),
    ),
    "another protocol": ("runtime", lambda here: replace(here, runtime=replace(here.runtime, protocol=99))),
    "another kernel": ("profile", lambda here: replace(here, profile=replace(here.profile, kernel="2.6"))),
    "another user": (
        "profile",
        lambda here: replace(here, profile=replace(here.profile, root=not here.profile.root)),
    ),
    "another filter": (
        "profile",
        lambda here: replace(here, profile=replace(here.profile, system_calls=("read",))),
    ),
    "no Landlock": ("profile", lambda here: replace(here, profile=replace(here.profile, landlock=None))),
    "another ceiling": (
        "profile",
        lambda here: replace(
            here, profile=replace(here.profile, ceilings=replace(here.profile.ceilings, processes=9))
        ),
    ),
}


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(Fault) as caught:
        call()
    assert "a/file" in blocker(caught.value.finding, "a/file").message
    return caught.value.finding.code


def asked(worker: Containment, record: Escalation, data: bytes) -> object:
    """Ask the worker past the parent's own checks: what it refuses, it refuses by itself."""
    process, _ = worker._cell.worker()
    return worker._cell.asked(process, record, data)


# R068
def test_a_record_is_good_once(contain: Contain) -> None:
    with contain() as worker:
        record = worker.escalate(DATA)
        assert text(worker.read_escalated(record, DATA)) == DATA.decode()

        assert code_of(lambda: worker.read_escalated(record, DATA)) == "isolation.escalation_spent"
        assert code_of(lambda: asked(worker, record, DATA)) == "isolation.escalation_spent"
        assert text(worker.read(DATA)) == DATA.decode()


# R068
def test_a_record_that_was_refused_is_spent(contain: Contain) -> None:
    with contain() as worker:
        record = worker.escalate(DATA)
        assert code_of(lambda: worker.read_escalated(record, b"x")) == "isolation.escalation_bytes"
        assert code_of(lambda: worker.read_escalated(record, DATA)) == "isolation.escalation_spent"


# R068
def test_a_record_of_another_invocation_is_unknown(contain: Contain) -> None:
    with contain() as worker:
        worker.read(DATA)
        here = worker._cell.here
        assert here is not None
        record = Ledger().issue(DATA, 1, here)

        assert code_of(lambda: worker.read_escalated(record, DATA)) == "isolation.escalation_spent"


# R068
@pytest.mark.parametrize("at", [0, 8, len(DATA) - 1])
def test_a_changed_byte_is_refused_by_both_sides(contain: Contain, at: int) -> None:
    changed = bytes(byte ^ (place == at) for place, byte in enumerate(DATA))
    with contain() as worker:
        for other in (changed, DATA + b"x", DATA[:-1], b""):
            assert (
                code_of(lambda: worker.read_escalated(worker.escalate(DATA), other))  # noqa: B023
                == "isolation.escalation_bytes"
            )
        assert code_of(lambda: asked(worker, worker.escalate(DATA), changed)) == "isolation.escalation_bytes"


# R068
@pytest.mark.parametrize("what", CHANGES)
def test_other_circumstances_are_refused_by_both_sides(contain: Contain, what: str) -> None:
    with contain() as worker:
        good = worker.escalate(DATA)
        other = replace(good, circumstances=CHANGES[what](good.circumstances))
        assert code_of(lambda: worker.read_escalated(other, DATA)) == f"isolation.escalation_{what}"

        unspent = replace(other, nonce="f" * 32)
        assert code_of(lambda: asked(worker, unspent, DATA)) == f"isolation.escalation_{what}"
        assert text(worker.read(DATA)) == DATA.decode()


@pytest.mark.parametrize("name", FINER)
def test_every_part_of_the_circumstances_counts(contain: Contain, name: str) -> None:
    what, change = FINER[name]
    with contain() as worker:
        good = worker.escalate(DATA)
        other = replace(good, circumstances=change(good.circumstances))

        assert code_of(lambda: worker.read_escalated(other, DATA)) == f"isolation.escalation_{what}"


# R068
def test_a_worker_that_is_replaced_takes_records_that_are_open(contain: Contain) -> None:
    with contain() as worker:
        record = worker.escalate(DATA)
        assert code_of(lambda: worker.read(b"end:1")) == "isolation.crashed"

        assert text(worker.read_escalated(record, DATA)) == DATA.decode()


def test_a_record_says_what_it_is_bound_to(contain: Contain) -> None:
    with contain(pickle_opcodes=9) as worker:
        record = worker.escalate(DATA, 3)
        profile = worker.profile
        LEDGER.spend(record, DATA, record.circumstances)

    assert (record.length, record.pickles) == (len(DATA), 3)
    assert record.circumstances.operation == "inspect"
    assert record.circumstances.host == host()
    assert record.circumstances.runtime == runtime()
    assert record.circumstances.profile == profile
    assert record.circumstances.limits.pickle_opcodes == 9


def test_the_identity_of_the_machine_stays_here() -> None:
    identities = [Path(path) for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")]
    known = [path.read_text().strip() for path in identities if path.exists()]

    assert known
    assert not any(identity in host() for identity in known)
    assert host() == host()


# R067
def test_a_wish_holds_for_one_containment() -> None:
    intent = Intent("inspect", "command line")
    with Containment(intent):
        pass

    with pytest.raises(Fault) as caught:
        Containment(intent)
    assert caught.value.finding.code == "isolation.intent_spent"
    assert blocker(caught.value.finding).message.startswith("Decoding was asked for once, for inspect")


# R067
def test_a_wish_is_neither_copied_nor_stored() -> None:
    intent = Intent("inspect", "dialog")
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(intent)
    for encode in (msgspec.json.encode, msgspec.msgpack.encode):
        with pytest.raises(TypeError):
            encode(intent)


# R067 R070 R071 R072 R073
def test_nothing_but_a_fresh_wish_opens_a_containment() -> None:
    """No digest, name, earlier scan or promise of a loader is a parameter anywhere, and no variable is read."""
    assert list(inspect.signature(Containment).parameters) == ["intent", "limits", "cancel"]
    assert list(inspect.signature(Containment.read).parameters) == ["self", "data", "pickles"]
    assert list(inspect.signature(Intent).parameters) == ["operation", "asked"]
    folder = Path(inspect.getfile(isolation)).parent
    for path in [*folder.glob("*.py"), Path(inspect.getfile(escalation))]:
        names = [
            node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
        ]
        # the worker empties its environment, and counts that nothing is in it
        assert names == (["environ", "environ"] if path.name == "lockdown.py" else []), path.name


# R070 R072
def test_bytes_that_were_decoded_before_need_a_record_of_their_own(contain: Contain) -> None:
    with contain() as worker:
        first, second = worker.escalate(DATA), worker.escalate(DATA)
        assert first.sha256 == second.sha256
        assert first.nonce != second.nonce
        worker.read_escalated(first, DATA)
        assert code_of(lambda: worker.read_escalated(first, DATA)) == "isolation.escalation_spent"
        worker.read_escalated(second, DATA)


@pytest.mark.parametrize(
    "change",
    [{"nonce": "x"}, {"nonce": "F" * 32}, {"sha256": "0" * 63}, {"length": -1}, {"pickles": 0}, {"more": 1}],
)
def test_a_record_that_is_none_is_not_read(contain: Contain, change: dict[str, Any]) -> None:
    with contain() as worker:
        record = msgspec.to_builtins(worker.escalate(DATA))

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**record, **change}, Escalation)

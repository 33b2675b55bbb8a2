"""Workers of the tests' own, in place of the product's."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardscope.engine.isolation import process
from shardscope.engine.isolation.containment import Containment
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled, Plain

ROOT = Path(__file__).resolve().parents[2]

Contain = Callable[..., Containment]


@pytest.fixture
def contain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Contain]:
    """`contain("main", pickle_seconds=1)`: a containment whose worker is that function of `impostor`."""
    cells: list[Containment] = []
    product = process.command

    def make(main: str = "main", cancel: threading.Event | None = None, **limits: int) -> Containment:
        def command(parent: int) -> list[str]:
            line = product(parent)
            at = line.index("-c") + 1
            line[at] = line[at].replace(
                "shardscope.engine.isolation.worker import main",
                f"tests.isolation.impostor import {main} as main",
            )
            return [*line, str(ROOT)]

        monkeypatch.setattr(process, "command", command)
        cell = Containment(Intent("inspect", "command line"), DecodeLimits(**limits), cancel=cancel)
        cells.append(cell)
        return cell

    yield make
    for cell in cells:
        cell.__exit__(None, None, None)


def text(pickled: Pickled) -> str:
    """What the impostor's decoder said."""
    (node,) = pickled.nodes
    assert isinstance(node, Plain)
    assert isinstance(node.value, str)
    return node.value


def worker_pid(worker: Containment) -> int:
    """The number of the process behind a containment."""
    process_ = worker._cell._process
    assert process_ is not None
    return process_.pid

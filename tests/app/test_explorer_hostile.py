"""Nothing of a checkpoint acts on the terminal, whichever screen it is on, whichever name it stands in."""

import re

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.topology import Topology
from shardscope.engine.previewing import Preview
from tests.app.explorers import FakeEngine, explorer
from tests.app.fakes import a_blocker, entry, inspection, tensor_table
from tests.app.test_explorer_flow import text
from tests.capture import captured
from tests.conftest import settle
from tests.hostile import HOSTILE

NAMES = {
    what: pair
    for what, pair in HOSTILE.items()
    if "/" not in pair[0] and what not in ("nul", "lone surrogate")
}
KEYS = (
    "2",
    "3",
    "4",
    "5",
    "f",
    "down",
    "enter",
    "y",
    "escape",
    "question_mark",
    "escape",
    "colon",
    "escape",
    "6",
)
OWN_CLIPBOARD = re.compile(r"\x1b\]52;c;[A-Za-z0-9+/=]*\x07")
"""What `y` itself writes: base64 of a command that has nothing unsafe in it."""


async def test_no_screen_lets_a_name_through() -> None:
    raws = [raw for raw, _ in NAMES.values()]
    table = tensor_table((raw, raw, (1,), 4, raw) for raw in raws)
    blockers = tuple(a_blocker("header.gap", raw) for raw in raws)
    evidence = tuple(Evidence(EvidenceKind.NAME, raw, raw, Basis.INFERRED) for raw in raws)
    found = inspection(
        [*(entry(raw, 8) for raw in raws), entry("model.safetensors", 8)],
        table=table,
        blockers=blockers,
        evidence=evidence,
        topology=Topology(note="".join(raws)),
        opaque=tuple(raws),
    )
    shown = Preview("".join(raws), "json", tuple(raws), "".join(raws))
    engine = FakeEngine(found, shown=shown)
    async with captured(explorer(engine, path=f"here/{''.join(raws)}")) as (pilot, driver):
        await settle(pilot)
        for key in KEYS:
            await pilot.press(key)
            await settle(pilot)

        frame = text(pilot.app)  # type: ignore[arg-type]
        written = "".join(driver.written)
        for what, (raw, seen) in NAMES.items():
            assert seen in frame, what
            assert raw not in written or raw == seen, what
        assert OWN_CLIPBOARD.search(written)
        driver.written[:] = [OWN_CLIPBOARD.sub("", written)]
        assert not driver.unsafe


async def test_a_fault_about_a_hostile_path_is_harmless_too() -> None:
    raw, seen = HOSTILE["clear screen"]
    engine = FakeEngine(Fault("source.missing"), held=False)
    async with captured(explorer(engine, path=raw)) as (pilot, driver):
        await settle(pilot)
        assert seen in text(pilot.app)  # type: ignore[arg-type]
        assert raw not in "".join(driver.written)

"""Checkpoints to be fixed, and the screen of a fix on the engine of this installation with the figures of one machine."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs
from textual.pilot import Pilot
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.fix.calls import FIXES, Fixes
from shardscope.app.explorer.fix.changes_step import ChangesStep
from shardscope.app.explorer.fix.draft import Draft
from shardscope.app.explorer.fix.forms import FixForm
from shardscope.app.explorer.fix.screen import Fix
from shardscope.app.explorer.output.admission import Admission
from shardscope.app.explorer.output.calls import Conduct
from shardscope.app.explorer.output.forms import Form, TypedInput
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.target import Target
from shardscope.engine.convert.admitting.space import Figure
from shardscope.engine.convert.admitting.target import TargetLook
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.inspecting.inspection import inspect
from shardscope.engine.model.manifest import Run
from tests.app.conversion_fakes import an_admission
from tests.app.conversions import until
from tests.app.fakes import GIB
from tests.checkpoints import write_config, write_json, write_safetensors

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
LLAMA = FIXTURES / "hf/llama_sharded/checkpoint"
MIB = 1 << 20
NOTE = "\x1b[2J\x1b[31mred [bold]x[/]\u202e gnp.exe"
METADATA = {
    "format": "pt",
    "note": NOTE,
    "key " + "k" * 300: "v" * 3_000,
    "line\nbreak": "one\ntwo",
    "token": "hf_" + "a" * 34,
    "run": "17",
}
NAMES = ("model.embed.weight", "model.layers.0.[red]w\x1b[31m.weight", "model.layers.0.b\nc.weight")
OTHERS = ("model.layers.1." + "x" * 300 + ".weight", "lm_head.weight")


def half(folder: Path) -> Path:
    """Return a checkpoint of which one shard is cut off, and whose index counts wrongly."""
    shutil.copytree(LLAMA, folder)
    shard = folder / "model-00005-of-00010.safetensors"
    os.truncate(shard, shard.stat().st_size - 2_000)
    return folder


def wild(folder: Path) -> Path:
    """Return a checkpoint with an index that is wrong, a file that is not of the set, and names and metadata of an attacker."""
    folder.mkdir()
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    _write(folder / first, NAMES, METADATA)
    _write(folder / second, OTHERS, METADATA | {"run": "18"})
    _write(folder / "model_old.safetensors", ("old.weight",), {})
    sent = dict.fromkeys(NAMES, second) | dict.fromkeys(OTHERS, first)
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": sent})
    write_config(folder)
    return folder


def _write(path: Path, names: tuple[str, ...], metadata: dict[str, str]) -> None:
    write_safetensors(path, dict.fromkeys(names, ("F32", (8, 4))), metadata)


def _admit(prepared: Prepared, draft: Draft) -> Any:
    return structs.replace(prepared.plan, admission=an_admission() if draft.out else None), None


def _fix(target: Target, draft: Draft, prepared: Prepared, conduct: Conduct) -> Converted:
    done = FIXES.fix(target, draft, prepared, conduct)
    return structs.replace(
        done, run=Run("shardscope.run/1", an_admission(), done.run.staged_bytes, 79 * MIB, 1.5, {})
    )


STEADY: Fixes = replace(
    FIXES,
    admit=_admit,
    target=lambda *_: TargetLook(None, "nothing", Figure(412 * GIB, "statvfs"), beside_source=True),
    fix=_fix,
    memory=lambda: 69 * MIB,
)
"""The engine of this installation, with the figures of one machine."""


async def begin(
    pilot: Pilot[Any],
    source: str,
    calls: Fixes = STEADY,
    convert: Callable[[], None] | None = None,
) -> Fix:
    """Open a fix in front of whatever is shown, and wait until it is known what is wrong."""
    app = pilot.app
    assert isinstance(app, Explorer)
    await until(pilot, lambda: app.screen.is_mounted)
    screen = Fix(Target(source), inspect(source, digest="none"), convert, calls)
    await app.push_screen(screen)
    await until(
        pilot,
        lambda: screen.unfixable or (screen.step is Step.WHAT and (screen.is_settled or screen.refused)),
    )
    return screen


def is_typing(screen: Fix) -> bool:
    """Tell whether what is pressed now goes into the line of a choice."""
    return any(form.is_typing and form.query_one(TypedInput).has_focus for form in screen.query(Form))


async def type_in(
    pilot: Pilot[Any], screen: Fix, key: str, text: str, taken: Callable[[], bool], *, enter: bool = True
) -> None:
    """Press the key of a choice and type into its line; `taken` tells whether the draft has heard of it."""
    await pilot.press(key)
    await until(pilot, lambda: is_typing(screen))
    await pilot.press(*text, *(["enter"] if enter else []))
    await until(pilot, lambda: taken() and is_typing(screen) is not enter and screen.is_settled)


async def press(pilot: Pilot[Any], screen: Fix, *keys: str) -> None:
    """Press keys that change the draft, and wait for the plan of it."""
    before = screen.draft
    await pilot.press(*keys)
    await until(pilot, lambda: screen.draft != before and screen.is_settled)


async def leave(pilot: Pilot[Any], screen: Fix) -> None:
    """Go back from the first step."""
    await until(pilot, lambda: screen.query(FixForm) and screen.query_one(FixForm).has_focus_within)
    await pilot.press("escape")
    await until(pilot, lambda: not screen.is_attached)


async def to_changes(pilot: Pilot[Any], screen: Fix) -> ChangesStep:
    """Go to the changes, and wait until they stand."""
    await pilot.press("2")
    await until(
        pilot, lambda: screen.step is Step.CHANGES and screen.query(ChangesStep) and screen.is_settled
    )
    step = screen.query_one(ChangesStep)
    await until(pilot, lambda: step.rows.has_focus)
    return step


async def to_target(pilot: Pilot[Any], screen: Fix, out: str) -> None:
    """Go to the target, and type it."""
    await pilot.press("3")
    await until(pilot, lambda: screen.step is Step.WHERE and is_typing(screen))
    await pilot.press(*out, "enter")
    await until(pilot, lambda: not is_typing(screen) and screen.draft.out == out)
    await until(pilot, lambda: screen.is_settled and screen.look is not None)


async def ask(pilot: Pilot[Any]) -> Admission:
    """Ask for admission, and wait until it can be answered."""
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, Admission))
    dialog = pilot.app.screen
    assert isinstance(dialog, Admission)
    await until(pilot, lambda: dialog.query_one(Input).has_focus)
    return dialog

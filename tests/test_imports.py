"""What a part of shardscope drags in. The import contracts read the source; here an interpreter tells."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parent / "fixtures"
CHECKPOINT = str(FIXTURES / "hf" / "llama_sharded" / "checkpoint")

SCREEN = {"textual", "rich"}
ARRAYS = {"numpy", "ml_dtypes", "safetensors"}
FRAMEWORKS = {
    "torch",
    "deepspeed",
    "megatron",
    "transformers",
    "accelerate",
    "peft",
    "jax",
    "tensorflow",
    "dask",
    "distributed",
}
UNPICKLERS = {"pickle", "_pickle", "cloudpickle", "dill", "shelve"}
NETWORK = {"socket", "ssl", "_ssl", "http.client", "urllib.request", "requests"}
PROCESSES = {"subprocess", "multiprocessing"}


def modules_after(code: str, *arguments: str) -> set[str]:
    """Run `code` in a fresh interpreter and return the modules that it holds in the end."""
    told = "\nimport sys, json\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code + told, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    modules: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return set(modules)


COMMAND = (
    "import sys\nfrom shardscope.app.main import main\ncode = main(sys.argv[1:])\nassert code == 0, code"
)


def test_the_nouns_pull_in_no_other_room() -> None:
    held = modules_after("import shardscope.engine.model.descriptor, shardscope.engine.model.documents")
    ours = {name.split(".")[2] for name in held if name.startswith("shardscope.engine.")}

    assert ours == {"model"}
    assert not held & (SCREEN | ARRAYS | UNPICKLERS | NETWORK)


def test_the_public_names_of_the_engine_are_there_on_first_use() -> None:
    held = modules_after(
        "import shardscope.engine as engine\nassert callable(engine.inspect)\nassert engine.Inspection"
    )

    assert not held & (SCREEN | ARRAYS)
    modules_after(
        "import shardscope.engine.inspecting.inspection\nfrom shardscope.engine import inspect\nassert callable(inspect)"
    )
    modules_after("from shardscope.engine import *\nassert callable(inspect)")


def test_version_and_help_start_bare() -> None:
    for flag in ("--version", "--help"):
        held = modules_after(COMMAND, flag)

        assert not held & (SCREEN | ARRAYS | UNPICKLERS | NETWORK | PROCESSES), flag
        assert "shardscope.engine.formats" not in held


# R031 R036
@pytest.mark.parametrize(
    "arguments", [("inspect", "--json"), ("inspect", "--json", "--digest", "all"), ("tensors", "--json")]
)
def test_inspection_needs_no_screen_no_arrays_and_no_framework(arguments: tuple[str, ...]) -> None:
    held = modules_after(COMMAND, *arguments, CHECKPOINT)

    assert "shardscope.engine.inspecting.inspection" in held
    assert not held & (SCREEN | ARRAYS | FRAMEWORKS | UNPICKLERS | NETWORK | PROCESSES)


def test_values_that_are_stored_alike_and_the_same_need_no_arrays() -> None:
    held = modules_after(COMMAND, "diff", "--values", "--json", CHECKPOINT, CHECKPOINT)

    assert "shardscope.engine.diffing.alike" in held
    assert not held & (SCREEN | ARRAYS | FRAMEWORKS | UNPICKLERS | NETWORK)


def test_the_readable_report_needs_no_explorer() -> None:
    held = modules_after(COMMAND, "inspect", CHECKPOINT)

    assert not held & ({"textual"} | ARRAYS | FRAMEWORKS)


# R031
def test_the_explorer_imports_no_framework() -> None:
    held = modules_after("import shardscope.app.explorer.app")

    assert "textual" in held
    assert not held & FRAMEWORKS


def test_every_public_name_of_the_engine_leads_somewhere() -> None:
    from shardscope import engine

    assert [name for name in engine.__all__ if not callable(getattr(engine, name))] == []
    with pytest.raises(AttributeError):
        engine.nothing  # noqa: B018

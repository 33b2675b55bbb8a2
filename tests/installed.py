"""Uses shardscope as somebody does who installed it: no repository in sight.

    .venv-wheel/bin/python -P tests/installed.py CHECKPOINT

The interpreter is that of an environment that holds the wheel and its dependencies alone.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

PARTS = ("app", "engine", "styles", "widgets")
COMMAND = Path(sys.executable).with_name("shardscope")


def run(*command: str | Path, cwd: str) -> str:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, (command, finished.returncode, finished.stdout, finished.stderr)
    return finished.stdout


def check_contents() -> None:
    installed = distribution("shardscope").files or []
    tops = {path.parts[0] for path in installed if ".." not in path.parts}
    assert tops == {"shardscope", f"shardscope-{distribution('shardscope').version}.dist-info"}, tops
    for part in PARTS:
        assert files(f"shardscope.{part}").joinpath("py.typed").is_file(), part
    sheets = [item.name for item in files("shardscope.styles").iterdir() if item.name.endswith(".tcss")]
    assert sheets, "no style sheet in the wheel"


def check_commands(checkpoint: Path, cwd: str) -> None:
    version = distribution("shardscope").version
    assert version in run(COMMAND, "--version", cwd=cwd)
    assert version in run(sys.executable, "-m", "shardscope", "--version", cwd=cwd)
    descriptor = json.loads(run(COMMAND, "inspect", "--json", checkpoint, cwd=cwd))
    assert descriptor["schema"] == "shardscope.descriptor/1"
    assert descriptor["classification"]["format"] == "hf_safetensors", descriptor["classification"]
    validation = json.loads(
        run(COMMAND, "validate", "--json", cwd=cwd)
    )  # the data is in the wheel, and whole
    assert validation["valid"], validation["blockers"]
    run(sys.executable, "-c", "import shardscope.app.explorer.app, shardscope.widgets", cwd=cwd)
    check_shell(cwd)
    preflight = "from shardscope.engine.isolation.containment import preflight; preflight()"
    run(sys.executable, "-P", "-c", preflight, cwd=cwd)  # the worker finds its code in the wheel


def check_shell(cwd: str) -> None:
    """The manual page lies where `man` looks, and completion completes, in all three shells."""
    page = Path(sys.prefix, "share/man/man1/shardscope.1").read_text(encoding="utf-8")
    assert f"shardscope {distribution('shardscope').version}" in page.splitlines()[0]
    for shell in ("bash", "zsh", "fish"):
        assert "_SHARDSCOPE_COMPLETE" in run(COMMAND, "completion", shell, cwd=cwd), shell
    asked = {"_SHARDSCOPE_COMPLETE": "bash_complete", "COMP_WORDS": "shardscope insp", "COMP_CWORD": "1"}
    answered = subprocess.run(
        [COMMAND], cwd=cwd, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert answered.stdout.split()[0] == "plain,inspect", answered


def check_conversion(checkpoint: Path) -> None:
    """What is installed converts, and verifies what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        run(COMMAND, "convert", checkpoint, "out", "--yes", cwd=folder)
        run(COMMAND, "verify", "out", "--against", checkpoint, cwd=folder)


def main(checkpoint: Path) -> None:
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as elsewhere:
        check_contents()
        check_commands(checkpoint.resolve(), elsewhere)
        assert list(Path(elsewhere).iterdir()) == []
    check_conversion(checkpoint.resolve())
    print(f"shardscope {distribution('shardscope').version} works from its wheel")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

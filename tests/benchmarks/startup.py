"""How long the command takes to say something, by the time of an interpreter that says nothing.

Bars: `shardscope --version` within 5x, `shardscope inspect --json` of one small file within 12x.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.pairs import measure
from tests.checkpoints import LLAMA, write_safetensors

VERSION_BAR = 5.0
INSPECT_BAR = 12.0
SCRIPT = Path(sys.executable).with_name("shardscope")


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = write_safetensors(Path(folder) / "model.safetensors", LLAMA)

        def nothing() -> None:
            run(sys.executable, "-c", "pass")

        results = (
            measure("shardscope --version", nothing, lambda: run(SCRIPT, "--version"), 21, VERSION_BAR),
            measure("shardscope --help", nothing, lambda: run(SCRIPT, "--help"), 21),
            measure(
                "shardscope inspect --json",
                nothing,
                lambda: run(SCRIPT, "inspect", file, "--json"),
                21,
                INSPECT_BAR,
            ),
        )
    return int(results[0].median > VERSION_BAR or results[2].median > INSPECT_BAR)


if __name__ == "__main__":
    sys.exit(main())

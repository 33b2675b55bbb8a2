"""Run commands one after another in this process and say how each ended and what it took.

    python driver.py FOLDER [--unprivileged] < COMMANDS > ANSWERS

Both are JSON, one document a line; a command is a list of arguments, its paths relative to FOLDER. Nothing is imported
twice, so that a command costs milliseconds. `--unprivileged` runs the commands as nobody, where this is root.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from shardscope.app.main import main

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.memory import peak_bytes

PATIENCE = 30
"""Seconds after which a command counts as hanging, and a signal ends this process."""
NOBODY = 65_534


def call(arguments: list[str], out: IO[bytes], err: IO[bytes]) -> dict[str, Any]:
    """Run one command with its standard streams on the files `out` and `err`, and measure it."""
    for number, file in ((1, out), (2, err)):
        os.ftruncate(file.fileno(), 0)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.dup2(file.fileno(), number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    signal.alarm(PATIENCE)
    began = time.process_time()
    code = main(arguments)
    seconds = time.process_time() - began
    signal.alarm(0)
    said = [os.pread(number, os.fstat(number).st_size, 0).decode("latin-1") for number in (1, 2)]
    return {"exit": code, "seconds": seconds, "peak": peak_bytes(), "out": said[0], "err": said[1]}


def answer(folder: str, *options: str) -> None:
    """Answer every command on standard input."""
    os.chdir(folder)  # the way here may be closed to others
    commands = [json.loads(line) for line in sys.stdin]
    with (
        os.fdopen(os.dup(1), "w") as answers,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        if "--unprivileged" in options and os.geteuid() == 0:
            for arguments in (["inspect", "no/such"], ["inspect", "no/such", "--json"], *commands):
                call(arguments, out, err)  # imports what nobody cannot reach
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        for arguments in commands:
            print(json.dumps(call(arguments, out, err)), file=answers)


if __name__ == "__main__":
    answer(*sys.argv[1:])

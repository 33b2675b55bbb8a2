"""The entry point, kept so small that Ctrl-C finds it ready a few milliseconds after the start."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `shardscope` with `arguments` (those of the process by default) and return its exit code."""
    try:
        from shardscope.app.cli.run import run

        return int(run(sys.argv[1:] if arguments is None else list(arguments)))
    except KeyboardInterrupt:  # before the command line was there to say it properly
        return 130

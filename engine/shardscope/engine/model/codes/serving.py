"""The explorer in a browser: what keeps it from being served."""

from typing import Final

from shardscope.engine.model.blocker import Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

TABLE: Final[tuple[Code, ...]] = (
    Code(
        "serve.no_library",
        Severity.ERROR,
        Stage.COMMAND,
        "Serving the explorer needs a library that is not installed: {library:word}.",
        "Run `pip install 'shardscope[serve]'`, or use the explorer in a terminal, which needs nothing more.",
        "The server for a browser is an extra: shardscope itself opens no port and needs no web library.",
        exit=ExitCode.UNSUPPORTED,
    ),
    Code(
        "serve.address",
        Severity.ERROR,
        Stage.COMMAND,
        "The address {address:word} cannot be had: {reason:word}.",
        "Give another port, such as `--port 0` for any that is free.",
        "Another program listens there, or this machine has no such address. Nothing was served.",
        exit=ExitCode.OUTPUT,
    ),
)

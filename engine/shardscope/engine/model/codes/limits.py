"""Limits reached: one code for each field of `Limits`."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import decode_limit_names, limit_names

_STOPS: Final = "Reading the opcodes of a pickle stops at a visible bound."

TABLE: Final = (
    *(
        Code(
            f"limit.{name}",
            Severity.ERROR,
            Stage.PARSE,
            f"{{file:path}} reaches the limit {name} = {{limit:count}}: it needs {{found:count}}.",
            f"Raise it for this run with --limit {name}=NUMBER if you expect a file like this; otherwise the file is not "
            "what it seems.",
            f"Inspection stops at a visible bound instead of guessing or running out of memory. This one is `{name}`; "
            "the values in force are printed in the descriptor under `limits`.",
            (Blocks.INSPECT, Blocks.DECODE, Blocks.CONVERT),
            ExitCode.LIMIT,
        )
        for name in limit_names()
    ),
    *(
        Code(
            f"limit.{name}",
            Severity.ERROR,
            Stage.DECODE,
            f"{{file:path}} reaches the limit {name} = {{limit:count}}: it needs {{found:count}}.",
            f"Raise it for this run with --limit {name}=NUMBER if you expect a file like this; otherwise the file is not "
            "what it seems.",
            f"{_STOPS if name.startswith('pickle_') else 'Decoding stops at a visible bound.'} This one is `{name}`. What has "
            "been read until then is dropped: half of it says nothing about the other half.",
            (Blocks.DECODE, Blocks.CONVERT),
            ExitCode.LIMIT,
        )
        for name in decode_limit_names()
    ),
    Code(
        "findings.more",
        Severity.INFO,
        Stage.PARSE,
        "Not listed: {count:count more finding} of {word:word} about {file:path}.",
        "Raise --limit findings=NUMBER to see them all.",
        "Findings of one kind about one file are listed up to the limit `findings`; the rest is counted.",
    ),
)

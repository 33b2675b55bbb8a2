"""Trackers: small files that name the newest step."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

TABLE: Final = (
    Code(
        "tracker.stale",
        Severity.ERROR,
        Stage.CLASSIFY,
        "{file:path} names {target:name}, which is not here.",
        "Copy that folder from the same run, or correct the tracker to name one that is here.",
        "The tracker survived a move, a deletion or an interrupted save. Loaders that trust it fail, or load another "
        "save than you meant.",
        (Blocks.CONVERT, Blocks.LOAD),
    ),
    Code(
        "tracker.unsafe",
        Severity.ERROR,
        Stage.CLASSIFY,
        "{file:path} ({size:bytes}) names a path, not a folder beside it.",
        "Do not resume from this root with a tool that follows it; write the plain name of the folder into it.",
        "A tracker holds one plain name. A separator or .. in it would lead a loader out of the checkpoint; it is never "
        "followed.",
        (Blocks.CONVERT, Blocks.LOAD),
    ),
    Code(
        "tracker.malformed",
        Severity.WARNING,
        Stage.CLASSIFY,
        "{file:path} ({size:bytes}) is named like a tracker but names no step.",
        "Look at it; a tracker holds one short line.",
        "An empty, overlong or binary tracker is left from an interrupted save, or is another tool's file.",
        (Blocks.LOAD,),
    ),
)

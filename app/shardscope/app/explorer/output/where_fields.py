"""Where the output appears, and what becomes of what stands there."""

import os
from typing import Any, Final

from msgspec.structs import replace

from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.fields import Field, Known, given, next_of
from shardscope.widgets.safe import Part, Tone

STANDING: Final[dict[Any, Part]] = {
    "refuse": "is not touched",
    "keep": "exchanged, old one kept",
    "remove": ("exchanged, old one removed", Tone.CAUTION),
}
_STANDINGS: Final = tuple(STANDING)

_Field = Field[Destination, Known]

WHERE: Final = (
    _Field(
        "out",
        "o",
        "new folder",
        "Where the output appears: a folder that is made, beside which it is staged",
        lambda draft, _: given(draft.out or None, "not chosen"),
        typed=lambda draft, text: replace(draft, out=os.path.expanduser(text.strip())),
        text=lambda draft: draft.out,
        is_path=True,
    ),
    _Field(
        "standing",
        "r",
        "what is there",
        "What becomes of a folder that stands there: refused, or exchanged at the very end",
        lambda draft, _: STANDING[draft.standing],
        "--replace",
        turned=lambda draft, by: replace(draft, standing=next_of(_STANDINGS, draft.standing, by)),
    ),
    _Field(
        "gap",
        "a",
        "in two steps",
        "Where folders cannot be exchanged in one step, allow two: for an instant nothing stands there",
        lambda draft, _: "allowed" if draft.allow_gap else "never",
        "--allow-gap",
        turned=lambda draft, _: replace(draft, allow_gap=not draft.allow_gap),
        there=lambda draft, _: draft.replace,
    ),
    _Field(
        "keep",
        "e",
        "if cut short",
        "What becomes of finished files when a run ends early; the loss of the terminal keeps them in any case",
        lambda draft, _: "finished files kept" if draft.keep_staging else "nothing is left",
        "--keep-staging",
        turned=lambda draft, _: replace(draft, keep_staging=not draft.keep_staging),
    ),
    _Field(
        "resume",
        "u",
        "earlier run",
        "Go on with what an earlier run of this plan has finished, after verifying it",
        lambda draft, known: (
            ("gone on with", Tone.STRONG)
            if draft.resume
            else f"not used{': ' + known.resumable if known.resumable else ''}"
        ),
        "--resume",
        turned=lambda draft, _: replace(draft, resume=not draft.resume),
        there=lambda draft, known: draft.resume or known.resumable is not None,
    ),
)

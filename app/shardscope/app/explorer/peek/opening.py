"""From a tensor of another screen to its numbers, and back to the question about decoding where that is wanted."""

from collections.abc import Callable
from typing import Any

from textual.app import App

from shardscope.app.explorer.checkpoint.panels import Found
from shardscope.app.explorer.peek.calls import CALLS
from shardscope.app.explorer.peek.messages import PeekWanted
from shardscope.app.explorer.peek.screen import DECODE, Peek
from shardscope.app.explorer.peek.subject import Subject
from shardscope.app.explorer.target import Target


def open_peek(
    app: App[Any], target: Target, found: Found, wanted: PeekWanted, decode: Callable[[], None]
) -> None:
    """Show the numbers of a tensor of the Explore screen; `decode` asks whether to decode."""
    whole = wanted.whole
    subject = Subject(
        target=target,
        inspection=found.inspection,
        name=wanted.tensor.name,
        part_of=None if whole is None else whole.part_of,
        spec=wanted.tensor,
        asked=found.asked,
        offer=found.offered,
    )
    show(app, subject, decode)


def show(app: App[Any], subject: Subject, decode: Callable[[], None] | None = None) -> None:
    """Show the numbers of a tensor; `decode` asks whether to decode, where that can be asked for."""

    def ended(wish: str | None) -> None:
        if wish == DECODE and decode is not None:
            decode()

    app.push_screen(Peek(subject, CALLS), ended)

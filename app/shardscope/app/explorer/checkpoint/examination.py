"""What the Explore screen does in the background: looking, hashing, reading a preview, each in a thread.

The workers only post messages. The handlers here own every change of state and ask the screen to draw; what the engine
cannot foresee leaves its worker as an error, and the application shows it.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from threading import Event
from typing import TYPE_CHECKING

from textual import on
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import get_current_worker

from shardscope.app.explorer import messages, workers
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.target import Asked, Target
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.progress import Progress

if TYPE_CHECKING:
    from shardscope.app.explorer.checkpoint.panels import Found
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import DigestMode
    from shardscope.engine.model.blocker import Blocker
    from shardscope.widgets.file_tree import InventoryTree, Marks


class State(StrEnum):
    """How far the looking has come; `-loading` and so on is a class of the screen."""

    LOADING = "loading"
    READY = "ready"
    DECODING = "decoding"
    """What is known already stays as it is until that ends."""
    STOPPED = "stopped"
    """By the person, before anything could be said."""
    FAILED = "failed"
    """On a fault of the source, or on an error of our own."""


class Examination(Screen[None]):
    """A screen about one checkpoint, without its looks."""

    state: var[State] = var(State.LOADING, init=False, bindings=True)

    def __init__(self, target: Target, engine: Engine) -> None:
        super().__init__(classes="-loading")
        self.target = target
        self.engine = engine
        self.found: Found | None = None
        """What is known; None until the state is ready."""
        self.progress: Progress | None = None
        """The last report of the inspection."""
        self.exit_code = ExitCode.OK
        """What the process says when the person leaves from here."""
        self.digest_mode: DigestMode = "auto"
        self._hashed = False
        """Whether the digest pass came to its end."""
        self._hash_on = False
        """Whether decoding interrupted it."""
        self._asked: Asked | None = None
        self.left = False
        """Whether the person has left: what workers still say is drawn nowhere."""

    # What a screen draws

    async def draw_progress(self, progress: Progress) -> None:
        """Show how far the inspection is."""
        raise NotImplementedError

    def draw_digests(self, words: str) -> None:
        """Show how far the digests are."""
        raise NotImplementedError

    async def draw_loading(self) -> None:
        """Show that nothing is known yet."""
        raise NotImplementedError

    async def draw_found(self, found: "Found", files: "InventoryTree") -> None:
        """Show a checkpoint for the first time."""
        raise NotImplementedError

    def draw_news(self, found: "Found", marks: "Marks | None" = None) -> None:
        """Show what is known by now; `marks` are other letters for the files."""
        raise NotImplementedError

    async def draw_notice(self, notice: Widget) -> None:
        """Show a page in the place of the facts."""
        raise NotImplementedError

    async def draw_decoding(self) -> None:
        """Show that pickles are being decoded, in front of what is known."""
        raise NotImplementedError

    async def draw_not_decoded(self, blocker: "Blocker | None") -> None:
        """Show what was known before again, and what kept decoding from an end unless the person did."""
        raise NotImplementedError

    # Work

    def _start(self, work: Callable[[Event], None], group: str, description: str) -> None:
        # Started on the app, so that it hears of errors. An exclusive group stops the work that it replaces.
        self.app.run_worker(
            lambda: work(get_current_worker().cancelled_event),
            group=group,
            description=description,
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    def _stop(self, *groups: str) -> None:
        for group in groups:
            self.app.workers.cancel_group(self.app, group)

    def is_at_work(self, group: str) -> bool:
        """Tell whether a worker of `examine`, `decode`, `digest` or `preview` is at work."""
        return any(worker.group == group and worker.is_running for worker in self.app.workers)

    def on_mount(self) -> None:
        """Look, once the frame stands on the screen."""
        self.call_after_refresh(self.look)

    def on_unmount(self) -> None:
        """Stop what still runs for this screen."""
        self._stop("examine", "decode", "digest", "preview", "layout")

    def watch_state(self, before: State, after: State) -> None:
        """Let the style sheet know."""
        self.remove_class(f"-{before}", update=False)
        self.add_class(f"-{after}")

    def look(self) -> None:
        """Inspect the checkpoint; `Examined`, `Faulted` or `Stopped` follows."""
        self._start(
            lambda cancel: workers.examine(self.engine, self.target, cancel, self.post_message),
            "examine",
            "looking at the checkpoint",
        )

    def stop_looking(self) -> None:
        """Ask the inspection, or decoding, to stop; `Stopped` or `DecodingStopped` follows."""
        self._stop("examine", "decode")

    async def look_again(self) -> None:
        """Forget everything and inspect anew."""
        self._stop("examine", "decode", "digest", "preview", "layout")
        self.found, self.progress = None, None
        await self.draw_loading()
        self.state = State.LOADING
        self.look()

    async def decode(self, wish: "Decoding") -> None:
        """Decode, this once; `Decoded` or `DecodingStopped` follows."""
        if self.found is None or self.state is not State.READY:
            return
        self._hash_on = self.is_at_work("digest")
        self._asked = Asked(wish.listed, wish.checksums)
        self._stop("digest")
        self.state = State.DECODING
        await self.draw_decoding()
        target, found = self.target, self.found.inspection
        self._start(
            lambda cancel: workers.decode(self.engine, target, found, wish, cancel, self.post_message),
            "decode",
            "decoding pickles",
        )

    def digest(self) -> None:
        """Hash in the background; `Digested` or `DigestsStopped` follows."""
        if self.found is not None:
            inspection, mode = self.found.inspection, self.digest_mode
            self._start(
                lambda cancel: workers.digest(self.engine, inspection, mode, cancel, self.post_message),
                "digest",
                "hashing files",
            )

    def digest_all_or_stop(self) -> None:
        """Hash every file whatever its size, or stop hashing."""
        if self.is_at_work("digest"):
            self._stop("digest")
        else:
            self.digest_mode = "all"
            self.digest()

    def preview(self, path: bytes) -> None:
        """Read the beginning of a file; `Previewed` follows."""
        if self.found is not None:
            inspection = self.found.inspection
            self._start(
                lambda cancel: workers.preview(self.engine, inspection, path, cancel, self.post_message),
                "preview",
                "reading a file for the preview",
            )

    def lay_out(self, path: bytes) -> None:
        """Find out what stands where in a file; `LaidOut` follows."""
        if self.found is not None:
            inspection = self.found.inspection
            self._start(
                lambda cancel: workers.layout(self.engine, inspection, path, cancel, self.post_message),
                "layout",
                "laying out a file",
            )

    # What the workers say

    @on(messages.Progressed)
    async def _progressed(self, event: messages.Progressed) -> None:
        if self.left:
            return
        hashing = event.progress.stage == "digests"
        if self.state is State.LOADING or (self.state is State.DECODING and not hashing):
            self.progress = event.progress
            await self.draw_progress(event.progress)
        elif self.is_at_work("digest"):
            from shardscope.app.explorer.checkpoint.status import digests_running

            self.draw_digests(digests_running(event.progress))

    @on(messages.Examined)
    async def _examined(self, event: messages.Examined) -> None:
        if self.left:
            return
        from shardscope.app.explorer.checkpoint.panels import Found
        from shardscope.app.explorer.checkpoint.status import digests_at_rest

        self.found = found = Found(event.found, event.host, offer=event.offer)
        if event.offer is not None:
            self.found = found = replace(
                found, decode_key=self._key_of("explore.decode"), fix_key=self._key_of("explore.fix")
            )
        self._hashed = False
        self.exit_code = event.found.exit_code()
        await self.draw_found(found, event.files)
        self.draw_digests(digests_at_rest(found.descriptor))
        self.state = State.READY
        self.call_after_refresh(self.digest)

    def _key_of(self, binding: str) -> str:
        from shardscope.app.explorer.help.keys import key_rows

        return next((row.keys[0] for row in key_rows(self) if row.id == binding), "")

    @on(messages.Faulted)
    async def _faulted(self, event: messages.Faulted) -> None:
        if self.left:
            return
        from shardscope.app.explorer.notice import Notice
        from shardscope.engine.model.codes import CODES

        self.exit_code = CODES[event.blocker.code].exit or ExitCode.UNREADABLE
        await self.draw_notice(Notice.fault(event.blocker))
        self.state = State.FAILED

    @on(messages.Stopped)
    async def _stopped(self) -> None:
        if self.left:
            return
        from shardscope.app.explorer.notice import Notice

        await self.draw_notice(Notice.stopped(self.progress))
        self.state = State.STOPPED

    async def broke(self, blocker: "Blocker") -> None:
        """Say that an error of our own ended the inspection."""
        from shardscope.app.explorer.notice import Notice

        await self.draw_notice(Notice.broken(blocker))
        self.state = State.FAILED

    @on(messages.Decoded)
    async def _decoded(self, event: messages.Decoded) -> None:
        if self.found is None or self.found.inspection is not event.before or self.left:
            return
        self.found = replace(self.found, inspection=event.found, asked=self._asked, layout=None)
        self._hash_on |= self._hashed and not event.digested
        self.exit_code = event.found.exit_code()
        await self.draw_found(self.found, event.files)
        self._back_to_rest()

    @on(messages.DecodingStopped)
    async def _decoding_stopped(self, event: messages.DecodingStopped) -> None:
        if self.found is not None and self.found.inspection is event.before and not self.left:
            await self.not_decoded(event.blocker)

    async def not_decoded(self, blocker: "Blocker | None") -> None:
        """Go back to what was known before decoding."""
        await self.draw_not_decoded(blocker)
        self._back_to_rest()

    def _back_to_rest(self) -> None:
        from shardscope.app.explorer.checkpoint.status import digests_at_rest

        if self.found is not None:
            self.draw_digests(digests_at_rest(self.found.descriptor))
        self.state = State.READY
        if self._hash_on:
            self._hashed = False
            self.call_after_refresh(self.digest)

    @on(messages.Digested)
    def _digested(self, event: messages.Digested) -> None:
        if self.found is not None and self.found.inspection is event.before and not self.left:
            self.found = replace(self.found, inspection=event.found)
            self._hashed = True
            self.exit_code = event.found.exit_code()
            self.draw_news(self.found, event.marks)
            from shardscope.app.explorer.checkpoint.status import digests_at_rest

            self.draw_digests(digests_at_rest(event.found.descriptor))

    @on(messages.DigestsStopped)
    def _digests_stopped(self, event: messages.DigestsStopped) -> None:
        self.draw_digests(f"digests {event.reason}")

    @on(messages.Previewed)
    def _previewed(self, event: messages.Previewed) -> None:
        if self.found is not None and not self.left:
            self.found = replace(self.found, preview=event.preview, blocks=event.blocks)
            self.draw_news(self.found)

    @on(messages.LaidOut)
    def _laid_out(self, event: messages.LaidOut) -> None:
        if self.found is not None and not self.left:
            self.found = replace(self.found, layout=event.file_layout)
            self.draw_news(self.found)

"""What a guided conversion does in the background before its run: reading, planning, rules of renaming, each in a thread.

The workers only post messages. The handlers here own every change of state and ask the screen to draw.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on

from shardscope.app.explorer.convert import messages, workers
from shardscope.app.explorer.convert.calls import Conversions
from shardscope.app.explorer.convert.choices import keys_from
from shardscope.app.explorer.convert.draft import Draft, command_of
from shardscope.app.explorer.convert.fields import Known
from shardscope.app.explorer.convert.pages import Comes
from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.frame import OutputFrame
from shardscope.app.explorer.output.making import Work
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.workers import carry_out, look_at_target
from shardscope.app.explorer.target import Target
from shardscope.engine.model.blocker import Blocker

if TYPE_CHECKING:
    from shardscope.app.explorer.output.calls import Conduct
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection

CHOOSING = (Step.WHAT, Step.WHERE, Step.OPTIONS, Step.PLAN)
"""Steps that a person goes to and fro between; nothing is written in any of them."""


def same_plan(one: Draft, other: Draft) -> bool:
    """Tell whether two drafts have the same plan: they differ at most in where it goes and in how it is carried out."""
    blank = Draft()
    conduct = {name: getattr(blank, name) for name in Destination.__struct_fields__}
    return replace(one, **conduct) == replace(other, **conduct)


class Conversion(OutputFrame):
    """A screen about one conversion, without the looks of its steps."""

    GROUP = "convert"
    WHAT = "conversion"
    DOING = "converting"
    CHOOSING: ClassVar[tuple[Step, ...]] = CHOOSING
    LOOKING = "what there is to convert"
    draft: Draft

    def __init__(self, target: Target, calls: Conversions) -> None:
        super().__init__(target, calls.memory)
        self.calls = calls
        self.known = Known()
        self.found: Inspection | None = None
        self.decoded = False

    # What an output is made of

    def blank(self) -> Draft:
        """Return the draft of which nothing was chosen."""
        return Draft()

    def same_plan(self, one: Draft, other: Draft) -> bool:
        """Tell whether two drafts have the same plan."""
        return same_plan(one, other)

    def planning(self) -> Work | None:
        """Return what plans the present draft."""
        made_of, draft = self.prepared or self.found, self.draft
        if made_of is None:
            return None
        return lambda cancel: workers.plan(self.calls, self.target, draft, made_of, cancel, self.post_message)

    def seeing(self) -> Work:
        """Return what looks at the target of the present draft."""
        draft = self.draft
        return lambda _: look_at_target(
            lambda: self.calls.target(self.target, draft), draft, self.post_message
        )

    def running(self, prepared: "Prepared", conduct: "Conduct") -> Work:
        """Return what converts."""
        draft = self.draft
        return lambda _: carry_out(
            lambda: self.calls.convert(self.target, draft, prepared, conduct), conduct, self.post_message
        )

    @property
    def word(self) -> str:
        """What a person types to start."""
        return self.draft.kind

    @property
    def option_keys(self) -> Mapping[str, str]:
        """What to press at admission for options of the command line."""
        return keys_from(CHOOSING.index(Step.PLAN) + 1)

    @property
    def is_decoded(self) -> bool:
        """Whether pickles are decoded for it."""
        return self.decoded

    def command_for(self, draft: Destination) -> str:
        """Return the command that does what a draft says."""
        assert isinstance(draft, Draft)  # noqa: S101 - what `blank` returned, or another one made of it
        return command_of(draft, self.target, decoded=self.decoded)

    @property
    def comes(self) -> Comes:
        """What the draft comes to."""
        return Comes(self.plan, self.facts, self.refused)

    # Work

    def read(self, decoding: "Decoding | None") -> None:
        """Read what plans are made of; `Read` or `Unread` follows."""
        self.decoded = decoding is not None
        self.work(
            lambda cancel: workers.look(self.calls, self.target, decoding, cancel, self.post_message),
            "convert-read",
            "reading what there is to convert",
        )

    def name_renames(self, path: str) -> None:
        """Take the renaming rules of a file; none for an empty path."""
        if not path:
            self.take(replace(self.draft, renames_file=None, options=replace(self.draft.options, renames=())))
            return
        draft = self.draft
        self.work(
            lambda _: workers.read_renames(self.calls, draft, path, self.post_message),
            "convert-renames",
            "reading rules of renaming",
        )

    # What the workers say

    @on(messages.Read)
    async def _read(self, event: messages.Read) -> None:
        self.found = event.found
        self.known = replace(self.known, components=event.components)
        self.step = Step.WHAT
        await self.draw_step()
        self.go_on()

    @on(messages.Unread)
    async def _unread(self, event: messages.Unread) -> None:
        if event.blocker is None:
            self.dismiss(None)
        else:
            await self.draw_unread(event.blocker)

    def unread(self, error: Blocker) -> None:
        """Say that what there is to convert could not be read: an error of our own."""
        self.post_message(messages.Unread(error))

    @on(messages.Planned)
    def _has_plan(self, event: messages.Planned) -> None:
        if self.same_plan(event.draft, self.draft):
            self.prepared, self.plan, self.refused = event.prepared, event.plan, None
            self.facts = event.facts
            self.known = replace(self.known, resumable=self.take_earlier(event.earlier))
        self.settled(event.draft)

    @on(messages.Unplanned)
    def _has_no_plan(self, event: messages.Unplanned) -> None:
        if self.same_plan(event.draft, self.draft):
            self.prepared = self.plan = self.earlier = None
            self.refused = event.blocker
        self.settled(event.draft)

    @on(messages.RenamesRead)
    def _renames_read(self, event: messages.RenamesRead) -> None:
        if event.blocker is None and event.draft is not None:
            self.take(
                replace(
                    self.draft,
                    renames_file=event.path,
                    options=replace(self.draft.options, renames=event.draft.options.renames),
                )
            )
        elif event.blocker is not None:
            from shardscope.app.explorer.dialogs import NotDone

            self.app.push_screen(NotDone("Not read", event.blocker))

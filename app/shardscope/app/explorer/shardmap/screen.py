"""The shard map: one tensor as a picture of who holds what, with a cursor, and against a target."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.shardmap import workers
from shardscope.app.explorer.shardmap.asking import Wish
from shardscope.app.explorer.shardmap.engine import CALLS, Calls
from shardscope.app.explorer.shardmap.keys import BINDINGS
from shardscope.app.explorer.shardmap.messages import Aimed, Charted, Laned
from shardscope.app.explorer.shardmap.subject import Subject
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.shard_map import ShardPicture
from shardscope.widgets.shard_map_words import ShardNotes, legend
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

if TYPE_CHECKING:
    from shardscope.app.explorer.shardmap.sight import Sight
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.shardview import Drawing
    from shardscope.engine.model.transfer import TransferPlan
    from shardscope.engine.peeking.tensormaps import Chart

DECODE = "decode"
"""What the screen ends with where the person wants to decode."""


class ShardMap(Screen["str | None"]):
    """One tensor's map. Ends with `DECODE`, or with None."""

    AUTO_FOCUS = ""  # the keys are the screen's own
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(self, subject: Subject, calls: Calls = CALLS) -> None:
        super().__init__()
        self.subject = subject
        self.calls = calls
        self.sight: Sight | None = None
        """Where the person is; None until the map is there, and where it cannot be drawn."""
        self.blocker: Blocker | None = None
        """Why there is no map."""
        self.wish: Wish | None = None
        """The target that is shown or made."""
        self.plan: TransferPlan | None = None
        """The copies to it."""
        self._lanes: Laned | None = None
        self._then: Callable[[], None] | None = None
        """What to do when the target is there."""

    # The frame.

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from a worker."""
        from shardscope.app.explorer.checkpoint.explore import crumbs

        tensor = self.subject.tensor
        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.subject.target.path), tensor.name)
            yield StatusLine(*self._facts())
        yield Static(id="view")
        with Horizontal(id="map"):
            yield ShardPicture()
            yield ShardNotes()
        yield Static(id="legend")
        yield Static(id="standing")
        yield Hints()

    def _facts(self) -> tuple[Part, ...]:
        from shardscope.engine.inspecting.decoding import bytes_of
        from shardscope.engine.peeking.tensormaps import topology
        from shardscope.widgets.figures import size
        from shardscope.widgets.tensor_detail import shape_words

        tensor = self.subject.tensor
        facts: list[Part] = [f"{tensor.dtype} {shape_words(tensor.shape)}"]
        if (count := bytes_of(tensor)) is not None:
            facts.append(size(count))
        facts.append(topology(len({each.label for each in tensor.fragments}), tensor.mesh))
        return tuple(facts)

    def on_mount(self) -> None:
        """Make the map ready: at once, where that is quick."""
        subject, calls = self.subject, self.calls
        made = calls.quick(subject.tensor)
        if made is not None:
            self._show_chart(made)
            return
        self.query_one(ShardPicture).say("Reading the map")
        self._start(
            lambda: workers.chart(calls, subject.inspection, subject.tensor, self.post_message),
            "reading the map of a tensor",
        )

    def _start(self, work: Callable[[], None], description: str) -> None:
        self.app.run_worker(work, group="shardmap", description=description, thread=True, exit_on_error=False)

    # What the workers say.

    @on(Laned)
    def _laned(self, event: Laned) -> None:
        self._lanes = event
        if self.sight is not None:
            self.sight.lanes = event.lanes
            if not self.sight.on_target:
                self.sight.see("files")
                self.draw()

    @on(Charted)
    def _charted(self, event: Charted) -> None:
        self._show_chart(event.chart)

    def _show_chart(self, found: "Chart | Blocker") -> None:
        from shardscope.app.explorer.shardmap.sight import Sight
        from shardscope.engine.model.blocker import Blocker

        if isinstance(found, Blocker) or found.guide is None:
            self.blocker = found if isinstance(found, Blocker) else found.blockers[0]
            self.query_one(ShardPicture).say("This map cannot be drawn.")
            self._say_blocker(self.blocker)
        else:
            self.sight = Sight(found, found.guide, () if self._lanes is None else self._lanes.lanes)
            self.draw()
        self.refresh_bindings()

    def _say_blocker(self, blocker: "Blocker") -> None:
        from shardscope.widgets.paragraphs import Paragraph

        self.query_one(ShardNotes).show(
            [
                Paragraph(((blocker.message, Tone.STOP),)),
                Paragraph((blocker.remedy,)),
                Paragraph(((blocker.code, Tone.MUTED),)),
            ]
        )

    @on(Aimed)
    def _aimed(self, event: Aimed) -> None:
        from shardscope.engine.model.blocker import Blocker

        if event.wish != self.wish or self.sight is None:
            return
        then, self._then = self._then, None
        if isinstance(event.made, Blocker):
            from shardscope.app.explorer.dialogs import NotDone

            self.wish = None
            self.app.push_screen(NotDone("No such target", event.made))
            self.draw()
            return
        chart, self.plan = event.made
        if chart.guide is None:
            return
        self.sight.target = chart
        if then is not None:
            then()
        self.draw()
        self.refresh_bindings()

    # Drawing.

    @on(ShardPicture.Resized)
    def _resized(self, event: ShardPicture.Resized) -> None:
        event.stop()
        sight = self.sight
        if sight is None or sight.room != self.query_one(ShardPicture).room(sight.extent[0], sight.labels):
            self.draw()

    def draw(self) -> None:
        """Draw what is in sight."""
        from shardscope.engine.model.blocker import Fault, blocker

        sight = self.sight
        picture = self.query_one(ShardPicture)
        if sight is None or not picture.size:  # there is no room yet: `Resized` will tell
            return
        sight.room = picture.room(sight.extent[0], sight.labels)
        try:
            drawing = sight.drawing
        except Fault as fault:
            picture.say("This cannot be drawn.")
            self._say_blocker(blocker(fault.finding, self.subject.tensor.name))
            return
        if drawing.cells:
            picture.show(drawing, *drawing.cell(*sight.look.at))
        else:
            picture.say("No elements")
        self._say(sight, drawing)

    def _say(self, sight: "Sight", drawing: "Drawing") -> None:
        from shardscope.app.explorer.shardmap.saying import foot, head, notes

        words = self.query_one(ShardNotes)
        words.show(notes(self.subject, sight))
        under: Content = legend(drawing.marks, self.size.width - 2, words.glyphs)
        self.query_one("#view", Static).update(content(*head(sight, self.wish)), layout=False)
        self.query_one("#legend", Static).update(under, layout=False)
        self.query_one("#standing", Static).update(content(*foot(self.subject, sight, drawing)), layout=False)

    # What the keys do.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        if action in ("copy", "back", "peek"):
            return True
        if action == "decode":
            return bool(self.subject.offer)
        return self.sight is not None

    def _do(self, act: "Callable[[Sight], None]") -> None:
        if self.sight is not None:
            act(self.sight)
            self.draw()

    def action_move(self, down: int, right: int) -> None:
        """Move the cursor."""
        self._do(lambda sight: sight.move(down, right))

    def action_ends(self, last: bool) -> None:
        """Go to the first or the last element."""
        self._do(lambda sight: sight.ends(last=last))

    def action_step(self, by: int) -> None:
        """Go to another piece."""
        self._do(lambda sight: sight.step(by))

    def action_zoom_in(self) -> None:
        """Look closer."""
        self._do(lambda sight: sight.zoom_in())

    def action_zoom_out(self) -> None:
        """Go back to where the person zoomed in from."""
        self._do(lambda sight: sight.zoom_out())

    def action_holder(self) -> None:
        """Tell another of the holders."""
        self._do(lambda sight: sight.next_holder())

    def action_notes(self) -> None:
        """Give the keys to the words, or back to the picture."""
        words = self.query_one(ShardNotes)
        self.set_focus(None if words.has_focus else words)

    @on(ShardPicture.Pointed)
    def _pointed(self, event: ShardPicture.Pointed) -> None:
        self._do(lambda sight: sight.point(event.line, event.cell))

    def action_turn(self) -> None:
        """Show the next view; the files are looked up when they are first asked for."""
        if self.sight is None:
            return
        view = self.sight.turn()
        if view == "files" and self._lanes is None:
            subject, calls = self.subject, self.calls
            self._start(
                lambda: workers.lanes(calls, subject.inspection, subject.tensor, self.post_message),
                "looking up neighbours in files",
            )
            return
        self._do(lambda sight: sight.see(view))

    def action_target(self) -> None:
        """Show the target, or the source again; ask for a target where there is none."""
        if self.sight is None or self.sight.target is None:
            self.action_ask_target()
        else:
            self._do(lambda sight: sight.turn_side())

    def action_ask_target(self) -> None:
        """Ask for a target, and show it."""
        self._ask_target(self._show_target)

    def _show_target(self) -> None:
        if self.sight is not None and not self.sight.on_target:
            self.sight.turn_side()

    def _ask_target(self, then: Callable[[], None]) -> None:
        from shardscope.app.explorer.shardmap.asking import EXAMPLE, read_wish
        from shardscope.app.explorer.shardmap.dialogs import Question

        def answered(wish: Wish | None) -> None:
            if wish is not None:
                self.aim(wish, then)

        words = "Numbers of ranks, as for reshard, or the path of a map. Nothing is written."
        typed = "" if self.wish is None else self.wish.words
        self.app.push_screen(Question("Target", words, EXAMPLE, read_wish, typed), answered)

    def aim(self, wish: Wish, then: Callable[[], None]) -> None:
        """Make the map of a target, and do something when it is there; `Aimed` follows."""
        if self.sight is None:
            return
        self.wish, self._then = wish, then
        subject, calls, source = self.subject, self.calls, self.sight.source
        self._start(
            lambda: workers.aim(calls, subject.inspection, subject.tensor, source, wish, self.post_message),
            "making the map of a target",
        )

    def action_transfer(self) -> None:
        """Show who gives what to whom; ask for a target where there is none."""
        if self.plan is None:
            self._ask_target(self._show_transfer)
        else:
            self._show_transfer()

    def _show_transfer(self) -> None:
        from shardscope.app.explorer.shardmap.dialogs import Transfer
        from shardscope.engine.model.tensors import DTYPES

        if self.plan is not None and self.wish is not None:
            known = DTYPES.get(self.subject.tensor.dtype)
            words = f"From source ranks to target ranks: {self.wish.words}"
            self.app.push_screen(Transfer(self.plan, 8 if known is None else known.bits, words))

    def action_go_to(self) -> None:
        """Ask for an element, and go there."""
        from shardscope.app.explorer.shardmap.asking import read_index
        from shardscope.app.explorer.shardmap.dialogs import Question

        if self.sight is None:
            return
        shape = self.sight.shape
        what = {"logical": "the full tensor", "shard": "this shard", "files": "the record, in bytes"}
        words = f"An index of {what[self.sight.look.view]}, {' x '.join(f'{n:,}' for n in shape)}; from 0 on."

        def answered(index: tuple[int, ...] | None) -> None:
            if index is not None:
                self._do(lambda sight: sight.go_to(index))

        example = ", ".join(str(n // 2) for n in shape) or "0"
        self.app.push_screen(
            Question("Go to an element", words, example, lambda text: read_index(text, shape)), answered
        )

    def action_copy(self) -> None:
        """Copy the command that says the same, and show it."""
        from shardscope.app.explorer.dialogs import CopiedCommand

        sight = self.sight
        if sight is not None and sight.on_target and self.wish is not None:
            command = self.subject.reshard_command(self.wish)
        elif sight is not None and sight.look.view == "shard":
            command = self.subject.command(sight.guide.atlas.groups[sight.look.group].ranks[0])
        else:
            command = self.subject.command()
        self.app.copy_to_clipboard(command)
        self.app.push_screen(CopiedCommand(command))

    def action_peek(self) -> None:
        """Show the numbers, in front of this screen."""
        from shardscope.app.explorer.peek.opening import show
        from shardscope.app.explorer.peek.subject import Subject as Numbers
        from shardscope.engine.model.blocker import Fault

        subject, index = self.subject, None
        if self.sight is not None and not self.sight.on_target:
            with suppress(Fault):
                index = self.sight.spot.index
        numbers = Numbers(
            target=subject.target,
            inspection=subject.inspection,
            name=subject.tensor.name,
            part_of=subject.tensor.part_of,
            spec=subject.spec,
            at=index,
            asked=subject.asked,
            offer=subject.offer,
        )
        show(self.app, numbers, self.action_decode)

    def action_decode(self) -> None:
        """Go back, and have the question about decoding asked."""
        self.dismiss(DECODE)

    def action_back(self) -> None:
        """Out of the words, out of the zoom, then of the screen."""
        if self.query_one(ShardNotes).has_focus:
            self.action_notes()
        elif self.sight is not None and self.sight.look.outer:
            self.action_zoom_out()
        else:
            self.dismiss(None)

"""The Open screen: a path typed with completion, or picked from what a folder offers."""

import os
from enum import StrEnum
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.messages import Chosen
from shardscope.app.explorer.open.candidates import Offer, candidates
from shardscope.app.explorer.open.completion import completed, split
from shardscope.app.explorer.open.rows import CANDIDATE_COLUMNS, CandidateRows, Levels, RecentRows
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine


class Place(StrEnum):
    """What the list shows."""

    FOLDER = "folder"
    RECENT = "recent"


class Open(Screen[None]):
    """Asks what to look at: a path, or one of the candidates of a folder."""

    AUTO_FOCUS = "Levels"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "slash", "path", "Type a path", id="open.path", tooltip="Type the path of a file or a folder"
        ),
        Binding(
            "tab",
            "next",
            "Complete",
            id="open.next",
            tooltip="In the path: complete it. In the list: go to the path",
        ),
        Binding("shift+tab", "list", "List", show=False, id="open.previous", tooltip="Go to the list"),
        Binding(
            "c",
            "cache",
            "Hub cache",
            id="open.cache",
            tooltip="Look around in the Hugging Face cache of this machine",
        ),
        Binding("r", "recent", "Recent", id="open.recent", tooltip="What was looked at before, and back"),
        Binding(
            "y",
            "copy",
            "Copy command",
            show=False,
            id="open.copy",
            tooltip="Copy the command that says the same",
        ),
        Binding("down", "move('cursor', 1)", "Down", show=False, id="open.down", tooltip="Next in the list"),
        Binding("up", "move('cursor', -1)", "Up", show=False, id="open.up", tooltip="Previous in the list"),
        Binding(
            "pagedown",
            "move('page', 1)",
            "Page down",
            show=False,
            id="open.page_down",
            tooltip="A page further",
        ),
        Binding(
            "pageup", "move('page', -1)", "Page up", show=False, id="open.page_up", tooltip="A page back"
        ),
        Binding(
            "escape",
            "up",
            "Back",
            show=False,
            id="open.list",
            tooltip="Out of the path, then of the folder; never quits",
        ),
    ]

    class Offered(Message):
        """A folder was glanced at."""

        def __init__(self, offer: Offer) -> None:
            super().__init__()
            self.offer = offer

    class Remembered(Message):
        """It is known what was looked at before."""

        def __init__(self, paths: tuple[str, ...]) -> None:
            super().__init__()
            self.paths = paths

    class Completed(Message):
        """A path was completed."""

        def __init__(self, typed: str, path: str) -> None:
            super().__init__()
            self.typed = typed
            self.path = path

    def __init__(self, *, recent: str | None = None) -> None:
        """`recent` is where the paths are that were looked at; None where they are not kept."""
        super().__init__()
        self._recent = recent
        self._place = Place.FOLDER
        self._start = self._folder = "."
        self._offer = Offer(".", (), whole=True)
        self._paths: tuple[str, ...] = ()
        self.rows = Levels(CANDIDATE_COLUMNS, RecentRows(()), empty="Looking", id="candidates")

    def compose(self) -> ComposeResult:
        """Draw the list under the path."""
        with Horizontal(id="top"):
            yield Breadcrumbs("shardscope", "open")
            yield StatusLine("nothing opened yet")
        with Vertical(id="open"):
            yield Static("What do you want to look at? Nothing in it will be run.", id="question")
            yield SearchLine(
                placeholder="path of a file or a folder; tab completes it", id="path", select_on_focus=False
            )
            yield Static(id="caption")
            yield self.rows
        yield Hints()

    def on_mount(self) -> None:
        """Glance at the current folder."""
        self._go(".")

    # Looking

    def _go(self, folder: str) -> None:
        """Glance at `folder`; `Offered` follows."""
        self._place = Place.FOLDER
        self._folder = folder
        self._work(lambda: self.post_message(self.Offered(candidates(folder))), "glancing at a folder")

    def _work(self, work: Any, description: str) -> None:
        self.app.run_worker(
            work, group="glance", description=description, thread=True, exclusive=True, exit_on_error=False
        )

    @on(Offered)
    def _offered(self, event: Offered) -> None:
        event.stop()
        if event.offer.folder != self._folder or self._place is not Place.FOLDER:
            return  # the person has gone on
        self._offer = event.offer
        self.rows.show(CandidateRows(event.offer.found, event.offer.folder))
        self._filter()

    def _filter(self) -> None:
        """List what the typed beginning of a name leaves."""
        found = self._offer.found
        _, begun = split(self._typed)
        names = [os.path.basename(each.path) for each in found]
        kept = [
            at
            for at, name in enumerate(names)
            if not begun or (at > 0 and name.lower().startswith(begun.lower()))
        ]
        self.rows.show_rows(kept)
        self.rows.move_to(0)
        aside: Part = "" if self._offer.whole else ("  the first of more", Tone.CAUTION)
        here = self._offer.folder == "."
        parts: tuple[Part, ...] = (
            (("In this folder", Tone.MUTED),) if here else (("In ", Tone.MUTED), self._offer.folder)
        )
        self.query_one("#caption", Static).update(content(*parts, aside))

    @property
    def _typed(self) -> str:
        return self.query_one("#path", SearchLine).value

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        folder, _ = split(event.value)
        wanted = folder if event.value else self._start
        if wanted != self._folder or self._place is not Place.FOLDER:
            self._go(wanted)
        else:
            self._filter()

    # Going about

    @on(Levels.Entered)
    def _enter(self, event: Levels.Entered) -> None:
        event.stop()
        if self._place is Place.RECENT:
            self._choose(self._paths[event.row])
            return
        each = self._offer.found[event.row]
        if each.is_cache:
            self._browse_cache(each.path)
        elif each.is_folder and event.row > 0:
            self._leave_path()
            self._go(each.path)
        elif not each.is_folder:
            self._choose(each.path)

    @on(Levels.Left)
    def _out(self) -> None:
        if self._place is Place.RECENT:
            self._go(self._start)
            return
        self._leave_path()
        above = os.path.dirname(os.path.abspath(self._folder))
        self._go("." if above == os.getcwd() else above)

    def _leave_path(self) -> None:
        field = self.query_one("#path", SearchLine)
        with field.prevent(Input.Changed):
            field.value = ""
        self.rows.focus()

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        self._take(event.row)

    def _take(self, row: int) -> None:
        if self._place is Place.RECENT:
            self._choose(self._paths[row])
        elif (each := self._offer.found[row]).is_cache:
            self._browse_cache(each.path)
        else:
            self._choose(each.path)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Look at what was typed; where there is no such thing, at what the list has for its beginning."""
        event.stop()
        typed = os.path.expanduser(event.value.strip())
        if (not typed or not os.path.lexists(typed)) and self.rows.row is not None:
            self._take(self.rows.row)
        elif typed:
            self._choose(typed)

    def _choose(self, path: str) -> None:
        self.post_message(Chosen(path))

    def _browse_cache(self, path: str) -> None:
        from shardscope.app.explorer.open.cache import CacheBrowser

        self.app.push_screen(CacheBrowser(path))

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        return action != "recent" or self._recent is not None

    def action_path(self) -> None:
        """Type a path."""
        self.query_one("#path", SearchLine).focus()

    def action_list(self) -> None:
        """Go to the list."""
        self.rows.focus()

    def action_next(self) -> None:
        """Complete the path, or go to it."""
        if self.rows.has_focus:
            self.action_path()
            return
        typed = self._typed
        self._work(lambda: self.post_message(self.Completed(typed, completed(typed))), "completing a path")

    @on(Completed)
    def _completed(self, event: Completed) -> None:
        event.stop()
        field = self.query_one("#path", SearchLine)
        if field.value != event.typed:
            return  # typed on
        if event.path == event.typed:
            self.rows.focus()
        else:
            field.value = event.path
            field.action_end()

    def action_move(self, how: str, by: int) -> None:
        """Move in the list while the path has the keys."""
        if how == "cursor":
            self.rows.action_cursor(by)
        else:
            self.rows.action_page(by)

    def action_up(self) -> None:
        """Leave the path, the list of recent paths, the folder; at the first one there is nothing above."""
        if not self.rows.has_focus or self._typed:
            self._leave_path()
            self._go(self._start)
        elif self._place is Place.RECENT or self._folder != self._start:
            self._go(self._start)

    def action_cache(self) -> None:
        """Look around in the cache of this machine."""
        from shardscope.engine.source.hub_cache import default_cache

        self._browse_cache(default_cache(os.environ))

    def action_recent(self) -> None:
        """Show what was looked at before, or the folder again."""
        kept = self._recent
        if self._place is Place.RECENT:
            self._go(self._start)
        elif kept is not None:
            from shardscope.app.settings.recent import recent

            self._place = Place.RECENT
            self._work(lambda: self.post_message(self.Remembered(recent(kept))), "reading recent paths")

    @on(Remembered)
    def _remembered(self, event: Remembered) -> None:
        event.stop()
        if self._place is Place.RECENT:
            self._paths = event.paths
            self.rows.show(RecentRows(event.paths))
            self.query_one("#caption", Static).update(
                content(("Looked at before, the newest first", Tone.MUTED))
            )
            self.rows.focus()

    def action_copy(self) -> None:
        """Copy the command that says what looking at the row would show."""
        from shardscope.app.explorer.copying import copy, of_path

        row = self.rows.row
        if row is not None:
            path = self._paths[row] if self._place is Place.RECENT else self._offer.found[row].path
            copy(self.app, of_path(path))

"""The Hugging Face cache: its repositories, their revisions, and what was not downloaded to its end."""

import os
from threading import Event
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.messages import Chosen
from shardscope.app.explorer.open.rows import (
    REPO_COLUMNS,
    REVISION_COLUMNS,
    Levels,
    RecentRows,
    RepoRows,
    RevisionRows,
    revision_words,
)
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.source.hub_cache import HubCache, Repo, read_cache
from shardscope.widgets.figures import plural, size
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine


class CacheBrowser(Screen[None]):
    """One cache. What is chosen is looked at with its links admitted, as `--hf-cache` does."""

    AUTO_FOCUS = "Levels"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="cache.search", tooltip="List what has a text in its name"),
        Binding("y", "copy", "Copy command", id="cache.copy", tooltip="Copy the command that says the same"),
        Binding("down", "move('cursor', 1)", "Down", show=False, id="cache.down", tooltip="Next in the list"),
        Binding("up", "move('cursor', -1)", "Up", show=False, id="cache.up", tooltip="Previous in the list"),
        Binding(
            "escape", "up", "Back", id="cache.back", tooltip="Out of the search, the repository, the cache"
        ),
    ]

    class Read(Message):
        """It is known what lies in the cache."""

        def __init__(self, cache: HubCache) -> None:
            super().__init__()
            self.cache = cache

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.cache: HubCache | None = None
        """None until it was read."""
        self.repo: Repo | None = None
        """The one whose revisions are listed; None for the list of repositories."""
        self.rows = Levels(REPO_COLUMNS, RecentRows(()), empty="Looking; nothing is opened. esc goes back.")

    def compose(self) -> ComposeResult:
        """Draw the list under what is searched for."""
        with Horizontal(id="top"):
            yield Breadcrumbs("shardscope", "Hugging Face cache")
            yield StatusLine("names and sizes only", "nothing opened")
        with Vertical(id="open"):
            yield Static(id="caption")
            yield SearchLine(
                placeholder="type a part of the name", id="search", select_on_focus=False, compact=True
            )
            yield self.rows
        yield Hints()

    def on_mount(self) -> None:
        """Look at the cache."""
        self.query_one("#search").display = False
        path = self.path

        def work() -> None:
            cancel: Event = get_current_worker().cancelled_event
            try:
                self.post_message(self.Read(read_cache(path, cancel)))
            except Cancelled:
                return

        self.app.run_worker(
            work,
            group="cache",
            description="looking at a Hugging Face cache",
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    def on_unmount(self) -> None:
        """Stop looking."""
        self.app.workers.cancel_group(self.app, "cache")

    @on(Read)
    def _read(self, event: Read) -> None:
        event.stop()
        self.cache = event.cache
        self._show()

    def _show(self, cursor: int = 0) -> None:
        """List the repositories, or the revisions of one."""
        cache = self.cache
        if cache is None:
            return
        crumbs = self.query_one(Breadcrumbs)
        if self.repo is None:
            crumbs.parts = ("shardscope", "Hugging Face cache")
            self.rows.say_when_empty(self._nothing(cache))
            self.rows.show(RepoRows(cache.repos), columns=REPO_COLUMNS, cursor=cursor)
            told = plural(len(cache.repos), "repository", "repositories")
            words = f"{told}, {size(sum(repo.bytes for repo in cache.repos))}, in "
            more: Part = "" if cache.whole else ("  not all of it: it is too large", Tone.CAUTION)
            self._caption((words, Tone.MUTED), cache.path, more)
        else:
            crumbs.parts = ("shardscope", "Hugging Face cache", self.repo.name)
            self.rows.show(RevisionRows(self.repo), columns=REVISION_COLUMNS, cursor=cursor)
            self._caption(*self._about(self.repo))
        self.refresh_bindings()

    def _caption(self, *parts: Part) -> None:
        self.query_one("#caption", Static).update(content(*parts))

    def _nothing(self, cache: HubCache) -> str:
        if os.path.isdir(cache.path):
            return "No repositories here"
        return "There is no such folder. HF_HOME and HF_HUB_CACHE say where the cache is."

    def _about(self, repo: Repo) -> tuple[Part, ...]:
        told = plural(len(repo.revisions), "revision")
        parts: list[Part] = [(f"{repo.kind}, {told}, {size(repo.bytes)} of blobs", Tone.MUTED)]
        if repo.incomplete:
            left = size(repo.incomplete_bytes)
            parts.append((f"  {plural(repo.incomplete, 'incomplete blob')} of {left} so far", Tone.CAUTION))
        return tuple(parts)

    # Going about

    @on(Levels.Entered)
    @on(VirtualRows.RowSelected)
    def _enter(self, event: Levels.Entered | VirtualRows.RowSelected) -> None:
        event.stop()
        if self.cache is None:
            return
        if self.repo is None:
            self._close_search()
            self.repo = self.cache.repos[event.row]
            self._show()
        else:
            self.post_message(Chosen(self.repo.revisions[event.row].path, hf_cache=True))

    @on(Levels.Left)
    def _left(self, event: Levels.Left) -> None:
        event.stop()
        self.action_up()

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        if self.repo is not None and event.row < len(self.repo.revisions):
            words = revision_words(self.repo.revisions[event.row])
            parts = self._about(self.repo)
            self._caption(*parts, (f"  {words}" if words else "", Tone.CAUTION))

    def action_up(self) -> None:
        """Leave the search, the repository, the cache."""
        if self.query_one("#search").display:
            self._close_search()
            self._show()
        elif self.repo is not None and self.cache is not None:
            at = self.cache.repos.index(self.repo)
            self.repo = None
            self._show(at)
        else:
            self.dismiss(None)

    def action_move(self, how: str, by: int) -> None:
        """Move in the list while the search has the keys."""
        if how == "cursor":
            self.rows.action_cursor(by)

    # Searching

    def action_search(self) -> None:
        """List what has a text in its name."""
        field = self.query_one("#search", SearchLine)
        field.display = True
        field.focus()

    def _close_search(self) -> None:
        field = self.query_one("#search", SearchLine)
        with field.prevent(Input.Changed):
            field.value = ""
        field.display = False
        self.rows.focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.cache is None:
            return
        words = event.value.lower().split()
        names = (
            [f"{repo.name} {repo.kind}" for repo in self.cache.repos]
            if self.repo is None
            else [f"{each.commit} {' '.join(each.refs)}" for each in self.repo.revisions]
        )
        self.rows.show_rows(
            [at for at, name in enumerate(names) if all(word in name.lower() for word in words)]
        )

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.rows.focus()

    # Saying the same on the command line

    def action_copy(self) -> None:
        """Copy the command that says what looking at the row would show."""
        from shardscope.app.explorer.copying import copy, of_path

        row = self.rows.row
        if self.cache is None or row is None:
            return
        if self.repo is None:
            copy(
                self.app, of_path(self.cache.repos[row].path, hf_cache=True, name=self.cache.repos[row].name)
            )
        else:
            revision = self.repo.revisions[row]
            copy(self.app, of_path(revision.path, hf_cache=True, name=f"{self.repo.name}@{revision.commit}"))

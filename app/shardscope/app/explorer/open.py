"""The Open screen: where `shardscope` without a path starts, with what the current folder offers."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from shardscope.app.explorer.candidates import Candidate, candidates
from shardscope.app.explorer.hints import Hints
from shardscope.app.explorer.messages import Chosen
from shardscope.engine.model.text import display_name


class Open(Screen[None]):
    """Asks what to look at: a path, or one of the candidates of the current folder."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "tab",
            "app.focus_next",
            "Path or list",
            id="open.next",
            tooltip="Go between the path and the list",
        ),
        Binding(
            "shift+tab",
            "app.focus_previous",
            "Back",
            show=False,
            id="open.previous",
            tooltip="Go between both",
        ),
        Binding(
            "slash", "path", "Type a path", id="open.path", tooltip="Type the path of a file or a folder"
        ),
        Binding("j", "cursor('down')", "Down", show=False, id="open.down", tooltip="Next candidate"),
        Binding("k", "cursor('up')", "Up", show=False, id="open.up", tooltip="Previous candidate"),
        Binding("escape", "list", "Back to the list", show=False, id="open.list", tooltip="Leave the path"),
    ]

    class Offered(Message):
        """The current folder was glanced at."""

        def __init__(self, found: tuple[Candidate, ...]) -> None:
            super().__init__()
            self.found = found

    def __init__(self) -> None:
        super().__init__()
        self._found: tuple[Candidate, ...] = ()

    def compose(self) -> ComposeResult:
        """Draw the list under the path."""
        yield Static(Content.styled(" shardscope", "bold"), id="title")
        with Vertical(id="open"):
            yield Static("What do you want to look at? Nothing in it will be run.", id="question")
            yield Input(placeholder="path of a file or a folder", id="path")
            yield Static(Content.styled("In this folder", "$text-muted"), id="caption")
            yield OptionList(id="candidates", markup=False)
        yield Hints()

    def on_mount(self) -> None:
        """Glance at the current folder."""
        self.query_one(OptionList).focus()
        self.app.run_worker(
            lambda: self.post_message(self.Offered(candidates())),
            group="glance",
            description="glancing at the current folder",
            thread=True,
            exit_on_error=False,
        )

    @on(Offered)
    def _offer(self, event: Offered) -> None:
        self._found = event.found
        width = max(len(_name(each)) for each in self._found)
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(_line(each, min(width, 44))) for each in self._found])
        options.highlighted = 0

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        self.post_message(Chosen(self._found[event.option_index].path))

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.post_message(Chosen(event.value))

    def action_path(self) -> None:
        """Type a path."""
        self.query_one(Input).focus()

    def action_list(self) -> None:
        """Leave the path."""
        self.query_one(OptionList).focus()

    def action_cursor(self, way: str) -> None:
        """Move in the list."""
        options = self.query_one(OptionList)
        if way == "down":
            options.action_cursor_down()
        else:
            options.action_cursor_up()


def _name(candidate: Candidate) -> str:
    if candidate.path == ".":
        return "this folder"
    return display_name(candidate.path, 44) + ("/" if candidate.is_folder else "")


def _line(candidate: Candidate, width: int) -> Content:
    from shardscope.widgets.figures import plural, size

    if candidate.weights:
        files = plural(candidate.weights, "weight file")
        facts = f"{files if candidate.is_folder else 'weight file':>18}  {size(candidate.bytes):>10}"
    else:
        facts = f"{'no weight files':>18}"
    return Content.assemble(f"{_name(candidate):<{width}}", "  ", (facts, "$text-muted"))

"""The explorer as a Textual application: screens, keys that work everywhere, themes, and the last guard on what is drawn."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES
from textual.worker import Worker, WorkerState

from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.explore import Explore
from shardscope.app.explorer.messages import Chosen, Ended
from shardscope.app.explorer.target import Target
from shardscope.app.explorer.theme import choose_theme
from shardscope.app.explorer.working import Working
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.styles import SHEETS
from shardscope.styles.themes import DARK, LIGHT
from shardscope.widgets.safe import UnsafeFilter

if TYPE_CHECKING:
    from shardscope.widgets.paragraphs import Paragraphs

MUTED: Final = 0.62
"""How much of the foreground is in muted text: contrast 6 : 1 on our themes."""


def theme_names() -> tuple[str, ...]:
    """Return the names of the themes that there are, our own first."""
    return (DARK.name, LIGHT.name, *sorted(BUILTIN_THEMES))


class Explorer(App[ExitCode]):
    """`shardscope [PATH]`: looks at one checkpoint, or asks which."""

    TITLE = "shardscope"
    CSS_PATH: ClassVar = list(SHEETS)
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("colon", "command_palette", "Commands", id="app.palette", tooltip="Find and run any command"),
        Binding(
            "ctrl+p",
            "command_palette",
            "Commands",
            show=False,
            priority=True,
            id="app.palette_anywhere",
            tooltip="Find and run any command",
        ),
        Binding("question_mark,f1", "help", "Keys", id="app.help", tooltip="Show what every key does here"),
        Binding(
            "f2",
            "matrix",
            "Support matrix",
            show=False,
            id="app.matrix",
            tooltip="What this release does with each kind of checkpoint",
        ),
        Binding(
            "f3",
            "glossary",
            "Glossary",
            show=False,
            id="app.glossary",
            tooltip="Eight things that are all called sharding",
        ),
        Binding("q", "leave", "Quit", id="app.quit", tooltip="Leave; asks first while a conversion runs"),
        Binding(
            "ctrl+c",
            "interrupt",
            "Quit",
            show=False,
            priority=True,
            id="app.interrupt",
            tooltip="Leave at once; asks first while a conversion runs",
        ),
    ]

    def __init__(
        self,
        path: str | None,
        engine: Engine,
        *,
        limits: Limits | None = None,
        decode_limits: DecodeLimits | None = None,
        hf_cache: bool = False,
        theme: str | None = None,
    ) -> None:
        super().__init__()
        self.path = path
        self.engine = engine
        self.limits = limits or Limits()
        self.decode_limits = decode_limits or DecodeLimits()
        self.hf_cache = hf_cache
        for each in (DARK, LIGHT):
            self.register_theme(each)
        self.no_color = bool(os.environ.get("NO_COLOR"))  # an empty value asks for nothing (no-color.org)
        self.theme = choose_theme(theme, os.environ)
        self._unsafe_filter = UnsafeFilter()
        self._no_color = NoColor()
        self.broken = False
        """Whether an error of our own was shown."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what every finished line passes: no colour where none is wanted, and nothing unsafe in any case."""
        filters = [each for each in super().get_line_filters() if not isinstance(each, Monochrome | NoColor)]
        if self.no_color:
            filters.append(self._no_color)
        return [*filters, self._unsafe_filter]

    def get_css_variables(self) -> dict[str, str]:
        """Return the colours of the theme, the muted one as a plain colour.

        Textual writes it as `auto 60%`, which styles of text (unlike style sheets) draw in full white.
        """
        variables = super().get_css_variables()
        if variables["text-muted"].startswith("auto"):
            ground, ink = (Color.parse(variables[name]) for name in ("background", "foreground"))
            variables["text-muted"] = ground.blend(ink, MUTED).hex
        return variables

    def get_default_screen(self) -> Screen[None]:
        """Return the first screen: the checkpoint, or the question which."""
        if self.path is None:
            from shardscope.app.explorer.open import Open

            return Open()
        return self._explore(self.path)

    def _explore(self, path: str, *, nested: bool = False) -> Explore:
        return Explore(
            Target(path, self.limits, self.hf_cache, self.decode_limits), self.engine, nested=nested
        )

    @on(Chosen)
    def _chosen(self, event: Chosen) -> None:
        """Look at what was chosen; esc comes back to the question."""
        self.push_screen(self._explore(event.path, nested=True))

    # Leaving

    @property
    def exit_code(self) -> ExitCode:
        """What the process says when the person leaves now."""
        if self.broken:
            return ExitCode.INTERNAL
        return next((each.exit_code for each in self.screen_stack if isinstance(each, Explore)), ExitCode.OK)

    def action_leave(self) -> None:
        """Leave; workers that still run are told to stop."""
        if not self._asked(insist=False):
            self._leave(self.exit_code)

    async def action_quit(self) -> None:
        """Leave, by the key or the command that every Textual application has."""
        self.action_leave()

    def action_interrupt(self) -> None:
        """Leave as an interrupted command does."""
        if not self._asked(insist=True):
            self._leave(ExitCode.CANCELLED)

    def _asked(self, *, insist: bool) -> bool:
        """Tell whether a screen at work asks before it is left."""
        return any(
            each.ask_to_leave(insist=insist) for each in self.screen_stack if isinstance(each, Working)
        )

    @on(Ended)
    def _ended(self, event: Ended) -> None:
        """Leave, whatever is in front."""
        self._leave(ExitCode.CANCELLED, hung_up=event.hung_up)

    def _leave(self, code: ExitCode, *, hung_up: bool = False) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, Explore):
                screen.left = True
            elif isinstance(screen, Working):
                screen.leave(hung_up=hung_up)
        self.workers.cancel_all()
        self.exit(code, return_code=int(code))

    # Dialogs

    def action_help(self) -> None:
        """Show what every key does on this screen."""
        from shardscope.app.explorer.dialogs import Dialog, Help
        from shardscope.app.explorer.keys import key_rows

        if not isinstance(self.screen, Dialog):
            self.push_screen(Help(key_rows(self.screen)))

    def _read(self, title: str, page: "Callable[[], Paragraphs]") -> None:
        from shardscope.app.explorer.dialogs import Dialog
        from shardscope.app.explorer.reference import Reference

        if isinstance(self.screen, Reference):
            if self.screen.name_of_page == title:
                return
            self.pop_screen()
        if not isinstance(self.screen, Dialog):
            self.push_screen(Reference(title, page()))

    def action_matrix(self) -> None:
        """Show the support matrix, the row of the checkpoint in hand first."""
        from shardscope.engine import sources, support_matrix
        from shardscope.widgets.matrix_panel import MatrixPanel

        looking = [each.found for each in self.screen_stack if isinstance(each, Explore)]
        found = looking[-1] if looking else None
        name = None if found is None else found.descriptor.classification.format
        self._read("support matrix", lambda: MatrixPanel(support_matrix(), sources(), name))

    def action_glossary(self) -> None:
        """Show the glossary."""
        from shardscope.engine import glossary
        from shardscope.widgets.glossary_panel import GlossaryPanel

        self._read("glossary", lambda: GlossaryPanel(glossary()))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Return the commands of the palette: everything that a key does, and the choice of a theme."""
        from shardscope.app.explorer.keys import key_rows

        for row in key_rows(screen):
            if row.enabled and row.in_palette:
                yield SystemCommand(row.description, f"{row.tooltip} ({row.shown_keys})", row.run)
        yield SystemCommand("Theme", "Choose the colours of the explorer", self.action_change_theme)

    @on(Worker.StateChanged)
    async def _worker_failed(self, event: Worker.StateChanged) -> None:
        if event.state is not WorkerState.ERROR:
            return
        from shardscope.app.explorer.dialogs import OwnError
        from shardscope.engine.model.blocker import Finding, Param, blocker

        self.broken = True
        screen = self.screen
        params: dict[str, Param] = {
            "doing": event.worker.description,
            "kind": type(event.worker.error).__name__,
        }
        error = blocker(Finding("internal.error", params))
        for each in self.screen_stack:
            if isinstance(each, Working):
                each.broke(event.worker.group)
        if isinstance(screen, Explore):
            if event.worker.group == "examine":
                await screen.broke(error)
            elif event.worker.group == "decode":
                await screen.not_decoded(None)
        self.push_screen(OwnError(error))

"""The explorer as a Textual application: screens, keys that work everywhere, themes, and the last guard on what is drawn."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual._compositor import CompositorUpdate
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.messages import Chosen, Ended, SettingsChecked
from shardscope.app.explorer.target import Target
from shardscope.app.explorer.tty.frames import Frames
from shardscope.app.explorer.tty.theme import choose_theme
from shardscope.app.explorer.working import Working
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.styles import FIRST, read_later
from shardscope.styles.themes import THEMES
from shardscope.widgets.glyphs import ASCII, terminal_glyphs
from shardscope.widgets.safe import UnsafeFilter

if TYPE_CHECKING:
    from textual.command import Provider

    from shardscope.app.settings.nouns import SettingsRead
    from shardscope.widgets.blockers_panel import BlockersPanel

MUTED: Final = 0.62
"""How much of the foreground is in muted text: contrast 6 : 1 on our themes."""


def _palette() -> "type[Provider]":
    from shardscope.app.explorer.help.palette import Commands

    return Commands


class Explorer(App[ExitCode]):
    """`shardscope [PATH]`: looks at one checkpoint, or asks which."""

    TITLE = "shardscope"
    CSS_PATH: ClassVar = list(FIRST)
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar = {_palette}
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
        Binding(
            "f4",
            "codes",
            "Codes",
            show=False,
            id="app.codes",
            tooltip="What every blocker means, and what to do about it",
        ),
        Binding(
            "ctrl+l",
            "redraw",
            "Redraw",
            show=False,
            priority=True,
            id="app.redraw",
            tooltip="Draw the screen anew, when something else has written on it",
        ),
        Binding(
            "ctrl+z",
            "suspend_process",
            "Suspend",
            show=False,
            priority=True,
            id="app.suspend",
            tooltip="Back to the shell, all work halted; its command fg comes back here",
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
        settings: "SettingsRead | None" = None,
    ) -> None:
        """`settings` is what the file of the person says; options that were given stand in `theme` already."""
        super().__init__()
        self.settings = settings
        self.path = path
        self.engine = engine
        self.limits = limits or Limits()
        self.decode_limits = decode_limits or DecodeLimits()
        self.hf_cache = hf_cache
        for each in THEMES:
            self.register_theme(each)
        self.no_color = bool(os.environ.get("NO_COLOR"))  # an empty value asks for nothing (no-color.org)
        self.theme = choose_theme(theme, os.environ)
        self._unsafe_filter = UnsafeFilter()
        self._no_color = NoColor()
        self._frames = Frames()
        self._ascii = terminal_glyphs() is ASCII
        if settings is not None and settings.settings.keys:
            self.set_keymap(dict(settings.settings.keys))
        self.broken = False
        """Whether an error of our own was shown."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what every finished line passes: no colour where none is wanted, and nothing unsafe in any case."""
        filters = [each for each in super().get_line_filters() if not isinstance(each, Monochrome | NoColor)]
        if self.no_color:
            filters.append(self._no_color)
        filters.append(self._unsafe_filter)
        if self._ascii:
            from shardscope.widgets.plain import AsciiFilter

            filters.append(AsciiFilter())
        return filters

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Draw an update, told as what changed: Textual would write whole lines."""
        if isinstance(renderable, CompositorUpdate) and not self.is_headless:
            renderable = self._frames.reduced(renderable, self.size)
        super()._display(screen, renderable)

    def action_redraw(self) -> None:
        """Draw everything anew, whatever else has written to the terminal."""
        self._frames.forget()
        self.screen.refresh(layout=True)

    def action_suspend_process(self) -> None:
        """Go back to the shell, where one waits."""
        from shardscope.app.explorer.tty.halting import suspend

        suspend(self)

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
            from shardscope.app.explorer.open.screen import Open

            if self.hf_cache:
                self.call_after_refresh(self._default_cache)
            return Open(recent=self._recent_path)
        return self._explore(self.path)

    def _default_cache(self) -> None:
        from shardscope.app.explorer.open.cache import CacheBrowser
        from shardscope.engine.source.hub_cache import default_cache

        self.push_screen(CacheBrowser(default_cache(os.environ)))

    def _explore(self, path: str, *, nested: bool = False, hf_cache: bool = False) -> Explore:
        target = Target(path, self.limits, self.hf_cache or hf_cache, self.decode_limits)
        screen = Explore(target, self.engine, nested=nested)
        if self.settings is not None:
            screen.digest_mode = self.settings.settings.digest
            screen.memory = self.settings.settings.memory if "memory" in self.settings.lines else None
        if (kept := self._recent_path) is not None:
            from shardscope.app.settings.recent import remember

            self.run_worker(
                lambda: remember(kept, path), group="recent", description="remembering a path", thread=True
            )
        return screen

    @property
    def _recent_path(self) -> str | None:
        """Where paths that were looked at are kept; None unless the person asked for that."""
        if self.settings is None or not self.settings.settings.recent:
            return None
        from shardscope.app.settings.places import recent_path

        return recent_path(os.environ)

    @on(Chosen)
    def _chosen(self, event: Chosen) -> None:
        """Look at what was chosen; esc comes back to the question."""
        self.push_screen(self._explore(event.path, nested=True, hf_cache=event.hf_cache))

    def on_mount(self) -> None:
        """Do what the first frame need not wait for: rules of other screens, what is wrong with the settings."""
        self.call_after_refresh(read_later, self.stylesheet)
        self.app_resume_signal.subscribe(self, lambda _: self._frames.forget())
        if self.settings is not None and self.settings.exists:
            self.call_after_refresh(self._check_settings, self.settings)

    def _check_settings(self, read: "SettingsRead") -> None:
        def check() -> None:
            from shardscope.app.settings.checks import checked

            if found := checked(read):
                self.post_message(SettingsChecked(found))

        self.run_worker(
            check, group="settings", description="checking the settings", thread=True, exit_on_error=False
        )

    @on(SettingsChecked)
    def _settings_checked(self, event: SettingsChecked) -> None:
        from shardscope.engine.model.blocker import Severity

        if any(each.severity is Severity.ERROR for each in event.blockers):
            from shardscope.app.explorer.dialogs import SettingsNote

            self.push_screen(SettingsNote(event.blockers))
            return
        for each in event.blockers:
            self.notify(each.message, title="Settings", severity="warning", markup=False)

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
        """Show what every key does on this screen, and let the person search in everything there is to read."""
        from shardscope.app.explorer.dialogs import Dialog
        from shardscope.app.explorer.help.helping import Help
        from shardscope.app.explorer.help.keys import key_rows

        if not isinstance(self.screen, Dialog):
            self.push_screen(Help(key_rows(self.screen)))

    def action_read(self, kind: str, at: str = "") -> None:
        """Show something to read: `matrix`, `glossary`, `codes`, or `explain` with a code; `at` is where to begin."""
        from shardscope.app.explorer.dialogs import Dialog
        from shardscope.app.explorer.help.reading import page
        from shardscope.app.explorer.help.reference import Reference

        looking = [each.found for each in self.screen_stack if isinstance(each, Explore)]
        found = looking[-1] if looking else None
        name = None if found is None else found.descriptor.classification.format
        shown = page(kind, at, name)
        if isinstance(self.screen, Reference) and kind != "explain":
            if self.screen.name_of_page == shown.title:
                return
            self.pop_screen()
        if not isinstance(self.screen, Dialog):
            self.push_screen(
                Reference(shown.title, shown.make(), at if kind != "explain" else None, shown.command)
            )

    def on_blockers_panel_explanation_wanted(self, event: "BlockersPanel.ExplanationWanted") -> None:
        """Explain the code of a blocker."""
        self.action_read("explain", event.code)

    def action_matrix(self) -> None:
        """Show the support matrix, the row of the checkpoint in hand first."""
        self.action_read("matrix")

    def action_glossary(self) -> None:
        """Show the glossary."""
        self.action_read("glossary")

    def action_codes(self) -> None:
        """Show what every blocker means."""
        self.action_read("codes")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Return the commands of the palette: everything that a key does, and the choice of a theme."""
        from shardscope.app.explorer.help.palette import offered

        yield from (SystemCommand(*each) for each in offered(screen))
        yield SystemCommand("Theme", "Choose the colours of the explorer", self.action_change_theme)

    @on(Worker.StateChanged)
    async def _worker_failed(self, event: Worker.StateChanged) -> None:
        if event.state is not WorkerState.ERROR:
            return
        from shardscope.app.explorer.report.own_error import ReportedError
        from shardscope.engine.model.blocker import Finding, Param, blocker
        from shardscope.engine.report.mishaps import kind

        self.broken = True
        screen, caught = self.screen, event.worker.error
        assert caught is not None  # noqa: S101 - that is what this state says
        params: dict[str, Param] = {"doing": event.worker.description, "kind": kind(caught)}
        error = blocker(Finding("internal.error", params))
        for each in self.screen_stack:
            if isinstance(each, Working):
                each.broke(event.worker.group, error)
        if isinstance(screen, Explore):
            if event.worker.group == "examine":
                await screen.broke(error)
            elif event.worker.group == "decode":
                await screen.not_decoded(None)
        self.push_screen(ReportedError(error, caught, event.worker.description))

    def _handle_exception(self, error: Exception) -> None:
        """End on an error of our own outside of any worker: whoever runs the explorer says it, without a traceback.

        Textual would print one with the values of local variables, which can be anything of a checkpoint.
        """
        self._return_code = int(ExitCode.INTERNAL)
        if self._exception is None:  # tests raise it again
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    @property
    def failure(self) -> Exception | None:
        """The error of our own that ended it; None after a usual end."""
        return self._exception

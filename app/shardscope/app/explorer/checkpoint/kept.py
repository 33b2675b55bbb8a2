"""Screens about one checkpoint that stay as they were left, with their work, until the checkpoint is looked at anew."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from textual.app import App
from textual.screen import Screen

T = TypeVar("T")


class Kept:
    """The screens of one checkpoint, by name. Textual calls such screens installed: leaving one does not end it."""

    def __init__(self) -> None:
        self._screens: dict[str, Screen[Any]] = {}

    def show(
        self,
        app: App[Any],
        name: str,
        make: Callable[[], Screen[T]],
        ended: Callable[[T | None], Awaitable[None]],
    ) -> None:
        """Show a screen as it was left, or for the first time; `ended` hears what it is left with."""
        screen = self._screens.get(name)
        if screen is None:
            screen = self._screens[name] = make()
            app.install_screen(screen, f"{name}-{id(screen)}")
        if screen not in app.screen_stack:
            app.push_screen(screen, ended)

    async def forget(self, app: App[Any]) -> None:
        """End all of them that are not in front: what they were about is not in hand any more."""
        screens, self._screens = self._screens, {}
        for screen in screens.values():
            if screen not in app.screen_stack:
                app.uninstall_screen(screen)
                if screen.is_running:
                    await screen.remove()

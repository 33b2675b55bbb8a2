"""What reaches the terminal: a driver that keeps every byte that a real one would write."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot

from shardscope.engine.model.text import UNSAFE

OWN_SEQUENCES = re.compile(r"\x1b\[[0-9;]*[mH]|\x1b\[\?(?:2026|25)[hl]|\x1b\]22;[a-z-]+\x07")
"""What Textual itself writes while it draws: styles, cursor moves, synchronised output, cursor and pointer shape."""


class CapturingDriver(HeadlessDriver):
    """A driver that draws (unlike a headless one) into a list."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.written: list[str] = []

    @property
    def is_headless(self) -> bool:
        return False

    def write(self, data: str) -> None:
        self.written.append(data)

    @property
    def text(self) -> str:
        """Everything written so far, without the sequences of Textual itself."""
        return OWN_SEQUENCES.sub("", "".join(self.written))

    @property
    def unsafe(self) -> set[str]:
        """The unsafe characters that got through. Line breaks between rows are Textual's own."""
        return set(UNSAFE.findall(self.text)) - {"\n", "\r"}


@asynccontextmanager
async def captured(
    app: App[Any], size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[Any], CapturingDriver]]:
    """Run `app` with toasts and tooltips on a driver that keeps what it writes."""
    app.driver_class = CapturingDriver
    async with app.run_test(headless=False, size=size, tooltips=True, notifications=True) as pilot:
        driver = app._driver
        assert isinstance(driver, CapturingDriver)
        yield pilot, driver

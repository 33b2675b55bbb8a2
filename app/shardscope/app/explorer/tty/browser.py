"""The explorer behind `shardscope serve`: it speaks to the server over its standard streams, and ends with it."""

from contextlib import suppress
from typing import Any

from textual.drivers.web_driver import WebDriver

from shardscope.app.explorer.messages import Ended


class Browser(WebDriver):
    """The driver of textual-serve, with an end: a server that was killed leaves no explorer behind."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        write = self._write

        def written(data: bytes) -> int:
            with suppress(OSError):  # the server went away; that is heard where keys are read
                return write(data)
            return len(data)

        self._write = written  # type: ignore[assignment]  # a partial of `os.write`, there

    def run_input_thread(self) -> None:
        """Read what the server sends until it sends no more."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(Ended())

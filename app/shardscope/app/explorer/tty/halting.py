"""ctrl+z: back to the shell, and here again with `fg`."""

import os
import signal
from typing import Any

from textual.app import App


def suspend(app: App[Any]) -> None:
    """Halt with everything that the shell started together with this, a pipe or a make; the driver gives the terminal back.

    What leads its session (a command of ssh, a window of tmux) has no shell that would wake it, and goes on.
    """
    if app.is_web or app.is_headless or os.getpgrp() == os.getsid(0):
        app.notify("No shell waits below to go back to.", markup=False)
        return
    app.app_suspend_signal.publish(app)
    os.killpg(0, signal.SIGTSTP)

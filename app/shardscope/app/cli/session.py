"""What one run of the command line carries from its first option to its last line."""

from typing import TYPE_CHECKING

from shardscope.app.cli.interrupt import Interrupt
from shardscope.app.cli.output import Output

if TYPE_CHECKING:
    from shardscope.engine.model.course import Course


class Session:
    """The habits that hold for every command, the way out and the way to stop."""

    # Written by hand: a dataclass would import `inspect`, a third of the time that `--version` takes.
    def __init__(self) -> None:
        self.out = Output()
        self.interrupt = Interrupt()
        self.color = "auto"
        """`auto`, `always` or `never`."""
        self.quiet = False
        """Say nothing on standard error but errors."""
        self.verbose = 0
        """How often `-v` was given."""
        self.arguments: list[str] = []
        """Of the command line, as they were given."""
        self.course: Course | None = None
        """Of the conversion that runs: where it is, and what became of its staging folder."""

    def narrate(self, text: str) -> None:
        """Say something beside the data, unless `--quiet` was given."""
        if not self.quiet:
            self.out.narrate(text)

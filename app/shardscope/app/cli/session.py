"""What one run of the command line carries from its first option to its last line."""

from dataclasses import dataclass, field

from shardscope.app.cli.interrupt import Interrupt
from shardscope.app.cli.output import Output


@dataclass(slots=True)
class Session:
    """The habits that hold for every command, the way out and the way to stop."""

    out: Output = field(default_factory=Output)
    interrupt: Interrupt = field(default_factory=Interrupt)
    color: str = "auto"
    """`auto`, `always` or `never`."""
    quiet: bool = False
    """Say nothing on standard error but errors."""
    verbose: int = 0
    """How often `-v` was given."""

    def narrate(self, text: str) -> None:
        """Say something beside the data, unless `--quiet` was given."""
        if not self.quiet:
            self.out.narrate(text)

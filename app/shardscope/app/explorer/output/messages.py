"""What the workers of a screen that makes an output tell it. Each message is a thing that has happened."""

from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.output.destination import Destination
from shardscope.engine.model.progress import Progress

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.converting.materializing import Converted
    from shardscope.engine.model.blocker import Blocker


class Advanced(Message):
    """Work went on. A newer report of the same stage replaces an older one that nobody has read."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress

    def can_replace(self, message: Message) -> bool:
        """Tell whether this report makes `message` needless."""
        return isinstance(message, Advanced) and message.progress.stage == self.progress.stage


class TargetSeen(Message):
    """The target of a draft was looked at."""

    def __init__(self, draft: Destination, look: "TargetLook") -> None:
        super().__init__()
        self.draft = draft
        self.look = look


class Appeared(Message):
    """The output stands at its target, verified."""

    def __init__(self, done: "Converted") -> None:
        super().__init__()
        self.done = done


class EndedEarly(Message):
    """The run ended without an output: by the person, or by a fault."""

    def __init__(self, blocker: "Blocker", *, stopped: bool) -> None:
        super().__init__()
        self.blocker = blocker
        self.stopped = stopped

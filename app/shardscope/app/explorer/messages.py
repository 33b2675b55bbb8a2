"""What the workers of the explorer tell its screens. Each message is a thing that has happened."""

from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.engine.model.progress import Progress

if TYPE_CHECKING:
    from shardscope.app.explorer.offer import Offer
    from shardscope.engine.host import Host
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.escalation import IsolationProfile
    from shardscope.engine.model.file_layout import FileLayout
    from shardscope.engine.previewing import Preview
    from shardscope.widgets.file_tree import InventoryTree, Marks
    from shardscope.widgets.preview_panel import Blocks


class Ended(Message):
    """The terminal went away, or a signal asked the process to end."""

    def __init__(self, *, hung_up: bool = False) -> None:
        super().__init__()
        self.hung_up = hung_up
        """The terminal went away: what a conversion has finished is kept then."""


class Chosen(Message):
    """The person chose what to look at."""

    def __init__(self, path: str, *, hf_cache: bool = False) -> None:
        super().__init__()
        self.path = path
        self.hf_cache = hf_cache
        """Whether it was picked from a Hugging Face cache, whose links are admitted."""


class SettingsChecked(Message):
    """Something is wrong with the settings."""

    def __init__(self, blockers: "tuple[Blocker, ...]") -> None:
        super().__init__()
        self.blockers = blockers


class FileChosen(Message):
    """The person wants to see what a file says."""

    def __init__(self, path: bytes) -> None:
        super().__init__()
        self.path = path


class LayoutWanted(Message):
    """The person wants to see what stands where in a file."""

    def __init__(self, path: bytes) -> None:
        super().__init__()
        self.path = path


class PartChosen(Message):
    """The person wants to look at one save or one part alone."""

    def __init__(self, path: bytes) -> None:
        super().__init__()
        self.path = path
        """Relative to the root."""


class Progressed(Message):
    """Work went on. A newer report of the same stage replaces an older one that nobody has read."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress

    def can_replace(self, message: Message) -> bool:
        """Tell whether this report makes `message` needless."""
        return isinstance(message, Progressed) and message.progress.stage == self.progress.stage


class Examined(Message):
    """The checkpoint was inspected: everything but its digests is known."""

    def __init__(
        self, found: "Inspection", host: "Host", files: "InventoryTree", offer: "Offer | None"
    ) -> None:
        super().__init__()
        self.found = found
        self.host = host
        self.offer = offer
        """What decoding could read."""
        self.files = files


class Faulted(Message):
    """The source cannot be examined at all."""

    def __init__(self, blocker: "Blocker") -> None:
        super().__init__()
        self.blocker = blocker


class Stopped(Message):
    """The person stopped the inspection."""


class Preflighted(Message):
    """It is known which containment this machine gives, or why none."""

    def __init__(self, containment: "IsolationProfile | Blocker") -> None:
        super().__init__()
        self.containment = containment


class Decoded(Message):
    """The checkpoint was inspected once more, with its pickles decoded."""

    def __init__(
        self, before: "Inspection", found: "Inspection", files: "InventoryTree", *, digested: bool
    ) -> None:
        super().__init__()
        self.before = before
        """What was known: another one may be shown by now."""
        self.found = found
        self.files = files
        self.digested = digested
        """Whether `found` has the digests of `before`."""


class DecodingStopped(Message):
    """Decoding ended without a result: by the person, or by a fault of the source."""

    def __init__(self, before: "Inspection", blocker: "Blocker | None" = None) -> None:
        super().__init__()
        self.before = before
        self.blocker = blocker


class Digested(Message):
    """The digest pass ended; `found` has every digest that was asked for."""

    def __init__(self, before: "Inspection", found: "Inspection", marks: "Marks | None") -> None:
        super().__init__()
        self.before = before
        """What was hashed: another one may be shown by now."""
        self.found = found
        self.marks = marks
        """The letters of the files, where hashing found something out about them."""


class DigestsStopped(Message):
    """The digest pass ended early; `reason` follows the word `digests`."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Previewed(Message):
    """The preview of one file is ready."""

    def __init__(self, preview: "Preview", blocks: "Blocks | None") -> None:
        super().__init__()
        self.preview = preview
        self.blocks = blocks
        """Where its JSON folds."""


class LaidOut(Message):
    """It is known what stands where in one file."""

    def __init__(self, layout: "FileLayout") -> None:
        super().__init__()
        self.file_layout = layout

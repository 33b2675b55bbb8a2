"""What the workers of the Report screen tell it."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from shardscope.app.explorer.report.calls import Made
    from shardscope.engine.model.blocker import Blocker


class ReportMade(Message):
    """A report was made, searched and laid out."""

    def __init__(self, made: "Made") -> None:
        super().__init__()
        self.made = made


class NotMade(Message):
    """No report can be made, or what was made must not be written."""

    def __init__(self, blocker: "Blocker") -> None:
        super().__init__()
        self.blocker = blocker


class PageMade(Message):
    """The page about an error of ours was made and searched."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page


class Written(Message):
    """What was shown was written."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class NotWritten(Message):
    """Nothing was written."""

    def __init__(self, blocker: "Blocker") -> None:
        super().__init__()
        self.blocker = blocker

"""What the worker of the Model screen tells it."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.modelling import Studied


class ModelStudied(Message):
    """It is known what the model is made of."""

    def __init__(self, studied: "Studied", base: str | None) -> None:
        super().__init__()
        self.studied = studied
        self.base = base
        """What an adapter was held against."""


class NotStudied(Message):
    """The model, or the base of an adapter, could not be looked at."""

    def __init__(self, blocker: "Blocker") -> None:
        super().__init__()
        self.blocker = blocker

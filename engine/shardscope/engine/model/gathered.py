"""What the numbers of a selection come to, as far as they have been read."""

from msgspec import Struct

from shardscope.engine.model.peek import Heat, Landmarks, Profile, Statistics


class Gathered(Struct, frozen=True):
    """Figures over the first `done` elements of a selection."""

    done: int
    elements: int
    """Of the whole selection."""
    statistics: Statistics | None = None
    landmarks: Landmarks | None = None
    heat: Heat | None = None
    profiles: tuple[Profile, ...] | None = None

    @property
    def complete(self) -> bool:
        """Whether each number was read."""
        return self.done == self.elements

"""Some numbers of a tensor, as a screen shows them."""

from msgspec import Struct


class Window(Struct, frozen=True):
    """A box of elements in rows and columns."""

    words: tuple[tuple[str, ...], ...]
    """In decimal, with the digits that tell each from its neighbours; `nan`, `inf`, `-inf`."""
    codes: tuple[tuple[str, ...], ...]
    """The bits of each in hexadecimal, the highest first; of a complex one those of both parts."""

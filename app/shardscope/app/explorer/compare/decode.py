"""The dialog that asks whether to decode what is opaque of the two sides: one answer, one wish for each of them."""

from typing import TYPE_CHECKING

from shardscope.app.explorer.decode import Decode
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.target import Target

if TYPE_CHECKING:
    from shardscope.engine.inspecting.decoding import Decoding


class DecodeSides(Decode):
    """Asks about the opaque files of one side or both. Once confirmed, `wishes` has one for each side that has any."""

    def __init__(
        self, target: Target, offers: tuple[Offer | None, Offer | None], engine: Engine, command: str
    ) -> None:
        """`command` is what decodes both without a screen."""
        self._same = command
        self._sides = tuple(offer is not None for offer in offers)
        self.wishes: tuple[Decoding | None, ...] = (None, None)
        files = tuple(
            (f"{letter}: {name}", size)
            for letter, offer in zip("AB", offers, strict=True)
            if offer is not None
            for name, size in offer.files
        )
        titles = dict.fromkeys(offer.title for offer in offers if offer is not None)
        super().__init__(target, Offer(", ".join(titles), files), engine, "verify")

    def _command(self) -> str:
        return self._same

    @property
    def heading(self) -> str:
        """What is asked."""
        return "Decode pickles as data, for this comparison"

    def action_confirm(self) -> None:
        """End with a wish for each side that has opaque files."""
        self.wishes = tuple(self._wish() if asked else None for asked in self._sides)
        self.dismiss(next(wish for wish in self.wishes if wish is not None))

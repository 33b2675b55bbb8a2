"""What the command palette offers: what the keys of the screen do, what is asked for most first, and an explanation of every code."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits
from textual.content import Content
from textual.screen import Screen
from textual.system_commands import SystemCommandsProvider

from shardscope.app.explorer.help.hints import ORDER
from shardscope.app.explorer.help.keys import KeyRow, key_rows

FIRST: Final = (
    "explore.part",
    "explore.decode",
    "explore.model",
    "explore.scan",
    "explore.compare",
    "explore.convert",
    "explore.fix",
    "explore.report",
    "explore.peek",
    "explore.shard_map",
)
"""What a person who opens the palette of a checkpoint without knowing its name most likely wants."""


def offered(screen: Screen[Any]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield titles, words and what they do, of all that keys do now.

    The ways on come first, then what the foot of the screen has, then the rest by the alphabet.
    """

    def place(row: KeyRow) -> tuple[int, int, str]:
        if row.id in FIRST:
            return 0, FIRST.index(row.id), ""
        if row.show and row.keys != ("esc",) and not isinstance(row.node, App):
            return 1, ORDER.index(row.id) if row.id in ORDER else len(ORDER), row.description
        return 2, 0, row.description

    for row in sorted((row for row in key_rows(screen) if row.enabled and row.in_palette), key=place):
        yield row.description, f"{row.tooltip} ({row.shown_keys})", row.run


class Commands(SystemCommandsProvider):
    """What the keys do, in the order in which it is offered (Textual would list it by the alphabet), and codes to explain."""

    async def discover(self) -> Hits:
        """Yield everything that keys do, and the codes of the checkpoint in hand."""
        for name, says, run, listed in self.app.get_system_commands(self.screen):
            if listed:
                yield DiscoveryHit(name, run, help=says)
        for code in self._in_hand():
            title = f"Explain {code}"
            yield DiscoveryHit(Content(title), partial(self._explain, code), text=title, help=_HELP)

    async def search(self, query: str) -> Hits:
        """Yield what matches, of all codes that there are."""
        from shardscope.engine.model.codes import CODES

        async for hit in super().search(query):
            yield hit
        matcher = self.matcher(query)
        for code in CODES:
            title = f"Explain {code}"
            if (score := matcher.match(title)) > 0:
                yield Hit(
                    score, matcher.highlight(title), partial(self._explain, code), text=title, help=_HELP
                )

    def _in_hand(self) -> list[str]:
        from shardscope.app.explorer.checkpoint.explore import Explore

        if not isinstance(self.screen, Explore) or self.screen.found is None:
            return []
        return list(dict.fromkeys(each.code for each in self.screen.found.descriptor.blockers))

    async def _explain(self, code: str) -> None:
        await self.app.run_action(f"read('explain', {code!r})")


_HELP = "What it means, and what to do about it"

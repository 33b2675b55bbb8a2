"""What the command palette offers beside the keys of the screen: an explanation of every code."""

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content


class Codes(Provider):
    """Explains a code: those of the checkpoint in hand without asking, any other as soon as it is typed."""

    async def discover(self) -> Hits:
        """Yield the codes of the checkpoint in hand."""
        for code in self._in_hand():
            title = f"Explain {code}"
            yield DiscoveryHit(Content(title), lambda code=code: self._explain(code), text=title, help=_HELP)

    async def search(self, query: str) -> Hits:
        """Yield the codes that match."""
        from shardscope.engine.model.codes import CODES

        matcher = self.matcher(query)
        for code in CODES:
            title = f"Explain {code}"
            if (score := matcher.match(title)) > 0:
                yield Hit(
                    score,
                    matcher.highlight(title),
                    lambda code=code: self._explain(code),
                    text=title,
                    help=_HELP,
                )

    def _in_hand(self) -> list[str]:
        from shardscope.app.explorer.checkpoint.explore import Explore

        if not isinstance(self.screen, Explore) or self.screen.found is None:
            return []
        return list(dict.fromkeys(each.code for each in self.screen.found.descriptor.blockers))

    async def _explain(self, code: str) -> None:
        await self.app.run_action(f"read('explain', {code!r})")


_HELP = "What it means, and what to do about it"

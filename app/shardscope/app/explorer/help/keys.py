"""The keys that work right now, as the help, the hints and the palette show them: read from the bindings, kept nowhere else."""

from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.binding import ActiveBinding
from textual.dom import DOMNode
from textual.screen import Screen


@dataclass(frozen=True)
class KeyRow:
    """One thing that keys do on the current screen."""

    group: str
    """Where the keys work: the panel's title, `This screen` or `Everywhere`."""
    id: str | None
    action: str
    node: DOMNode
    """Whose action it is."""
    keys: tuple[str, ...]
    """As printed on a keyboard."""
    description: str
    tooltip: str
    show: bool
    enabled: bool

    @property
    def shown_keys(self) -> str:
        """All keys, with a space between."""
        return " ".join(self.keys)

    @property
    def in_palette(self) -> bool:
        """Whether it is worth a line in the palette: not the moves of a cursor, which live in the fingers."""
        moves = self.id is None or self.id.startswith("rows.")
        return bool(self.tooltip) and not moves and not self.action.startswith("command_palette")

    async def run(self) -> None:
        """Do what the keys do."""
        await self.node.app.run_action(self.action, self.node)

    def matches(self, query: str) -> bool:
        """Tell whether every word of `query` occurs in the row."""
        text = f"{self.group} {self.shown_keys} {self.description} {self.tooltip}".lower()
        return all(word in text for word in query.lower().split())


def _group(node: DOMNode) -> str:
    if isinstance(node, App):
        return "Everywhere"
    if isinstance(node, Screen):
        return "This screen"
    return node.BINDING_GROUP_TITLE or type(node).__name__


def key_rows(screen: Screen[Any]) -> list[KeyRow]:
    """Return what every key does on `screen` with its present focus, nearest widget first.

    Keys of one action make one row. Bindings without an id are Textual's own plumbing and left out.
    """
    grouped: dict[tuple[int, str], list[ActiveBinding]] = {}
    for active in screen.active_bindings.values():
        if active.binding.id is not None and active.binding.description:
            grouped.setdefault((id(active.node), active.binding.action), []).append(active)
    rows = []
    for bindings in grouped.values():
        first = bindings[0]
        rows.append(
            KeyRow(
                group=_group(first.node),
                id=first.binding.id,
                action=first.binding.action,
                node=first.node,
                keys=tuple(dict.fromkeys(screen.app.get_key_display(each.binding) for each in bindings)),
                description=first.binding.description,
                tooltip=first.tooltip,
                show=any(each.binding.show for each in bindings),
                enabled=first.enabled,
            )
        )
    # Nearest first: a priority key of the app stands where the widget's own would have been.
    return sorted(rows, key=lambda row: isinstance(row.node, App) * 2 + isinstance(row.node, Screen))

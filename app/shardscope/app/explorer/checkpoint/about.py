"""Screens of their own about the checkpoint in hand: what its model is made of, what stands out in its values."""

from typing import TYPE_CHECKING

from shardscope.app.explorer.checkpoint.tensors_at import Place, go_to_tensors

if TYPE_CHECKING:
    from textual.screen import Screen

    from shardscope.app.explorer.checkpoint.explore import Explore
    from shardscope.app.explorer.checkpoint.kept import Kept
    from shardscope.app.explorer.checkpoint.panels import Found


def show_about(explore: "Explore", kept: "Kept", name: str, crumbs: tuple[str, ...]) -> None:
    """Show `model` or `scan` as it was left, or for the first time; then do what it is left with."""
    found = explore.found
    if found is None:
        return

    async def ended(wish: Place | str | None) -> None:
        if isinstance(wish, Place) and explore.workspace is not None:
            await go_to_tensors(explore.workspace, wish)
        elif wish is not None:
            explore.action_decode()

    kept.show(explore.app, name, lambda: _made(name, explore, found, crumbs), ended)


def _made(
    name: str, explore: "Explore", found: "Found", crumbs: tuple[str, ...]
) -> "Screen[Place | str | None]":
    if name == "model":
        from shardscope.app.explorer.model.screen import Model

        return Model(explore.target, found, crumbs=crumbs)
    from shardscope.app.explorer.scan.screen import Scan

    return Scan(explore.target, found, crumbs=crumbs)

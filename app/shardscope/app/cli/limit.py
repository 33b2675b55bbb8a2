"""`--limit NAME=VALUE`: one bound on reading set by hand."""

# ruff: noqa: ARG002 - click calls these methods with all of their arguments

import re
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

UNITS: Final = {"": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


class Limit(click.ParamType[tuple[str, int]]):
    """A pair of a field of `Limits` and a number of at least 1, which may carry a binary unit.

    With `decoding`, fields of `DecodeLimits` are taken as well.
    """

    name = "limit"

    def __init__(self, *, decoding: bool = False) -> None:
        self._decoding = decoding

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what help shows in place of the value."""
        return "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return the pair; fails with the nearest name, or with what a value looks like."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        known = tuple(self._defaults())
        if name not in known:
            self.fail(f"there is no limit {name!r}.{nearest(name, known)}", param, ctx)
        number = re.fullmatch(r"([0-9][0-9_]*)\s*([KMGT]iB)?", text.strip(), re.IGNORECASE)
        count = 0 if number is None else int(number[1]) * UNITS[(number[2] or "").upper()]
        if not equals or not 1 <= count < 1 << 63:
            self.fail(
                f"{name} takes a number of 1 or more, and below 2^63, such as {name}=4096 or {name}=64MiB.",
                param,
                ctx,
            )
        return name, count

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """Offer the names of the limits, each with the value it has by itself."""
        known = self._defaults().items()
        return [CompletionItem(f"{name}={value}") for name, value in known if name.startswith(incomplete)]

    def _defaults(self) -> dict[str, int]:
        """Return the limits that there are, with the values that they have by themselves."""
        from msgspec.structs import asdict

        from shardscope.engine.model.limits import DecodeLimits, Limits

        return {**asdict(Limits()), **(asdict(DecodeLimits()) if self._decoding else {})}


def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return ` Did you mean ...?` for a word that is close to a known one, otherwise nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""

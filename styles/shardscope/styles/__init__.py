"""How the explorer looks: the style sheets, one a kind of screen. Colours come from themes alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from textual.css.stylesheet import Stylesheet

_HERE: Final = Path(__file__).parent
FIRST: Final = tuple(_HERE / name for name in ("widgets.tcss", "app.tcss", "explore.tcss", "dialogs.tcss"))
"""What the first frame needs."""
LATER: Final = tuple(
    _HERE / name
    for name in (
        "convert.tcss",
        "report.tcss",
        "shardmap.tcss",
        "compare.tcss",
        "peek.tcss",
        "model.tcss",
        "scan.tcss",
    )
)
"""What screens need that a key opens: two thirds of all rules, 25 ms."""
SHEETS: Final = (*FIRST, *LATER)
"""The style sheets of the explorer, in the order in which they apply."""


def read_later(rules: "Stylesheet") -> None:
    """Read what the first frame did not wait for."""
    rules.read_all(LATER)
    rules.parse()

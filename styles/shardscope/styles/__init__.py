"""How the explorer looks: the style sheets, one a kind of screen. Colours come from themes alone."""

from pathlib import Path
from typing import Final

SHEETS: Final = tuple(
    Path(__file__).parent / name
    for name in (
        "widgets.tcss",
        "app.tcss",
        "explore.tcss",
        "dialogs.tcss",
        "convert.tcss",
        "report.tcss",
        "shardmap.tcss",
        "compare.tcss",
        "peek.tcss",
        "model.tcss",
        "scan.tcss",
    )
)
"""The style sheets of the explorer, in the order in which they apply."""

"""The numbered steps of staging and promotion, so that a test can stop between any two of them."""

from collections.abc import Callable

At = Callable[[str], None]
"""Called with the name of a step right before it is taken."""


def nowhere(_step: str) -> None:
    """Do nothing: what every run but a test has."""

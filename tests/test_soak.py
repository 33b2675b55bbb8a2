"""The same work many times in one process keeps nothing: a short part of what `python -m tests.campaigns soak-...` does at length."""

from pathlib import Path

import pytest

from tests.campaigns.soak import soaked

FIXTURES = Path(__file__).resolve().parent / "fixtures"


@pytest.mark.parametrize(
    ("what", "rounds", "source"),
    [
        ("inspections", 44, FIXTURES / "hf"),
        ("conversions", 10, FIXTURES / "hf" / "llama_sharded" / "checkpoint"),
        ("explorer", 2, FIXTURES / "hf" / "llama_single_bf16" / "checkpoint"),
    ],
)
def test_nothing_is_kept(what: str, rounds: int, source: Path, tmp_path: Path) -> None:
    soaked(what, rounds, source, tmp_path)

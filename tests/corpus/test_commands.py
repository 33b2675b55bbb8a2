"""The corpus through what else is pointed at a checkpoint: decoding, plans and the explorer. All of it in the campaign, a sample here.

`python -m tests.campaigns malformed` runs every case through every command of `COMMANDS`.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.checkpoint.tabs import Panels
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.messages import Chosen
from tests.capture import captured
from tests.corpus.conftest import ask, needs_another_user
from tests.corpus.expectations import Case
from tests.corpus.held import COMMANDS, complaint

PANELS = ("evidence", "blockers", "tensors")
"""Beside the summary: those with the most text of a checkpoint."""
EACH = 6
"""Cases of each group that are tried here."""


def sample(cases: dict[str, list[Case]], each: int) -> Iterator[Case]:
    """Yield some cases of every group, always the same ones."""
    for group in cases.values():
        usual = [case for case in group if not needs_another_user(case)]
        yield from sorted(usual, key=lambda case: hashlib.sha256(case["id"].encode()).digest())[:each]


# R045
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_ends_in_a_document_or_a_sentence(
    cases: dict[str, list[Case]], corpus: Path, words: tuple[str, ...]
) -> None:
    tried = list(sample(cases, EACH))
    answers = ask(corpus, [[words[0], case["path"], *words[1:]] for case in tried])

    assert len(tried) == EACH * len(cases)
    wrong = [complaint(case, answer) for case, answer in zip(tried, answers, strict=True)]
    assert [each for each in wrong if each] == []


async def test_the_explorer_shows_every_kind_of_case(cases: dict[str, list[Case]], corpus: Path) -> None:
    """One explorer, one checkpoint after the other, the panels with the most text of each, with what reaches the terminal kept."""
    states = set()
    app = Explorer(str(corpus / "nothing-of-this-name"), ENGINE)
    async with captured(app, size=(80, 24)) as (pilot, driver):
        for case in sample(cases, 2):
            path = str(corpus / case["path"])
            app.post_message(Chosen(path))
            while not isinstance(app.screen, Explore) or app.screen.target.path != path:
                await pilot.pause()
            screen = app.screen
            while screen.state is State.LOADING and not app.broken:
                await pilot.pause()
            states.add(screen.state)
            for panels in screen.query(Panels):
                for name in PANELS:
                    await panels.switch(name)
                    await pilot._wait_for_screen()
            assert not app.broken, case["id"]
            assert app.screen is screen, case["id"]
            await app.pop_screen()
        assert not driver.unsafe
    assert states == {State.READY, State.FAILED}


def test_the_commands_are_those_of_the_campaign(cases: dict[str, list[Case]]) -> None:
    assert {words[0] for words in COMMANDS} == {"inspect", "plan"}
    assert sum(map(len, cases.values())) > 1_000


def test_a_plan_says_what_is_wrong_with_a_type_without_its_secret(
    cases: dict[str, list[Case]], corpus: Path
) -> None:
    (case,) = (case for case in cases["F"] if case["id"] == "F.meta-dtype-error")
    (answer,) = ask(corpus, [["plan", case["path"], "--json"]])

    assert complaint(case, answer) is None
    assert "does not exist in safetensors" in answer.text

"""A small part of the campaign of `make campaign`: each scenario that takes no longer than a second or two."""

from collections.abc import Iterator

import pytest

from tests.campaigns.bench import Bench, bench
from tests.campaigns.scenarios import CAMPAIGN, Scenario, Skipped

QUICK = [scenario for scenario in CAMPAIGN if scenario.few]


@pytest.fixture(scope="module")
def work() -> Iterator[Bench]:
    with bench() as made:
        yield made


# R088 R112 R113
@pytest.mark.parametrize("scenario", QUICK, ids=lambda each: each.name)
def test_nothing_is_lost(work: Bench, scenario: Scenario) -> None:
    try:
        tried = scenario.work(work, scenario.few)
    except Skipped as why:
        pytest.skip(str(why))
    assert tried.tried >= 1

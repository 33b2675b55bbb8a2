"""Every malformed safetensors file and index of the corpus through `shardscope fix`: a plan, or a code with what to do."""

import json
from pathlib import Path

from tests.corpus.conftest import ask, needs_another_user
from tests.corpus.expectations import Case
from tests.corpus.held import complaint

WORDS = ("--plan-only", "--json", "--what", "salvage", "--what", "index", "--what", "header")


# R045
def test_what_can_be_saved_is_planned_and_what_cannot_has_a_code(
    cases: dict[str, list[Case]], corpus: Path
) -> None:
    tried = [case for group in "AB" for case in cases[group] if not needs_another_user(case)]
    answers = ask(corpus, [["fix", case["path"], *WORDS] for case in tried])
    wrong = [complaint(case, answer) for case, answer in zip(tried, answers, strict=True)]
    found = [json.loads(answer.text) for answer in answers]
    plans = [document["plan"] for document in found if document["schema"] == "shardscope.fix/1"]

    assert [each for each in wrong if each] == []
    assert len(tried) > 380
    assert sum(bool(plan["files"]) and not plan["blockers"] for plan in plans) > 180

"""What is held of every command that is pointed at a case of the corpus."""

import json

from shardscope.engine.model.text import UNSAFE
from tests.corpus.conftest import Answer
from tests.corpus.expectations import Case

COMMANDS = (
    ("inspect", "--decode", "--json"),
    ("plan", "--json"),
    ("plan", "--decode", "--json"),
)
SECONDS = 4.0
"""Of processor time; a worker for pickles has its own."""
BYTES = 400 << 20
"""A pickle of a million items, the most that there is here, takes 335 MiB: its facts are checked again where they come from the worker."""


def complaint(case: Case, answer: Answer) -> str | None:
    """Return what is wrong with an answer: no document, an error of ours, an unsafe character, a secret, time or memory."""
    if answer.exit == 70:
        return f"{case['id']}: an error of ours: {answer.text[-800:]}"
    try:
        found = json.loads(answer.text)
    except ValueError:
        return f"{case['id']}: exit {answer.exit} without a document: {answer.complaint[-300:]}"
    if "error" in found and found["exit"] != answer.exit:
        return f"{case['id']}: exit {answer.exit} and {found}"
    if unsafe := UNSAFE.search((answer.text + answer.complaint).replace("\n", "")):
        return f"{case['id']}: {unsafe[0]!r} reached the terminal"
    told = json.dumps(found.get("error", found.get("blockers", [])), ensure_ascii=False) + answer.complaint
    secrets = case.get("facts", {}).get("must_not_appear", ())
    if repeated := [secret for secret in secrets if secret in told]:
        return f"{case['id']}: repeats {repeated}"
    if answer.seconds > SECONDS or answer.peak > BYTES:
        return f"{case['id']}: {answer.seconds:.1f} s, {answer.peak >> 20} MiB"
    return None

"""Every case of the corpus of malformed inputs through every command that is pointed at a checkpoint and looks deeper than `inspect`."""

import json
import shutil
import subprocess
import sys

from tests.campaigns.bench import Bench, expect
from tests.campaigns.common import Tried
from tests.corpus.conftest import GENERATOR, ask, needs_another_user
from tests.corpus.held import COMMANDS, complaint

BATCH = 200
"""Cases that one process is given."""


def malformed_inputs(bench: Bench, times: int) -> Tried:
    """Run at most so many of the cases through each command, and hold each answer against what is promised."""
    corpus = bench.folder / "corpus"
    subprocess.run([sys.executable, GENERATOR, corpus], check=True, capture_output=True)
    manifest = json.loads((corpus / "MANIFEST.json").read_bytes())
    cases = [case for case in manifest["cases"] if "skipped" not in case and not needs_another_user(case)]
    tried = 0
    for words in COMMANDS:
        for begin in range(0, min(times, len(cases)), BATCH):
            some = cases[begin : min(times, begin + BATCH)]
            answers = ask(corpus, [[words[0], case["path"], *words[1:]] for case in some])
            wrong = [complaint(case, answer) for case, answer in zip(some, answers, strict=True)]
            found = [each for each in wrong if each]
            expect(not found, f"{' '.join(words)}: {len(found)} answers, first {found[:3]}")
            tried += len(some)
    subprocess.run([sys.executable, GENERATOR, "--clean", corpus], check=False, capture_output=True)
    shutil.rmtree(corpus, ignore_errors=True)
    return Tried(tried, 0)

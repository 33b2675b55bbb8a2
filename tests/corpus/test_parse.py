"""Every case of groups A and C, and the JSON files of B and F, through the parsers: class, code, time and memory."""

import time
import tracemalloc
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Blocker, Blocks, Fault, Finding, Severity, blocker
from shardscope.engine.model.codes import CODES as TABLE
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.json import read_json, require_object
from shardscope.engine.parse.safetensors import read_header
from shardscope.engine.parse.sniff import HEAD, check_expected, sniff
from shardscope.engine.parse.torch_archive import describe
from shardscope.engine.parse.zip import read_directory
from tests.corpus.expectations import CODES, EXCEPTIONS, NEEDS_DECODING, Case, expected, verdict
from tests.parse.readers import FileReader

LIMITS = Limits()
SECONDS = 2.0
BYTES = 200 << 20


class Outcome:
    """What was said about one file."""

    def __init__(self) -> None:
        self.blockers: list[Blocker] = []
        self.tensors: int | None = None

    def say(self, *findings: Finding) -> None:
        self.blockers += [blocker(finding, "file") for finding in findings]

    @property
    def codes(self) -> set[str]:
        return {each.code for each in self.blockers}

    @property
    def rejected(self) -> bool:
        return any(
            each.severity is Severity.ERROR and Blocks.CONVERT in each.blocks for each in self.blockers
        )


def examine(path: Path) -> Outcome:
    """Parse a file as the formats do: where its name promises JSON or safetensors, its first bytes speak first."""
    outcome = Outcome()
    with FileReader(str(path)) as reader:
        try:
            if path.suffix == ".json":
                name_wrong_file(reader, Nature.JSON)
                document = read_json(reader, LIMITS)
                outcome.say(*document.notes)
                require_object(document)
            elif path.suffix == ".safetensors":
                name_wrong_file(reader, Nature.SAFETENSORS)
                header = read_header(reader, LIMITS)
                outcome.say(*header.notes)
                outcome.tensors = len(header.names)
            else:
                directory = read_directory(reader, LIMITS)
                outcome.say(*directory.notes)
                outcome.say(*describe(reader, directory, LIMITS).notes)
        except Fault as fault:
            outcome.say(fault.finding)
    return outcome


def name_wrong_file(reader: FileReader, nature: Nature) -> None:
    if finding := check_expected(sniff(reader.pread(0, HEAD), reader.size), nature, reader.size):
        raise Fault(finding.code, **finding.params)


def check(case: Case, outcome: Outcome) -> str | None:
    """Say what is wrong with an outcome; null where it is as it should be."""
    wanted = expected(case)
    match verdict(case):
        case "accept" if outcome.rejected:
            return f"{case['id']}: refused with {sorted(outcome.codes)}"
        case "reject" if not outcome.rejected:
            return f"{case['id']}: not refused, said {sorted(outcome.codes)}"
    if wanted and not outcome.codes & wanted:
        return f"{case['id']}: said {sorted(outcome.codes)}, expected one of {sorted(wanted)}"
    tensors = case.get("facts", {}).get("tensors")
    if outcome.tensors is not None and isinstance(tensors, int) and outcome.tensors != tensors:
        return f"{case['id']}: {outcome.tensors} tensors, not {tensors}"
    return next(iter(leaks(case, outcome)), None)


def leaks(case: Case, outcome: Outcome) -> list[str]:
    secrets = case.get("facts", {}).get("must_not_appear", ())
    return [
        f"{case['id']}: {each.code} repeats {secret!r}"
        for each in outcome.blockers
        for secret in secrets
        if secret in each.message or secret in each.remedy
    ]


@pytest.mark.parametrize(("group", "count"), [("A", 275), ("C", 139)])
def test_every_case_gets_its_class_and_our_code(
    cases: dict[str, list[Case]], corpus: Path, group: str, count: int
) -> None:  # R028 R029 R044 R045
    assert len(cases[group]) == count
    wrong = [check(case, examine(corpus / case["path"])) for case in cases[group]]
    assert [each for each in wrong if each] == []


@pytest.mark.parametrize("group", ["B", "F"])
def test_every_json_file_of_a_folder_says_what_is_wrong_with_it(
    cases: dict[str, list[Case]], corpus: Path, group: str
) -> None:  # R028 R044
    """Cases about JSON are told by the files alone; in other cases no JSON file is refused."""
    wrong = []
    for case in cases[group]:
        files = [path for path in sorted((corpus / case["path"]).rglob("*")) if path.is_file()]
        documents = [examine(path) for path in files if path.suffix == ".json"]
        headers = [examine(path) for path in files if path.suffix == ".safetensors"]
        said = {code for outcome in (*documents, *headers) for code in outcome.codes}
        about_json = str(case["code"]).startswith("JSON_") and expected(case)
        if (about_json or any(each.rejected for each in documents)) and not said & expected(case):
            wrong.append(f"{case['id']}: said {sorted(said)}, expected one of {sorted(expected(case))}")
        for outcome in (*documents, *headers):
            wrong += leaks(case, outcome)
    assert wrong == []


@pytest.mark.parametrize("group", ["A", "C"])
def test_no_case_takes_long(cases: dict[str, list[Case]], corpus: Path, group: str) -> None:  # R045
    slow = []
    for case in cases[group]:
        start = time.process_time()  # which other work on the machine does not lengthen
        examine(corpus / case["path"])
        if (seconds := time.process_time() - start) > SECONDS:
            slow.append(f"{case['id']}: {seconds:.1f} s")
    assert slow == []


@pytest.mark.parametrize("group", ["A", "C"])
def test_no_case_takes_much_memory(cases: dict[str, list[Case]], corpus: Path, group: str) -> None:  # R045
    greedy = []
    tracemalloc.start()
    try:
        for case in cases[group]:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            examine(corpus / case["path"])
            if (peak := tracemalloc.get_traced_memory()[1] - before) > BYTES:
                greedy.append(f"{case['id']}: {peak >> 20} MiB")
    finally:
        tracemalloc.stop()
    assert greedy == []


def test_what_the_reference_library_refuses_is_refused(
    cases: dict[str, list[Case]], corpus: Path
) -> None:  # R044
    lax = [
        case["id"]
        for case in cases["A"]
        if case["reference"]["verdict"] == "rejected" and not examine(corpus / case["path"]).rejected
    ]
    assert lax == []


def test_the_table_names_codes_and_cases_that_exist(cases: dict[str, list[Case]]) -> None:
    ours = set().union(*CODES.values(), *(each.codes for each in EXCEPTIONS.values()))
    assert ours <= TABLE.keys()
    ids = {case["id"] for group in cases.values() for case in group}
    assert EXCEPTIONS.keys() | NEEDS_DECODING.keys() <= ids


def test_every_exception_is_argued_in_the_notes() -> None:
    notes = (Path(__file__).parents[2] / "docs" / "format-notes.md").read_text(encoding="utf-8")
    assert [case for case in (*EXCEPTIONS, *NEEDS_DECODING) if f"`{case}`" not in notes] == []

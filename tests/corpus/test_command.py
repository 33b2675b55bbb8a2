"""Every case of the corpus through `shardscope inspect`: class, code, exit code, document, terminal, secrets, time, memory.

The commands run one after another in another process (`driver.py`); a sample runs in processes of their own, to prove
that it is the same.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from shardscope.engine.model.codes import CODES
from shardscope.engine.model.documents import DOCUMENTS, json_schema
from shardscope.engine.model.text import UNSAFE
from tests.app.terminal import run
from tests.corpus.conftest import Answer, Answers, ask, needs_another_user
from tests.corpus.expectations import Case, expected, verdict
from tests.test_inert import trespasses, watched

GROUPS = {"A": 275, "B": 121, "C": 139, "E": 92, "F": 109}
SECONDS = 2.0
"""Of processor time. A command that waits longer than the driver's patience is ended by a signal."""
BYTES = 200 << 20
EXITS = (130, 70, 2, 3, 5, 4, 8, 7, 6, 9, 1)
"""The more specific first (docs/exit-codes.md)."""

Complaint = str | None


@cache
def document(answer: Answer) -> dict[str, Any]:
    """The one document on standard output; raises where it is none, or where something follows it."""
    found: dict[str, Any] = json.loads(answer.text)
    return found


def said(answer: Answer) -> list[dict[str, Any]]:
    """The blockers; a failure counts as one that blocks inspection."""
    found = document(answer)
    if "error" in found:
        return [{**found["error"], "severity": "error", "blocks": ["inspect"]}]
    blockers: list[dict[str, Any]] = found["blockers"]
    return blockers


def errors(answer: Answer) -> list[dict[str, Any]]:
    return [item for item in said(answer) if item["severity"] == "error"]


def wrong_class(case: Case, answer: Answer) -> Complaint:
    blocking = sorted({item["code"] for item in errors(answer)})
    match verdict(case):
        case "accept" if blocking or answer.exit:
            return f"{case['id']}: exit {answer.exit}, refused with {blocking}"
        case "reject" if not blocking:
            return f"{case['id']}: not refused"
    if answer.exit == 70:
        return f"{case['id']}: crashed"
    codes = {item["code"] for item in said(answer)}
    if (wanted := expected(case)) and not codes & wanted:
        return f"{case['id']}: said {sorted(codes)}, expected one of {sorted(wanted)}"
    return None


def wrong_exit(case: Case, answer: Answer) -> Complaint:
    called = {1 for item in errors(answer) if "inspect" in item["blocks"]}
    called |= {int(code) for item in errors(answer) if (code := CODES[item["code"]].exit) is not None}
    wanted = next((code for code in EXITS if code in called), 0)
    return None if answer.exit == wanted else f"{case['id']}: exit {answer.exit}, its blockers say {wanted}"


def unsafe(case: Case, answer: Answer) -> Complaint:
    for stream in (answer.text, answer.complaint):
        if found := UNSAFE.search(stream.replace("\n", "")):
            return f"{case['id']}: {found[0]!r} reached the terminal"
    return None


def leak(case: Case, told: str) -> Complaint:
    secrets = case.get("facts", {}).get("must_not_appear", ())
    found = [secret for secret in secrets if secret in told]
    return f"{case['id']}: repeats {found}" if found else None


def leak_in_a_document(case: Case, answer: Answer) -> Complaint:
    """Names of files and tensors are data, and stand in the lists of them; sentences quote no secret."""
    blockers = [
        {name: item[name] for name in ("subject", "message", "remedy", "params")} for item in said(answer)
    ]
    return leak(case, json.dumps(blockers, ensure_ascii=False) + answer.complaint)


def leak_in_a_report(case: Case, answer: Answer) -> Complaint:
    return leak(case, answer.text + answer.complaint)


def complaints(cases: list[Case], answers: Answers, *checks: Any) -> list[str]:
    return [text for case in cases for check in checks if (text := check(case, answers[case["id"]]))]


@pytest.mark.parametrize("group", GROUPS)
def test_every_case_gets_its_class_and_our_code(
    cases: dict[str, list[Case]], documents: Answers, group: str
) -> None:  # R021 R028 R029 R041 R042 R044 R045 R049
    assert len(cases[group]) == GROUPS[group]
    assert complaints(cases[group], documents, wrong_class) == []


@pytest.mark.parametrize("group", [*GROUPS, "D"])
def test_the_exit_code_is_what_the_blockers_call_for(
    cases: dict[str, list[Case]], documents: Answers, group: str
) -> None:  # R021
    assert complaints(cases[group], documents, wrong_exit) == []


@pytest.mark.parametrize("group", [*GROUPS, "D"])
def test_there_is_one_valid_document_and_nothing_beside_it(
    cases: dict[str, list[Case]], documents: Answers, group: str
) -> None:  # R021
    checks = {name: jsonschema.Draft202012Validator(json_schema(name)) for name in DOCUMENTS}
    for case in cases[group]:
        answer = documents[case["id"]]
        found = document(answer)
        checks[found["schema"]].validate(found)
        assert answer.err == "", case["id"]


@pytest.mark.parametrize("group", [*GROUPS, "D"])
def test_a_document_keeps_the_terminal_safe(
    cases: dict[str, list[Case]], documents: Answers, group: str
) -> None:
    assert complaints(cases[group], documents, unsafe) == []


@pytest.mark.parametrize("group", ["A", "E", "F"])
def test_a_report_keeps_the_terminal_safe_and_ends_like_the_document(
    cases: dict[str, list[Case]], documents: Answers, reports: Answers, group: str
) -> None:
    assert complaints(cases[group], reports, unsafe) == []
    assert [
        case["id"] for case in cases[group] if reports[case["id"]].exit != documents[case["id"]].exit
    ] == []


def test_no_secret_is_repeated(
    cases: dict[str, list[Case]], documents: Answers, reports: Answers
) -> None:  # R098
    told = [case for case in cases["F"] if case.get("facts", {}).get("must_not_appear")]
    assert len(told) == 36
    assert complaints(told, documents, leak_in_a_document) == []
    assert complaints(told, reports, leak_in_a_report) == []


def test_no_case_takes_long_or_much_memory(cases: dict[str, list[Case]], documents: Answers) -> None:  # R045
    answers = {case["id"]: documents[case["id"]] for group in cases.values() for case in group}
    assert {name: found.seconds for name, found in answers.items() if found.seconds > SECONDS} == {}
    assert {name: found.peak >> 20 for name, found in answers.items() if found.peak > BYTES} == {}


def test_a_process_of_its_own_says_the_same(
    cases: dict[str, list[Case]], corpus: Path, documents: Answers, reports: Answers
) -> None:
    ours = [case for group in ("A", "E", "F") for case in cases[group] if not needs_another_user(case)]
    sample = sorted(ours, key=lambda case: hashlib.sha256(case["id"].encode()).digest())[:10]
    for case in sample:
        for options, answers in ((("--json",), documents), ((), reports)):
            alone = run("inspect", case["path"], *options, cwd=corpus)
            told = answers[case["id"]]
            assert (alone.code, alone.err) == (told.exit, told.complaint), case["id"]
            if options:  # a report has figures of this host, too
                assert alone.out == told.text, case["id"]


def test_a_snapshot_of_the_cache_is_read_where_it_is_asked_for(corpus: Path) -> None:  # R041
    (answer,) = ask(corpus, [["inspect", "E_filesystem/symlink-hub-cache", "--hf-cache", "--json"]])

    assert answer.exit == 0
    assert document(answer)["tensors"]["count"] == 1


def test_the_whole_corpus_is_told_in_one_inspection(
    cases: dict[str, list[Case]], corpus: Path, documents: Answers
) -> None:  # R045
    """Nothing about one file keeps another from being told about."""
    (answer,) = ask(corpus, [["inspect", ".", "--json"]])
    codes = {item["code"] for item in said(answer)}
    alone = {
        item["code"]
        for group in "ACF"
        for case in cases[group]
        for item in errors(documents[case["id"]])
        if item["code"].startswith(("header.", "zip.", "json."))
    }

    assert answer.exit not in (0, 70)
    assert unsafe({"id": "all"}, answer) is None
    assert alone - codes == set()
    assert answer.peak < BYTES


def test_a_pickle_is_opaque(cases: dict[str, list[Case]], documents: Answers) -> None:  # R032 R038
    """Whatever its opcodes are, nothing is said about them: a file, its size, and that it is opaque."""
    for case in cases["D"]:
        found = document(documents[case["id"]])
        assert found["trust"]["opaque_files"] == [Path(case["path"]).name], case["id"]
        assert found["tensors"]["count"] is None, case["id"]
        assert found["planes"]["decoded"] == "not examined", case["id"]
        told = {item["code"].partition(".")[0] for item in said(documents[case["id"]])}
        assert told <= {"trust", "layout", "file"}, case["id"]


def test_no_pickle_is_run(
    cases: dict[str, list[Case]], corpus: Path, tmp_path: Path
) -> None:  # R031 R032 R039
    paths = [str(corpus / case["path"]) for group in "CD" for case in cases[group]]

    report = watched("inspect", *paths, elsewhere=tmp_path)

    assert len(report["told"]) == len(paths)
    assert trespasses(report) == {}

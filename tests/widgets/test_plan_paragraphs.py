"""What a plan, its admission and its end say in paragraphs: every figure, every key, nothing raw, and signs in ASCII too."""

import time
from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from tests.app.conversion_fakes import MIB, a_plan, an_admission
from tests.hostile import HOSTILE

from shardscope.engine.model.blocker import Finding, blocker
from shardscope.engine.model.manifest import Manifest, OutputFile, OutputTensor, Run, Validation
from shardscope.engine.model.plan import Admission, AdmissionCheck
from shardscope.engine.model.text import UNSAFE
from shardscope.widgets.admission_terms import CHANGES, LIMITS, terms
from shardscope.widgets.glyphs import ASCII, UNICODE
from shardscope.widgets.paragraphs import Paragraph, wrap
from shardscope.widgets.plan_paragraphs import preview
from shardscope.widgets.plan_table import PlanTensors
from shardscope.widgets.plan_words import of_plan
from shardscope.widgets.run_end import Failure, Outcome, failure, success
from shardscope.widgets.safe import Tone

NAMES = tuple(raw for raw, _ in HOSTILE.values())
PLAN = replace(a_plan(), admission=an_admission())
KEYS = {"--ties": "t", "--vocab-size": "v"}


def lines(paragraphs: Iterable[Paragraph], width: int = 70) -> list[str]:
    return ["".join(text for text, _ in line) for each in paragraphs for line in wrap(each, width)]


def tone_of(paragraphs: Iterable[Paragraph], words: str) -> Tone:
    """Return the tone of the part that has some words."""
    parts = [part for each in paragraphs for part in each.parts if not isinstance(part, str)]
    return next(tone for text, tone in parts if words in text)


def outcome(**changes: object) -> Outcome:
    tensor = OutputTensor("w", "w", "F16", (2,), "", overflowed=3)
    manifest = Manifest(
        schema="", tool="", format="", source=(), options=PLAN.options, aliases=(), decisions=(), left_out=PLAN.left_out,
        estimates=PLAN.estimates, outputs=(OutputFile("model.safetensors", 8, None, (tensor,)),),
        validation=(Validation("values", "held", "12 elements"), Validation("checksums", "not recorded", "none")),
    )  # fmt: skip
    run = Run("", an_admission(), 3 << 30, 431 * MIB, 3.25, {}, resumed_bytes=2 << 30)
    found = Outcome(
        "out", PLAN, manifest, run, "exchange", ".out.previous", "shardscope convert a out", "shardscope verify out",
        before=70 * MIB,
    )  # fmt: skip
    return replace(found, **changes)


def ended(**changes: object) -> Failure:
    found = Failure(
        blocker(Finding("stage.no_space", {"file": "a", "needed": 2, "free": 1})),
        stopped=False, doing="copying", out="out", stood=True, finished=3, files=9, notes=(), go_on=None,
    )  # fmt: skip
    return replace(found, **changes)


# R105
def test_admission_has_every_figure_beside_its_limit_on_one_line() -> None:
    said = lines(terms(PLAN, of_plan(PLAN), KEYS, UNICODE))

    assert any(line.startswith("read") and "564.0 GiB" in line for line in said)
    for label, needs, has in (
        ("disk", "141.0 GiB", "412.0 GiB"),
        ("memory budget", "250.0 MiB", "256.0 MiB"),
        ("RAM", "448.0 MiB", "80.0 GiB"),
        ("control group", "448.0 MiB", "62.0 GiB"),
        ("open files", "192", "1,024"),
    ):
        found = [line for line in said if line.startswith(label)]
        assert len(found) == 1
        assert [needs in found[0], has in found[0], "✓ ok" in found[0]] == [True] * 3
    assert any("one copy of lm_head.weight  [t]" in line for line in said)
    assert any(line.startswith("not promised") and "exact training resume" in line for line in said)
    assert any("optimizer left out" in line for line in said)


# R108 R109
@pytest.mark.parametrize("what", sorted(CHANGES))
@pytest.mark.parametrize("verdict", ["denied", "unknown"])
def test_what_is_not_admitted_is_named_with_what_would_change_it(what: str, verdict: str) -> None:
    check = AdmissionCheck(what, 9, 4 if verdict == "denied" else None, verdict, "statvfs: blocks")  # type: ignore[arg-type]
    plan = replace(PLAN, admission=Admission(verdict, (check,)))  # type: ignore[arg-type]
    said = " ".join(" ".join(lines(terms(plan, of_plan(plan), KEYS, UNICODE))).split())

    assert what in LIMITS
    assert f"{verdict}: {what}:" in said
    assert f"To change it: {CHANGES[what]}." in said
    assert "statvfs: blocks" in said
    assert ("never guessed" in said) == (verdict == "unknown")
    assert tone_of(terms(plan, of_plan(plan), KEYS, UNICODE), verdict) is (
        Tone.STOP if verdict == "denied" else Tone.CAUTION
    )


def test_a_preview_tells_decisions_with_their_keys_renames_and_what_is_in_the_way() -> None:
    stopped = replace(
        PLAN, blockers=(blocker(Finding("convert.tensor", {"tensor": "w", "reason": "it is sparse"})),)
    )
    said = lines(preview(stopped, of_plan(stopped), KEYS, UNICODE))
    text = "\n".join(said)

    assert "1 blocker: nothing starts" in text
    assert "convert.tensor" in text
    assert "[v]" in text
    assert "[--rename FILE]" in text.replace("\u00a0", " ")  # no key here: the option itself
    assert "81 tensors" in text
    assert "module.layers.0.part_0.weight ▸ model.layers.0.norm.weight" in text
    assert "and 75 more, see the plan" in text


def test_an_output_is_told_with_its_proof_its_memory_and_what_comes_next() -> None:
    said = lines(success(outcome(), UNICODE))
    text = " ".join(" ".join(said).split())

    assert said[0].startswith("✓ Converted  723 tensors in 30 files")
    assert "old output .out.previous" in text
    assert "3.2 s, peak memory 431.0 MiB, 70.0 MiB before it began, 250.0 MiB of buffers planned" in text
    assert "2.0 GiB of an earlier run were verified and taken" in text
    assert "Became infinite" in text
    assert "3 numbers in F16" in text
    assert "verify shardscope verify out" in text
    assert tone_of(success(outcome(), UNICODE), "not recorded") is Tone.CAUTION


# R112 R113
@pytest.mark.parametrize(
    ("changes", "wanted", "unwanted"),
    [
        ({}, ("Not converted", "stage.no_space", "It failed while copying.", "3 of 9 files finished", "as it was", "was removed"), ("To go on",)),
        ({"doing": None, "stood": False}, ("was made: it ended before anything was begun", "no output appeared"), ("removed", "failed while")),
        (
            {"stopped": True, "go_on": "shardscope convert a out --resume", "notes": (blocker(Finding("stage.kept", {"file": "out", "staging": ".s"})),)},
            ("Stopped", "To go on", "--resume", "stays in .s"),
            ("was removed", "stage.no_space"),
        ),
    ],
    ids=["failed", "before anything", "kept"],
)  # fmt: skip
def test_what_was_and_was_not_written_is_told(
    changes: dict[str, object], wanted: tuple[str, ...], unwanted: tuple[str, ...]
) -> None:
    text = " ".join(" ".join(lines(failure(ended(**changes), UNICODE))).split())

    assert all(words in text for words in wanted)
    assert not any(words in text for words in unwanted)


@pytest.mark.parametrize("width", [16, 36, 70, 110])
def test_nothing_is_raw_wider_than_its_room_or_beyond_ascii_where_that_is_all(width: int) -> None:
    raw = "".join(NAMES)
    hostile = replace(a_plan(NAMES), admission=an_admission(denied=True))
    wrapped = (
        lines(preview(hostile, of_plan(hostile), {}, ASCII), width),
        lines(terms(hostile, of_plan(hostile), {}, ASCII), width),
        lines(success(outcome(plan=hostile, out=raw, again=raw, verify=raw, previous=raw), ASCII), width),
        lines(failure(ended(out=raw, go_on=raw), ASCII), width),
    )
    for told in wrapped:
        for line in told:
            assert not UNSAFE.search(line)
            assert len(line) <= max(width, 40)
    plain = replace(PLAN, admission=an_admission())
    for page in (
        preview(plain, of_plan(plain), {}, ASCII),
        terms(plain, of_plan(plain), {}, ASCII),
        success(outcome(), ASCII),
        failure(ended(), ASCII),
    ):
        assert "\n".join(lines(page)).replace("\u00a0", " ").isascii()


def test_a_plan_of_very_many_tensors_is_drawn_from_what_was_found_out_once() -> None:
    file = a_plan().files[0]
    large = replace(
        a_plan(), files=(replace(file, tensors=file.tensors * 4_000),) * 10, admission=an_admission()
    )
    facts = of_plan(large)
    rows = PlanTensors(large.files)

    assert rows.row_count == 10 * 4_000 * 24
    assert rows.at(rows.row_count - 1)[0] == file.tensors[-1]
    assert rows.at(24 * 4_000)[0] == file.tensors[0]
    begin = time.thread_time()
    for _ in range(10):
        lines(preview(large, facts, KEYS, UNICODE))
        lines(terms(large, facts, KEYS, UNICODE))
        PlanTensors(large.files, facts.renamed).cell(5, 3)
    assert time.thread_time() - begin < 0.5  # ten looks at every tensor take longer

"""What the panels say: the answer, its basis, and each state in a word."""

import msgspec
import pytest
from tests.widgets import samples
from tests.widgets.stage import Stage, screen_text

from shardscope.engine.model.evidence import Basis, Classification, Confidence, Status
from shardscope.engine.model.resources import Estimate, Resources
from shardscope.widgets.blockers_panel import ALIKE, MORE, BlockersPanel
from shardscope.widgets.evidence_panel import EvidencePanel
from shardscope.widgets.figures import memory_left
from shardscope.widgets.glyphs import ASCII
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.rank_map import RankMap
from shardscope.widgets.resources_panel import ResourcesPanel, bar, fits
from shardscope.widgets.safe import Tone
from shardscope.widgets.summary_panel import SummaryPanel, worst

GIB = samples.GIB


async def said(panel: Paragraphs, width: int = 100) -> str:
    """Return everything that a panel says, joined to one line, single spaces."""
    async with Stage(panel).run_test(size=(width, 40)) as pilot:
        await pilot.pause()
        return " ".join(" ".join(panel.text_lines).split())


@pytest.mark.parametrize(
    "panel",
    [EvidencePanel, BlockersPanel, RankMap, ResourcesPanel, SummaryPanel],
    ids=lambda panel: panel.__name__,
)
async def test_before_anything_was_examined_a_panel_says_so(panel: type[Paragraphs]) -> None:
    app = Stage(panel())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "G", "g", "enter")
        assert "Not examined yet" in screen_text(app)


# Evidence


async def test_evidence_names_claim_basis_and_subject_strongest_first() -> None:
    text = await said(EvidencePanel(samples.CLASSIFICATION))
    assert text.startswith(
        "DeepSpeed ZeRO conditional, confidence low. Structural evidence only: no promise"
    )  # R037
    assert text.index("observed a zip as torch.save writes it") < text.index("declared points at the folder")
    assert text.index("declared points") < text.index("inferred 8 files named")
    why_not = "Weighed and not chosen 1, each with the reason why not ✗ Megatron-LM, one file a rank the folder has no"
    assert why_not in text
    assert (
        text.index("inferred 8 files named")
        < text.index(why_not)
        < text.index("observed no folder has such a name")
    )


async def test_no_evidence_is_said() -> None:
    found = Classification("unknown", Status.UNKNOWN, Confidence.NONE, (), ())
    text = await said(EvidencePanel(found))
    assert "unknown. Structural" in text
    assert "confidence" not in text
    assert "Nothing that was examined speaks for a format." in text


# Blockers


async def test_blockers_come_worst_first_with_message_remedy_code_and_subject() -> None:
    text = await said(BlockersPanel(samples.BLOCKERS))
    assert text.startswith(
        "✗ error Rank 5 of 8 has no optimizer partition; its parameters cannot be rebuilt. Copy the file from the node"
    )
    assert "layout.rank_missing blocks convert, load global_step1200/bf16_zero_pp_rank_5" in text
    assert text.index("✗ error") < text.index("▲ warning") < text.index("• note")


async def test_blockers_can_be_listed_from_a_severity_on() -> None:
    panel = BlockersPanel(samples.BLOCKERS)
    app = Stage(panel)
    async with app.run_test(size=(100, 30)) as pilot:
        assert "✗ 1 error   ▲ 1 warning   • 1 note" in screen_text(app).splitlines()[0]
        await pilot.press("w")
        assert "Python file" not in screen_text(app)
        assert "hold pickles" in screen_text(app)
        await pilot.press("e")
        assert "hold pickles" not in screen_text(app)
        await pilot.press("a")
        assert "Python file" in screen_text(app)
        panel.show([samples.CODE_FILE])
        await pilot.press("e")
        assert "No errors. a lists the rest." in screen_text(app)


async def test_choosing_a_blocker_tells_its_subject() -> None:
    app = Stage(BlockersPanel(samples.BLOCKERS))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("down", "enter")
        await pilot.pause()
        chosen = [each.subject for each in app.said if isinstance(each, BlockersPanel.BlockerChosen)]
        assert chosen == [samples.OPAQUE.subject]


async def test_many_blockers_of_a_kind_are_counted_and_can_be_listed() -> None:
    links = [
        msgspec.structs.replace(samples.OPAQUE, code="source.link", message=f"f{number} is a link.")
        for number in range(1_000)
    ]
    panel = BlockersPanel([*links, samples.MISSING_RANK])
    app = Stage(panel)
    async with app.run_test(size=(100, 30)) as pilot:
        rest = 1_000 - ALIKE
        assert any(f"… {rest} more of source.link" in line for line in panel.text_lines)
        assert sum("is a link." in line for line in panel.text_lines) == ALIKE
        assert sum(samples.OPAQUE.remedy in line for line in panel.text_lines) == 1  # said once for all alike
        await pilot.press("G", "enter")
        await pilot.pause()
        assert sum("is a link." in line for line in panel.text_lines) == ALIKE + MORE
        assert panel.blocker is not None
        assert panel.blocker.message == f"f{ALIKE} is a link."
        assert not [each for each in app.said if isinstance(each, BlockersPanel.BlockerChosen)]


async def test_nothing_in_the_way_never_reads_as_clean() -> None:
    text = await said(BlockersPanel(()))
    assert text == "✓ nothing in the way, in what was examined. What was not examined is not clean."


# Resources


async def test_estimates_carry_basis_or_are_unknown() -> None:
    text = await said(ResourcesPanel(samples.RESOURCES, samples.Host()))
    assert "source 18.4 GiB observed" in text
    assert "logical unknown unknown opaque until decoded" in text
    assert "4.6 GiB needed, 412.0 GiB free fits" in text
    assert "448.0 MiB needed, 90.0 GiB free of 96.0 GiB fits" in text
    assert "448.0 MiB needed, 62.0 GiB left of a limit of 64.0 GiB fits" in text


async def test_without_figures_of_the_machine_nothing_is_said_to_fit() -> None:
    text = await said(ResourcesPanel(samples.RESOURCES))
    assert "The figures of this machine are not known." in text
    assert "fits" not in text


async def test_unknown_needs_are_unknown_and_no_bar() -> None:
    none = Estimate(None, Basis.UNKNOWN, "opaque")
    text = await said(
        ResourcesPanel(Resources(none, none, none, none, none), samples.Host(cgroup_limit=None))
    )
    assert "disk unknown needed, 412.0 GiB free unknown" in text
    assert "░" not in text


@pytest.mark.parametrize(
    ("need", "room", "answer"),
    [
        (None, 10, ("unknown", Tone.CAUTION)),
        (10, None, ("unknown", Tone.CAUTION)),
        (11, 10, ("does not fit", Tone.STOP)),
        (10, 10, ("tight", Tone.CAUTION)),
        (9, 10, ("fits", Tone.OK)),
        (0, 0, ("fits", Tone.OK)),
    ],
)
def test_fits(need: int | None, room: int | None, answer: tuple[str, Tone]) -> None:
    assert fits(need, room) == answer


def test_memory_left_is_the_tighter_of_machine_and_control_group() -> None:
    assert memory_left(samples.Host()) == 62 * GIB
    assert memory_left(samples.Host(ram_available=GIB)) == GIB
    assert memory_left(samples.Host(cgroup_limit=None)) == 90 * GIB
    assert memory_left(samples.Host(cgroup_limit=GIB)) == 0
    assert memory_left(samples.Host(ram_available=None, cgroup_limit=None)) is None


def test_a_bar_shows_the_least_need_and_never_overflows() -> None:
    assert bar(1, 1_000_000, ASCII, 4) == "#..."
    assert bar(0, 10, ASCII, 4) == "...."
    assert bar(99, 10, ASCII, 4) == "####"
    assert bar(1, 0, ASCII, 4) == "####"


# Summary


async def test_the_summary_answers_in_order() -> None:
    hints = (("d", "decode (nothing runs)"), ("?", "help"))
    text = await said(SummaryPanel(samples.DESCRIPTOR, samples.Host(), hints))
    wanted = [
        "DeepSpeed ZeRO conditional, confidence low structural evidence, no promise to load or convert",  # R037
        "whole? no, 1 error in what was examined",
        "in the way ✗ error Rank 5 of 8 has no optimizer partition",
        "layout.rank_missing and 1 other, see Blockers",
        "next d decode (nothing runs) ? help",
        "topology world 16 (derived) · tp 2 (inferred) · dp 8 (inferred) · pp unknown",
        "missing: tp 0 dp 5",
        "producer DeepSpeed (version unknown) inferred",
        "weights opaque until decoded",
        "optimizer opaque until decoded",
        "tensors none could be listed without decoding",
        "size 18.4 GiB in 17 files · output about 4.6 GiB (estimate)",
        "this box 412.0 GiB free (fits) · 62.0 GiB memory (fits)",
        "trust 16 opaque files, 1 code file · nothing was executed",
    ]
    places = [text.find(each) for each in wanted]
    assert -1 not in places, [each for each, place in zip(wanted, places, strict=True) if place < 0]
    assert places == sorted(places)


async def test_the_summary_fits_a_small_terminal() -> None:
    panel = SummaryPanel(samples.DESCRIPTOR, samples.Host(), (("?", "help"),))
    async with Stage(panel).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert len(panel.text_lines) <= 23


def test_the_worst_is_the_most_severe_that_blocks_most() -> None:
    assert worst(samples.BLOCKERS) is samples.MISSING_RANK
    assert worst([samples.CODE_FILE]) is None
    assert worst([]) is None


async def test_nothing_in_the_way_in_the_summary() -> None:
    found = msgspec.structs.replace(samples.DESCRIPTOR, blockers=())
    text = await said(SummaryPanel(found))
    assert "in the way nothing in what was examined; what was not examined is not clean" in text
    assert "this box" not in text


async def test_what_is_only_recognised_is_not_said_to_wait_for_decoding() -> None:
    blocker = msgspec.structs.replace(samples.DESCRIPTOR.blockers[0], code="layout.recognised_only")
    text = await said(SummaryPanel(msgspec.structs.replace(samples.DESCRIPTOR, blockers=(blocker,))))
    assert "weights opaque " in text
    assert "until decoded" not in text
    assert "tensors none could be listed size" in text

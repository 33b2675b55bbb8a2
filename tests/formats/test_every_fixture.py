"""Every kept checkpoint of a real producer is classified as what its producer wrote."""

import re

import pytest

from shardscope.engine.formats import FORMATS
from shardscope.engine.inspecting import classify
from shardscope.engine.model.evidence import Confidence, EvidenceKind, Status
from shardscope.engine.model.format_names import FORMAT_TITLES
from tests.formats.looking import FIXTURES, look

EXPECTED = (
    (r"accelerate/offload_folder", "accelerate_offload"),
    (r"accelerate/.+", "accelerate_state"),
    (r"dcp/hf_writer_(sharded|scalar_int)_world2", "torch_dcp_safetensors"),
    (r"dcp/hf_writer_consolidated_world2", "composite"),
    (r"dcp/hf_writer_rank0_full_world2", "hf_safetensors"),
    (r"dcp/.+", "torch_dcp"),
    (r"deepspeed/uc-from-.+", "deepspeed_universal"),
    (r"deepspeed/.+", "deepspeed_zero"),
    (r"gguf/.+", "gguf"),
    (r"hf/bin_.+", "hf_torch"),
    (r"hf/meta_consolidated_mp2", "meta_consolidated"),
    (r"hf/mistral_consolidated", "mistral_consolidated"),
    (r"hf/vllm_sharded_state_tp2", "vllm_sharded_state"),
    (r"hf/.+", "hf_safetensors"),
    (r"megatron/(dist_zarr|torch_dist)_.+", "megatron_dist"),
    (r"megatron/legacy_.+", "megatron_legacy"),
    (r"numpy/.+", "numpy"),
    (r"orbax/.+", "orbax"),
    (r"peft/.+", "peft_adapter"),
    (r"torch/fsdp1_full_world2", "torch_save"),
    (r"torch/fsdp.+", "fsdp_rank_files"),
    (r"torch/.+", "torch_save"),
    (r"zarr/.+", "zarr"),
)
"""The first pattern that is the whole name of a fixture says its format. A full FSDP save is one plain file of torch.save."""
REFUSED = {"torch/zip_truncated"}
"""Fixtures that something keeps from being inspected as a whole."""
BY_NAMES = {"torch_dcp", "deepspeed_zero", "deepspeed_universal", "megatron_legacy", "accelerate_state"}
"""Formats of which the safe plane sees names and arrangement only."""
WEAK = {EvidenceKind.NAME, EvidenceKind.STRUCTURE, EvidenceKind.TRACKER}
NAMES = sorted(path.parent.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("*/*/checkpoint"))


def expected(name: str) -> str:
    return next(value for pattern, value in EXPECTED if re.fullmatch(pattern, name))


def test_every_row_of_the_table_has_a_fixture() -> None:
    used = {next(pattern for pattern, _ in EXPECTED if re.fullmatch(pattern, name)) for name in NAMES}
    assert used == {pattern for pattern, _ in EXPECTED}


@pytest.mark.parametrize("name", NAMES)
def test_a_fixture_is_what_its_producer_wrote(name: str) -> None:  # R022 R023 R037
    classification = look(FIXTURES / name / "checkpoint").classification
    assert classification.format == expected(name)
    assert classification.status is (Status.REFUSED if name in REFUSED else Status.CONDITIONAL)
    assert classification.evidence


@pytest.mark.parametrize("name", NAMES)
def test_names_alone_carry_low_confidence_at_most(name: str) -> None:  # R071
    classification = look(FIXTURES / name / "checkpoint").classification
    if classification.format in BY_NAMES or all(item.kind in WEAK for item in classification.evidence):
        assert classification.confidence.rank <= Confidence.LOW.rank


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_number_with_a_basis_or_a_reason(name: str) -> None:  # R024
    resources = look(FIXTURES / name / "checkpoint").resources
    for figure in resources.__struct_fields__:
        estimate = getattr(resources, figure)
        assert estimate.note
        assert (estimate.bytes is None) == (estimate.basis == "unknown")


@pytest.mark.parametrize("name", NAMES)
def test_no_hint_hides_a_format(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints save time; a format that answers something must have been asked."""
    folder = FIXTURES / name / "checkpoint"
    hinted = look(folder).classification
    monkeypatch.setattr(classify, "asked", lambda *_: FORMATS)
    assert look(folder).classification == hinted


def test_every_format_has_a_title_and_a_hint() -> None:
    assert {item.name for item in FORMATS} <= FORMAT_TITLES.keys()
    assert all(item.hint.suffixes or item.hint.folders for item in FORMATS)
    assert len({item.name for item in FORMATS}) == len(FORMATS)
    generals = [item.general for item in FORMATS]
    assert generals == sorted(generals), "specific formats come before general ones"

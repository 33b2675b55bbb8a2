"""FSDP rank files, decoded: what every rank holds, put together by what the pickles say of meshes and shards."""

import pytest

from tests.formats.decoding import decode
from tests.formats.looking import FIXTURES
from tests.formats.test_decode_dcp import assert_equal

TORCH = FIXTURES / "torch"
WHOLE = (
    "fsdp1_sharded_torch_save_world2",
    "fsdp2_dtensor_torch_save_world2",
    "fsdp2_tp_dtensor_torch_save_dp2_tp2",
    "fsdp1_full_world2",
)


@pytest.mark.parametrize("name", WHOLE)
def test_every_whole_save_is_listed_and_equal_bit_for_bit(name: str) -> None:
    found = decode(TORCH / name / "checkpoint")
    assert not found.errors
    assert_equal(found, TORCH / name)


def test_a_local_state_is_refused_and_nothing_of_it_is_listed() -> None:
    found = decode(TORCH / "fsdp1_local_world2" / "checkpoint")
    assert found.errors == {"fsdp.local_state"}
    assert not found.tensors

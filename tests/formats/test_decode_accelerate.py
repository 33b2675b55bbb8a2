"""States that Accelerate saves, decoded: every part as what it is."""

import pytest

from shardscope.engine.model.state import Presence
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES

ACCELERATE = FIXTURES / "accelerate"


def assert_part(found: Found, component: str, want: dict[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    got = {tensor.name: tensor for tensor in found.tensors if tensor.component == component}
    assert got.keys() == want.keys()
    for key, (dtype, shape, data) in want.items():
        assert (got[key].dtype, got[key].shape) == (dtype, shape), key
        assert value(found, got[key]) == data, key


@pytest.mark.parametrize("name", ["fsdp1_sharded_world2", "fsdp2_full_world2", "fsdp2_sharded_world2"])
def test_the_weights_are_equal_bit_for_bit(name: str) -> None:
    found = decode(ACCELERATE / name / "checkpoint")
    assert not found.errors
    assert_part(found, "model", expected(ACCELERATE / name))


@pytest.mark.parametrize("name", ["fsdp2_full_world2", "fsdp2_sharded_world2"])
def test_the_optimizer_is_equal_bit_for_bit_under_the_same_names_in_either_form(name: str) -> None:
    found = decode(ACCELERATE / name / "checkpoint")
    assert_part(found, "optimizer", expected(ACCELERATE / name, "expected_optimizer"))


def test_random_states_and_schedulers_are_state_and_not_tensors() -> None:
    found = decode(ACCELERATE / "fsdp2_full_world2" / "checkpoint")
    (facts,) = found.facts
    assert facts.state.rng.presence is Presence.PRESENT
    assert facts.state.scheduler.presence is Presence.PRESENT
    assert facts.state.scaler.presence is Presence.ABSENT
    assert not [tensor for tensor in found.tensors if tensor.component == "other"]
    assert not facts.opaque

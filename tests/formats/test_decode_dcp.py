"""Distributed checkpoints, decoded: every tensor by name, every chunk where its bytes are, every lie refused by its code."""

from pathlib import Path

import pytest

from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES

DCP = FIXTURES / "dcp"
WHOLE = sorted(
    folder.name
    for folder in DCP.iterdir()
    if (folder / "expected.safetensors").exists() and list((folder / "checkpoint").glob("*.distcp"))
)


def assert_equal(found: Found, fixture: Path, name: str = "expected") -> None:
    """Names, dtypes, shapes and every bit are those that the producer had in memory."""
    want = expected(fixture, name)
    got = {tensor.name: tensor for tensor in found.tensors}
    assert got.keys() == want.keys()
    for key, (dtype, shape, data) in want.items():
        assert (got[key].dtype, got[key].shape) == (dtype, shape), key
        assert value(found, got[key]) == data, key


@pytest.mark.parametrize("name", WHOLE)
def test_every_whole_save_is_listed_and_equal_bit_for_bit(name: str) -> None:
    found = decode(DCP / name / "checkpoint")
    assert not found.errors
    assert_equal(found, DCP / name)

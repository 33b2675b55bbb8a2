"""Comparing numbers with their rounded copies: all of small checkpoints, a bounded part of large ones."""

from pathlib import Path

import numpy as np
import pytest

from shardscope.engine.formats.decode import twins
from shardscope.engine.formats.decode.twins import compare, twin
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, Record
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.oracle import Compared, Oracle, Twin
from shardscope.engine.model.pickled import Pickled
from shardscope.engine.source.source import Source
from tests.formats.deepspeed_runs import Array


def written(folder: Path, exact: Array, rounded: Array) -> tuple[Fragment, Fragment]:
    """Write both sides as files and return where they are."""
    found = []
    for name, array in (("exact.bin", exact), ("rounded.bin", rounded)):
        (folder / name).write_bytes(b"head" + array.tobytes())
        record = Record(name, 4, array.nbytes, array.nbytes)
        found.append(Fragment(0, exact.shape, record, 0))
    return found[0], found[1]


def compared(folder: Path, pairs: list[Twin], most: int | None = twins.SAMPLED_BYTES) -> Compared:
    """Compare pairs of two files in a folder."""
    with Source(folder, limits=Limits(), hf_cache=False) as source:
        probe = Probe(source, source.walk(), Limits())
        return compare(probe, pairs, most)


def pair(folder: Path, exact: Array, rounded: Array) -> Twin:
    """Return one pair over two whole files."""
    one, other = written(folder, exact, rounded)
    found = twin("w", one, other, "F16")
    assert found is not None
    return found


@pytest.mark.parametrize("shape", [(), (7,), (300, 2000), (3, 5, 7), (1, 400_000)])
def test_everything_is_compared_where_it_is_within_the_bound(tmp_path: Path, shape: tuple[int, ...]) -> None:
    exact = np.random.default_rng(0).standard_normal(shape).astype(np.float32).reshape(shape)
    rounded = np.asarray(exact.astype(np.float16)).reshape(shape)
    seen = compared(tmp_path, [pair(tmp_path, exact, rounded)])
    assert (seen.compared, seen.total, seen.differing) == (exact.nbytes, exact.nbytes, {})
    wrong = rounded.copy().reshape(-1)
    wrong[-1] += np.float16(1)
    seen = compared(tmp_path, [pair(tmp_path, exact, wrong.reshape(shape))])
    assert seen.differing == {"w": 1}


@pytest.mark.parametrize("at", [0, -1, 500_000])
def test_a_sample_is_bounded_and_sees_both_ends_and_some_between(tmp_path: Path, at: int) -> None:
    exact = np.zeros(1_000_000, np.float32)
    rounded = np.zeros(1_000_000, np.float16)
    rounded[at - 80_000 if at > 0 else at : at + 80_000 if at > 0 else None] += np.float16(at != 0)
    rounded[0] += np.float16(at == 0)
    most = 256 << 10
    seen = compared(tmp_path, [pair(tmp_path, exact, rounded)], most)
    assert 0 < seen.compared <= 2 * most < seen.total == exact.nbytes
    assert seen.differing.keys() == {"w"}
    assert seen.says == f"compared {seen.compared:,} of 4,000,000 bytes"


def test_rows_larger_than_the_bound_are_sampled_from_their_beginning(tmp_path: Path) -> None:
    exact = np.zeros((2, 500_000), np.float32)
    seen = compared(tmp_path, [pair(tmp_path, exact, exact.astype(np.float16))], 64 << 10)
    assert 0 < seen.compared <= 256 << 10


def test_very_many_pairs_are_sampled_within_the_bound(tmp_path: Path) -> None:
    exact = np.zeros(40_000, np.float32)
    whole = pair(tmp_path, exact, exact.astype(np.float16))
    pairs = [twins._rows(whole, start, 4_000) for start in range(0, 40_000, 4_000)]
    seen = compared(tmp_path, pairs, 16 << 10)
    assert 0 < seen.compared <= 32 << 10


def test_without_a_bound_all_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "SAMPLED_BYTES", 16)
    exact = np.arange(1_000, dtype=np.float32)
    seen = compared(tmp_path, [pair(tmp_path, exact, exact.astype(np.float16))], None)
    assert seen.compared == seen.total == exact.nbytes


def test_what_is_coded_or_of_another_type_is_no_pair() -> None:
    plain = Fragment(0, (4,), Record("a", 0, 16, 16), 0)
    assert twin("w", plain, plain, "F16") is not None
    assert twin("w", plain, plain, "I64") is None
    coded = Fragment(0, (4,), Record("a", 0, 16, 16, "deflate"), 0)
    assert twin("w", coded, plain, "F16") is None
    big = Fragment(0, (4,), Record("a", 0, 16, 16, big_endian=True), 0)
    assert twin("w", plain, big, "F16") is None
    assert twin("w", Fragment(0, (0,), Record("a", 0, 0, 0), 0), plain, "F16") is None


def nothing(data: bytes, pickles: int) -> Pickled:
    """Stand in for the worker: values are compared without it."""
    raise Fault("pickle.truncated")


@pytest.mark.parametrize("all_of_them", [False, True])
def test_conversion_compares_what_inspection_only_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_of_them: bool
) -> None:
    monkeypatch.setattr(twins, "SAMPLED_BYTES", 32 << 10)
    exact = np.zeros(400_000, np.float32)
    rounded = exact.astype(np.float16)
    rounded[30_000] = 1  # between the first two windows of a sample
    one = pair(tmp_path, exact, rounded)
    with Source(tmp_path, limits=Limits(), hf_cache=False) as source:
        probe = Probe(source, source.walk(), Limits())
        decoder = Decoder(probe, nothing)
        decoder.compares_all = all_of_them
        oracle = Oracle("deepspeed.masters_differ", "rounded.bin", (one,))
        found = twins.checked(decoder, oracle)
    assert decoder.oracles == [oracle]
    assert decoder.payload_bytes == found.read
    assert (found.compared == found.total) == all_of_them
    assert [item.code for item in probe.blockers] == ["deepspeed.masters_differ"] * all_of_them

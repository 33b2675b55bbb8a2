"""Ratios of two pieces of work, measured in interleaved pairs on a machine that others may be using.

A single time says little on a shared machine; the ratio of two times taken within a second of each other says a lot.
Each pair runs the reference, the subject and the reference again, so that each measurement carries its own control:
the ratio of the reference to itself, whose distance from 1 is the noise of the moment.

Scripts beside this one start with `sys.path.insert(0, str(Path(__file__).parents[2]))` and import `tests.benchmarks.pairs`.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple


class Ratio(NamedTuple):
    """One measurement. Ratios are time of the subject by time of the reference: below 1 is faster."""

    name: str
    median: float
    low: float
    """The lower quartile of the pairs."""
    high: float
    """The upper quartile of the pairs."""
    self_median: float
    """The reference against itself: how far from 1 noise alone gets."""
    reference_seconds: float
    subject_seconds: float


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(
    name: str,
    reference: Callable[[], object],
    subject: Callable[[], object],
    pairs: int = 9,
    bar: float | None = None,
) -> Ratio:
    """Measure `subject` against `reference`, print one line and return it. `bar` is the ratio that was promised."""
    if pairs < 7:
        raise ValueError("fewer than 7 pairs tell nothing")
    reference()
    subject()
    rows = [(seconds(reference), seconds(subject), seconds(reference)) for _ in range(pairs)]
    ratios = [subject_time / ((before + after) / 2) for before, subject_time, after in rows]
    low, median, high = statistics.quantiles(ratios, n=4)
    result = Ratio(
        name,
        median,
        low,
        high,
        statistics.median(after / before for before, _, after in rows),
        statistics.median(before for before, _, _ in rows),
        statistics.median(subject_time for _, subject_time, _ in rows),
    )
    verdict = "" if bar is None else f"  bar {bar:.2f}: {'met' if median <= bar else 'MISSED'}"
    print(
        f"{name}: {median:.3f}x  (quartiles {low:.3f} to {high:.3f}, reference by itself {result.self_median:.3f}, "
        f"{pairs} pairs, {result.subject_seconds:.3f} s by {result.reference_seconds:.3f} s, "
        f"load {os.getloadavg()[0]:.1f}){verdict}"
    )
    sys.stdout.flush()
    return result

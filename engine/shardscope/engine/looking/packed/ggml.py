"""Blocks of ggml as numbers: the layouts of `ggml-quants.c`, in the order of operations of its reference code, in 32 bits.

Every function takes blocks as rows of bytes, of little-endian files, and returns as many rows of numbers.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import table
from shardscope.engine.looking.statistics import Bytes

Numbers = NDArray[np.float32]

_E2M1: Final = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)
"""Twice the values of E2M1."""
_IQ4: Final = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""The levels of IQ4_NL and IQ4_XS (`kvalues_iq4nl`)."""


def _unsigned() -> Numbers:
    """Return half of what each code of a scale of NVFP4 stands for: E4M3, whose sign is not looked at and whose NaN is 0."""
    found: Numbers = (table("F8_E4M3")[np.arange(256) & 127] / 2).astype(np.float32)
    found[127], found[255] = 0, 240
    return found


_UE4M3: Final = _unsigned()


def _half(data: Bytes) -> Numbers:
    """Return two bytes each as F16."""
    return np.ascontiguousarray(data).view("<f2").astype(np.float32)


def _nibbles(data: Bytes) -> Bytes:
    """Return the low halves of all bytes, then the high ones."""
    return np.concatenate([data & np.uint8(15), data >> np.uint8(4)], axis=-1)


def _shifted(data: Bytes, run: int, step: int, mask: int) -> Bytes:
    """Return numbers out of runs of bytes: those of all bytes of a run at one place, then those at the next."""
    shifts = np.arange(0, 8, step, dtype=np.uint8).reshape(1, 1, -1, 1)
    found: Bytes = (data.reshape(len(data), -1, 1, run) >> shifts) & np.uint8(mask)
    return found.reshape(len(data), -1)


def _bits(data: Bytes) -> Bytes:
    """Return the bits of four bytes, the lowest first."""
    return np.unpackbits(data, axis=-1, bitorder="little")


def _q4_0(data: Bytes) -> Numbers:
    return _half(data[:, :2]) * (_nibbles(data[:, 2:]).astype(np.float32) - 8)


def _q4_1(data: Bytes) -> Numbers:
    return _half(data[:, :2]) * _nibbles(data[:, 4:]).astype(np.float32) + _half(data[:, 2:4])


def _q5_0(data: Bytes) -> Numbers:
    fives = _nibbles(data[:, 6:]) | (_bits(data[:, 2:6]) << np.uint8(4))
    return _half(data[:, :2]) * (fives.astype(np.float32) - 16)


def _q5_1(data: Bytes) -> Numbers:
    fives = _nibbles(data[:, 8:]) | (_bits(data[:, 4:8]) << np.uint8(4))
    return _half(data[:, :2]) * fives.astype(np.float32) + _half(data[:, 2:4])


def _q8_0(data: Bytes) -> Numbers:
    return np.ascontiguousarray(data[:, 2:]).view(np.int8).astype(np.float32) * _half(data[:, :2])


def _spread(scales: Numbers, numbers: NDArray[Any]) -> Numbers:
    """Multiply numbers with scales, each of as many as come to it."""
    count = len(numbers)
    found: Numbers = scales.reshape(count, -1, 1) * numbers.reshape(count, scales.shape[1], -1).astype(
        np.float32
    )
    return found.reshape(count, -1)


def _less(scaled: Numbers, least: Numbers) -> Numbers:
    """Take the least number of each group away."""
    count = len(scaled)
    return (scaled.reshape(count, least.shape[1], -1) - least.reshape(count, -1, 1)).reshape(count, -1)


def _q2_k(data: Bytes) -> Numbers:
    scales = data[:, :16]
    large, least = _half(data[:, 80:82]), _half(data[:, 82:84])
    twos = _shifted(data[:, 16:80], 32, 2, 3)
    scaled = _spread(large * (scales & np.uint8(15)).astype(np.float32), twos)
    return _less(scaled, least * (scales >> np.uint8(4)).astype(np.float32))


def _q3_k(data: Bytes) -> Numbers:
    high, low, packed = data[:, :32], data[:, 32:96], data[:, 96:108]
    fours = _nibbles(packed[:, :8])
    twos = _shifted(packed[:, 8:], 4, 2, 3)
    scales = (fours | (twos << np.uint8(4))).astype(np.float32) - 32
    threes = _shifted(low, 32, 2, 3).astype(np.float32) + 4 * _shifted(high, 32, 1, 1).astype(np.float32) - 4
    return _spread(_half(data[:, 108:110]) * scales, threes)


def _sixes(data: Bytes) -> tuple[Numbers, Numbers]:
    """Return eight scales and eight least numbers of six bits out of twelve bytes."""
    first, second, third = data[:, :4], data[:, 4:8], data[:, 8:]
    scales = [first & np.uint8(63), (third & np.uint8(15)) | ((first >> np.uint8(2)) & np.uint8(48))]
    least = [second & np.uint8(63), (third >> np.uint8(4)) | ((second >> np.uint8(2)) & np.uint8(48))]
    return (
        np.concatenate(scales, axis=1).astype(np.float32),
        np.concatenate(least, axis=1).astype(np.float32),
    )


def _q4_k(data: Bytes) -> Numbers:
    scales, least = _sixes(data[:, 4:16])
    scaled = _spread(_half(data[:, :2]) * scales, _shifted(data[:, 16:], 32, 4, 15))
    return _less(scaled, _half(data[:, 2:4]) * least)


def _q5_k(data: Bytes) -> Numbers:
    scales, least = _sixes(data[:, 4:16])
    fives = _shifted(data[:, 48:], 32, 4, 15) | (_shifted(data[:, 16:48], 32, 1, 1) << np.uint8(4))
    return _less(_spread(_half(data[:, :2]) * scales, fives), _half(data[:, 2:4]) * least)


def _q6_k(data: Bytes) -> Numbers:
    scales = np.ascontiguousarray(data[:, 192:208]).view(np.int8).astype(np.float32)
    sixes = _shifted(data[:, :128], 64, 4, 15) | (_shifted(data[:, 128:192], 32, 2, 3) << np.uint8(4))
    return _spread(_half(data[:, 208:210]) * scales, sixes.astype(np.float32) - 32)


def _iq4_nl(data: Bytes) -> Numbers:
    levels: Numbers = _IQ4[_nibbles(data[:, 2:])]
    return _half(data[:, :2]) * levels


def _iq4_xs(data: Bytes) -> Numbers:
    low, high = data[:, 4:8], np.ascontiguousarray(data[:, 2:4]).view("<u2")
    fours = np.stack([low & np.uint8(15), low >> np.uint8(4)], axis=-1).reshape(len(data), 8)
    twos = ((high >> np.arange(0, 16, 2, dtype=np.uint16)) & np.uint16(3)).astype(np.uint8)
    scales = (fours | (twos << np.uint8(4))).astype(np.float32) - 32
    return _spread(_half(data[:, :2]) * scales, _IQ4[_shifted(data[:, 8:], 16, 4, 15)])


def _threes(data: Bytes, digits: int) -> Bytes:
    """Return the digits of bytes in base 3, which are stored as fractions: those of all bytes at one place, then those at the next."""
    powers = np.array([1, 3, 9, 27, 81][:digits], np.uint8).reshape(1, -1, 1)
    moved: Bytes = data[:, None, :] * powers  # modulo 256
    return ((moved.astype(np.uint16) * 3) >> 8).astype(np.uint8).reshape(len(data), -1)


def _tq1_0(data: Bytes) -> Numbers:
    parts = [_threes(data[:, :32], 5), _threes(data[:, 32:48], 5), _threes(data[:, 48:52], 4)]
    return _half(data[:, 52:54]) * (np.concatenate(parts, axis=1).astype(np.float32) - np.float32(1))


def _nvfp4(data: Bytes) -> Numbers:
    scales, packed = _UE4M3[data[:, :4]], data[:, 4:].reshape(len(data), 4, 8)
    levels: Numbers = _E2M1[_nibbles(packed)]
    return (scales[:, :, None] * levels).reshape(len(data), -1)


def _tq2_0(data: Bytes) -> Numbers:
    return _half(data[:, 64:66]) * (_shifted(data[:, :64], 32, 2, 3).astype(np.float32) - np.float32(1))


def _mxfp4(data: Bytes) -> Numbers:
    scales = np.ldexp(np.float32(1), data[:, :1].astype(np.int32) - 128)
    return (scales * _E2M1[_nibbles(data[:, 1:])]).astype(np.float32)


DECODERS: Final[dict[str, Callable[[Bytes], Numbers]]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "IQ4_NL": _iq4_nl,
    "IQ4_XS": _iq4_xs,
    "TQ1_0": _tq1_0,
    "TQ2_0": _tq2_0,
    "MXFP4": _mxfp4,
    "NVFP4": _nvfp4,
}
"""By the name of the type."""

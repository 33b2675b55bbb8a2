"""A tensor beside another one plus an update, through any layout: cut into columns here, turned round and in another byte order there."""

from pathlib import Path

import numpy as np

from shardscope.engine.diffing.updates import Target, Update
from shardscope.engine.diffing.values import Comparing
from shardscope.engine.model.difference import Merge
from tests.convert.material import noise, opened, put, single
from tests.convert.test_copying import columns


def test_layouts_and_byte_orders_do_not_matter(tmp_path: Path) -> None:
    full, a, b = noise((256, 1024), "F32"), noise((4, 1024), "F32"), noise((256, 4), "F32")
    merged = (full + np.float32(0.5) * (b @ a)).astype("<f4")
    merged[200, 700] += 1
    base = columns(tmp_path, full, "F32", 4)
    turned = put(tmp_path, "turned", np.ascontiguousarray(merged.T).byteswap(), before=64, big=True)
    other = single("turned", "F32", full.shape, turned, strides=(1, 256))
    factors = [
        single(name, "F32", array.shape, put(tmp_path, name, array)) for name, array in (("b", b), ("a", a))
    ]
    target = Target((Update(0, factors[0], factors[1], turned=False, rank=4, scale=0.5),))
    with opened(tmp_path) as opener, Comparing(opener, 1 << 20) as comparing:
        found = comparing.merged(base, other, target)
        assert found.first is not None
        assert found.first.element == 200 * 1024 + 700
        told = found.merge(Merge((4,), (0.5,)))
        assert (told.verdict, told.beyond, told.visible) == ("differs", 1, 256 * 1024)
        assert found.figures().max_abs is not None
        assert abs((found.figures().max_abs or 0) - 1) < 1e-5

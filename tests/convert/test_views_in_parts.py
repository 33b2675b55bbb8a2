"""Parts of tensors that are stored with strides of their own: transposed and sliced views, cut anew in any way."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.convert.copies.contents import Contents
from shardscope.engine.convert.copies.segments import cuts
from shardscope.engine.convert.copies.tiles import Maker, prepared
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import FlatRange, TensorMap
from tests.convert.material import opened, put, single
from tests.geometry.trees import mesh_of


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    data=st.data(),
)
def test_a_stretch_of_a_view_is_that_stretch(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.integers(1, 2)) for _ in shape]
    storage = np.arange(1, 1 + int(np.prod([n * s for n, s in zip(shape, steps, strict=True)])), dtype="<u4")
    base = storage.reshape([shape[k] * steps[k] for k in order])
    view = base.transpose(np.argsort(order))[tuple(slice(None, None, step) for step in steps)]
    strides = tuple(stride // 4 for stride in view.strides)
    start = data.draw(st.integers(0, view.size - 1))
    stop = data.draw(st.integers(start + 1, view.size))
    whole = lower(TensorMap(view.shape, FlatRange("dp", (start,), (stop,))), mesh_of(dp=1))
    layout = Lowered(view.shape, whole.ranks)
    with tempfile.TemporaryDirectory() as folder:
        tensor = single("w", "U32", view.shape, put(Path(folder), "f", storage), strides=strides)
        made = np.full(4 * (stop - start), 0xEE, np.uint8)
        with opened(Path(folder)) as opener, Contents(opener, 1) as contents:
            Maker(contents, 1 << 16).fill(prepared(cuts(tensor, layout), "U32"), 0, len(made), made)

    assert np.array_equal(made.view("<u4"), view.reshape(-1)[start:stop])

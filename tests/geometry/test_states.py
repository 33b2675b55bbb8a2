"""The state of an optimizer lies where the parameter and the data-parallel partition put it."""

import msgspec
import numpy as np
import pytest

from shardscope.engine.geometry.constructors.states import derived
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.shardmap import Contiguous, Part, Replicate, Scale, SubParamConcat, TensorMap
from tests.geometry.layouts import mesh, noise, same


# R170
def test_a_state_is_a_stretch_of_the_parameters_shard() -> None:
    parameter = TensorMap((8, 10), Contiguous("tp", 1, (6, 4)), dtype="BF16")
    state = derived(parameter, "dp", (0, 17, 34), (17, 34, 51), dtype="F32")
    full = noise((8, 10))
    ranks = mesh(dp=3, tp=2)

    layout = lower(state, ranks)
    shards = {shard.rank: slice_(layout, full, shard.rank, kind="state") for shard in layout.ranks}

    for rank in range(6):
        position, column = divmod(rank, 2)
        held = np.zeros(51, "<u4")
        part = full[:, (0, 6)[column] : (6, 10)[column]].reshape(-1)
        held[: len(part)] = part
        assert same(shards[rank], held[17 * position : 17 * position + 17])
    assert same(assemble(layout, shards, kind="state"), full)
    assert (state.derived, state.dtype, state.mesh) == (True, "F32", "dense")
    assert not parameter.derived


# R170
def test_the_mark_is_in_the_document() -> None:
    state = derived(TensorMap((4,), Replicate()), "dp", (0, 2), (2, 4))

    text = msgspec.json.encode(state)

    assert msgspec.json.decode(text)["derived"] is True
    assert msgspec.json.decode(text, type=TensorMap) == state
    assert b"derived" not in msgspec.json.encode(TensorMap((4,), Replicate()))


# R179
def test_the_state_of_a_scaled_parameter_is_refused_wherever_the_factor_is() -> None:
    scaled = Scale(1, 4, of=Contiguous("tp", 0, (2, 2)))
    part = SubParamConcat(0, (Part(2, Replicate()), Part(2, Scale(2))))
    for node in (scaled, part, Contiguous("tp", 0, (2, 2), of=Scale(-1))):
        with pytest.raises(Fault) as caught:
            derived(TensorMap((4,), node), "dp", (0,), (4,))
        assert caught.value.finding.code == "map.scaled"
    assert derived(TensorMap((4,), Scale(3, 3)), "dp", (0,), (4,)).derived

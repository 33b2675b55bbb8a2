"""What is resharded to `dcp-safetensors`, loaded by PyTorch's own storage reader."""

from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.geometry.mapping.targets import Numbers
from tests.convert.reshards import aim, llama, resharded

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("numbers", "most"),
    [
        (Numbers(tp=2, dp=2, sharding="fsdp"), 1 << 40),
        (Numbers(dp=3, sharding="fsdp"), 4000),
        (Numbers(tp=4), 1 << 40),
    ],
)
def test_the_hugging_face_storage_reader_loads_every_tensor(
    tmp_path: Path, numbers: Numbers, most: int
) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageReader

    full = llama(tmp_path / "hf", vocabulary=32)
    resharded(tmp_path / "hf", tmp_path / "out", aim(numbers, layout="dcp-safetensors"), max_shard_bytes=most)

    state: dict[str, Any] = {name: torch.zeros(value.shape) for name, value in full.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(str(tmp_path / "out")), no_dist=True)

    for name, value in full.items():
        assert torch.equal(state[name], torch.from_numpy(value)), name

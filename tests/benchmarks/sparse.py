"""A checkpoint of a terabyte that is all holes, against the same headers on small files: the answer must not depend on size.

`python tests/benchmarks/sparse.py`: 200 shards of 500 tensors with an index and a configuration. In one folder every tensor
has its last dimensions as in a large model, 5 GB a shard; in the other each is a few bytes, so that the headers differ only in
numbers. Both are inspected as the command does it, digests `auto`, which hashes what is read whole anyway where all files
together are larger than `digest_bytes`: the limit is lowered for the small folder, so that both hash the same files. The bar is
1.2x.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import orjson
from tests.benchmarks.headers import write_index
from tests.benchmarks.pairs import measure

from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model.limits import Limits

FILES, TENSORS = 200, 500
BAR = 1.2
_CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}


def write(folder: Path, rows: int, columns: int) -> None:
    """Write the shards of a model whose tensors have `rows` by `columns` elements of two bytes, all of them holes."""
    size = rows * columns * 2
    paths = [folder / f"model-{i:05d}-of-{FILES:05d}.safetensors" for i in range(1, FILES + 1)]
    for number, path in enumerate(paths):
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        for i in range(TENSORS):
            header[f"model.layers.{number}.mlp.experts.{i}.up_proj.weight"] = {
                "dtype": "BF16",
                "shape": [rows, columns],
                "data_offsets": [i * size, (i + 1) * size],
            }
        text = orjson.dumps(header)
        text += b" " * (-len(text) % 8)
        with path.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + TENSORS * size)
    write_index(paths)
    (folder / "config.json").write_bytes(orjson.dumps(_CONFIG))


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        large, small = Path(one), Path(other)
        write(large, 1_280, 4_096)
        write(small, 1, 4)

        def answer(folder: Path, limits: Limits) -> Inspection:
            found = inspect(folder, limits=limits)
            assert found.descriptor.tensors.count == FILES * TENSORS
            hashed = [entry for entry in found.descriptor.source.entries if entry.digest.sha256]
            assert len(hashed) == 2, "the index and the configuration"
            return found

        size = answer(large, Limits()).descriptor.source.bytes
        assert size > 1_000_000_000_000
        result = measure(
            f"{size / 1e12:.2f} TB of holes by small files",
            lambda: answer(small, Limits(digest_bytes=1)),
            lambda: answer(large, Limits()),
            pairs=15,
            bar=BAR,
        )
    return int(result.median > BAR)


if __name__ == "__main__":
    sys.exit(main())

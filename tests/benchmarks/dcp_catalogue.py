"""The catalogue of a large distributed save, with maps and every check, against the opcode loop over its metadata alone.

`python tests/benchmarks/dcp_catalogue.py [RANKS TENSORS]`: 64 ranks of 2,000 tensors, 128,000 chunks, in 64 sparse data files. The
bar is 3x the time of the opcode loop, and 1 GiB at the most. Everything runs in one process, by its own processor time: what the
worker's pipe costs is measured in `isolation.py`.
"""

import gc
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.dcp_saves import Kind, write_save
from tests.formats.decoding import Found, decode

from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.parse.pickle_stream.machine import read_pickle
from shardscope.engine.parse.pickle_stream.state import Stream

BAR, MEMORY = 3.0, 1 << 30
_LAYER: tuple[tuple[str, Kind], ...] = (
    ("self_attn.q_proj.weight", ("bfloat16", (64, 256))),
    ("self_attn.k_proj.weight", ("bfloat16", (16, 256))),
    ("self_attn.v_proj.weight", ("bfloat16", (16, 256))),
    ("self_attn.o_proj.weight", ("bfloat16", (64, 256))),
    ("mlp.gate_proj.weight", ("bfloat16", (224, 64))),
    ("mlp.up_proj.weight", ("bfloat16", (224, 64))),
    ("mlp.down_proj.weight", ("bfloat16", (64, 224))),
    ("input_layernorm.weight", ("float32", (64,))),
    ("post_attention_layernorm.weight", ("float32", (64,))),
)


def names(count: int) -> dict[str, Kind]:
    """Return tensors named and shaped as those of a language model, the dimensions of one in thirty its own."""
    found: dict[str, Kind] = {}
    for number in range(count):
        layer, which = divmod(number, len(_LAYER))
        name, kind = _LAYER[which]
        if not number % 30:
            kind = (kind[0], (kind[1][0], 32 + number % 512))
        found[f"model.layers.{layer}.{name}"] = kind
    return found


def loop(data: bytes) -> None:
    """Read the opcodes and nothing more."""
    gc.disable()
    read_pickle(Stream(data, DecodeLimits()), 0)
    gc.enable()


def main() -> None:
    """Measure, print one line, and fail where a bar is missed."""
    ranks, tensors = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (64, 2_000)
    with tempfile.TemporaryDirectory(prefix="dcp-") as where:
        folder = Path(where) / "save"
        write_save(folder, names(tensors), ranks)
        data = (folder / ".metadata").read_bytes()
        ratios, found = [], None
        for _ in range(3):
            before = _seconds(lambda: loop(data))
            begin = time.process_time()
            found = decode(folder)
            took = time.process_time() - begin
            ratios.append((took / ((before + _seconds(lambda: loop(data))) / 2), took, before))
        assert isinstance(found, Found)
        assert not found.blockers, found.blockers
        assert sum(len(tensor.fragments) for tensor in found.tensors) == ranks * tensors
    ratio, took, alone = sorted(ratios)[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(
        f"{ranks * tensors:,} chunks: {took:.2f} s, opcode loop {alone:.2f} s, ratio {ratio:.2f} (bar {BAR}); "
        f"peak {peak >> 20:,} MiB with what made the save (bar {MEMORY >> 20:,})"
    )
    if ratio > BAR:
        raise SystemExit(1)


def _seconds(work: object) -> float:
    begin = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - begin


if __name__ == "__main__":
    main()

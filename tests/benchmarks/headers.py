"""Inspection of headers with every check, against the reference library opening the same files and listing them.

`python tests/benchmarks/headers.py`: 200 files of 500 tensors. The bar is 1.0x the time of the loop that opens each file with
`safetensors.safe_open` and asks for each tensor's dtype and shape; it is for the whole of `inspect(folder, digest="none")`. The
parser alone is measured too, and a folder with an index, where the reference reads that as JSON and compares nothing. Then the
memory of a million tensors in 1,000 files with an index (bar: 500 MB), and time and memory of the worst headers of
100,000,000 bytes.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import orjson
from tests.parse.readers import FileReader

from shardscope.engine.inspecting.inspection import inspect
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.safetensors import read_header

FILES, TENSORS = 200, 500
WORST = 100_000_000
_LAYER = (
    ("self_attn.q_proj.weight", [4096, 4096]),
    ("self_attn.k_proj.weight", [1024, 4096]),
    ("self_attn.v_proj.weight", [1024, 4096]),
    ("self_attn.o_proj.weight", [4096, 4096]),
    ("mlp.gate_proj.weight", [14336, 4096]),
    ("mlp.up_proj.weight", [14336, 4096]),
    ("mlp.down_proj.weight", [4096, 14336]),
    ("input_layernorm.weight", [4096]),
    ("post_attention_layernorm.weight", [4096]),
)


def write_shard(path: Path, number: int, tensors: int) -> None:
    """Write a sparse shard of `tensors` bf16 tensors, named and shaped as those of a language model."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for i in range(tensors):
        layer, which = divmod(i, len(_LAYER))
        name, shape = _LAYER[which]
        end = begin + 2
        for dimension in shape:
            end += (end - begin) * (dimension - 1)
        header[f"model.layers.{number * 100 + layer}.{name}"] = {
            "dtype": "BF16",
            "shape": shape,
            "data_offsets": [begin, end],
        }
        begin = end
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + begin)


def list_with_reference(paths: list[str]) -> int:
    """Open each file with the reference library and ask for every name, dtype and shape."""
    from safetensors import safe_open

    count = 0
    for path in paths:
        with safe_open(path, framework="np") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                piece = file.get_slice(name)
                piece.get_dtype()
                piece.get_shape()
                count += 1
    return count


def list_here(paths: list[str]) -> int:
    """Read the header of each file with every check."""
    limits = Limits()
    count = 0
    for path in paths:
        with FileReader(path) as reader:
            count += len(read_header(reader, limits).names)
    return count


def write_set(folder: str, files: int, tensors: int, *, index: bool) -> list[str]:
    """Write a sharded save into `folder` and return the paths of its shards."""
    paths = [Path(folder) / f"model-{i:05d}-of-{files:05d}.safetensors" for i in range(1, files + 1)]
    for i, path in enumerate(paths):
        write_shard(path, i, tensors)
    if index:
        write_index(paths)
    return list(map(str, paths))


def write_index(paths: list[Path]) -> None:
    """Write the index of some shards beside them."""
    weight_map, total = {}, 0
    for path in paths:
        with FileReader(str(path)) as reader:
            header = read_header(reader, Limits())
        weight_map.update(dict.fromkeys(header.names, path.name))
        total += header.data_end - header.data_begin
    document = {"metadata": {"total_size": total}, "weight_map": weight_map}
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    (paths[0].parent / "model.safetensors.index.json").write_bytes(text)


def inspect_here(folder: str) -> int:
    """Inspect the folder and return how many tensors it holds."""
    return inspect(folder, digest="none").descriptor.tensors.count or 0


def catalogue(folder: str) -> None:
    """Inspect `folder` and print how many tensors it holds and how much memory that took."""
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    count = inspect_here(folder)
    _report(f"{count:,} tensors inspected, with their index", start, base)


def write_worst(path: str, kind: str) -> None:
    """Write a file with a header of 100,000,000 bytes."""
    match kind:
        case "small tensors":
            parts, length, i = [], 1, 0
            while length < WORST - 70:
                part = b'"%d":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}' % (i, i, i + 1)
                parts.append(part)
                length += len(part) + 1
                i += 1
            text, size = b"{" + b",".join(parts) + b"}", i
            del parts
        case "one huge shape":
            text, size = (
                b'{"a":{"dtype":"U8","shape":[' + b"999," * 24_999_980 + b'1],"data_offsets":[0,8]}}',
                8,
            )
        case "nested lists":
            text, size = b'{"a":{"x":' + b"[" * 49_999_990 + b"]" * 49_999_990 + b"}}", 0
        case "flat lists":
            text, size = b'{"a":{"x":[' + b"[]," * 33_333_320 + b"[]]}}", 0
        case "one string":
            text, size = b'{"__metadata__":{"a":"' + b"\\n" * 49_999_980 + b'"}}', 0
        case "no end of a string":
            text, size = b'{"' + b'\\"' * 49_999_990, 0
        case "NUL":
            text, size = b"{}" + bytes(WORST - 2), 0
        case _:
            text, size = b"{}" + b" " * (WORST - 2), 0
    with Path(path).open("wb") as file:
        file.write(WORST.to_bytes(8, "little") + text.ljust(WORST))
        file.truncate(8 + WORST + size)


def one(path: str, kind: str) -> None:
    """Read one header and print its verdict."""
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    try:
        with FileReader(path) as reader:
            verdict = f"{len(read_header(reader, Limits()).names):,} tensors"
    except Fault as fault:
        verdict = fault.finding.code
    _report(f"100 MB of {kind}: {verdict}", start, base)


def _report(what: str, start: float, base: int) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{what}: {time.perf_counter() - start:.2f} s, {peak / 1024:.0f} MiB RSS ({base / 1024:.0f} before)",
        flush=True,
    )


WORST_KINDS = (
    *(
        "small tensors",
        "one huge shape",
        "nested lists",
        "flat lists",
        "one string",
        "no end of a string",
        "NUL",
        "spaces",
    ),
)


def ratios() -> None:
    """Measure against the reference."""
    from tests.benchmarks.pairs import measure

    with tempfile.TemporaryDirectory() as folder:
        names = write_set(folder, FILES, TENSORS, index=False)
        assert inspect_here(folder) == list_here(names) == list_with_reference(names) == FILES * TENSORS
        measure(
            f"headers of {FILES} files x {TENSORS} tensors",
            lambda: list_with_reference(names),
            lambda: list_here(names),
        )
        measure(
            f"inspection of {FILES} files x {TENSORS} tensors",
            lambda: list_with_reference(names),
            lambda: inspect_here(folder),
            pairs=25,
            bar=1.0,
        )
        write_index([Path(name) for name in names])
        index = Path(folder) / "model.safetensors.index.json"
        measure(
            "the same with an index",
            lambda: (json.loads(index.read_bytes()), list_with_reference(names)),
            lambda: inspect_here(folder),
            pairs=25,
        )


def main() -> None:
    """Measure everything, each in a process of its own: a peak of memory is inherited."""
    subprocess.run([sys.executable, __file__, "--ratios"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, "--set", folder], check=True)
        subprocess.run([sys.executable, __file__, "--catalogue", folder], check=True)
    with tempfile.NamedTemporaryFile() as file:
        for kind in WORST_KINDS:
            subprocess.run([sys.executable, __file__, "--write", file.name, kind], check=True)
            subprocess.run([sys.executable, __file__, "--one", file.name, kind], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--ratios"]:
            ratios()
        case ["--set", folder]:
            write_set(folder, 1_000, 1_000, index=True)
        case ["--catalogue", folder]:
            catalogue(folder)
        case ["--write", path, kind]:
            write_worst(path, kind)
        case ["--one", path, kind]:
            one(path, kind)
        case _:
            main()

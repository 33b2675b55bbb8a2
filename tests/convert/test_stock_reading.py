"""What is written is read by the format's own library in an interpreter that has none of our code. `make test-producers` loads it
in transformers, logits and all (tests/producers/test_convert_transformers.py)."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from shardscope.app.main import main

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"

READER = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from safetensors import safe_open
folder = Path(sys.argv[1])
config = json.loads((folder / "config.json").read_text())
index = folder / "model.safetensors.index.json"
names = json.loads(index.read_text())["weight_map"] if index.exists() else None
files = sorted(set(names.values())) if names else ["model.safetensors"]
found = {}
for file in files:
    with safe_open(str(folder / file), framework="np") as opened:
        assert (opened.metadata() or {}).get("format") == "pt", "the loader asks for it"
        for name in opened.keys():
            assert names is None or names[name] == file, name
            found[name] = [str(opened.get_slice(name).get_dtype()), list(opened.get_slice(name).get_shape())]
assert names is None or set(names) == set(found)
assert not [name for name in sys.modules if name.partition(".")[0] == "shardscope"], "none of our code"
print(json.dumps({"tensors": found, "model_type": config["model_type"]}))
"""


# R089
@pytest.mark.parametrize("size", ["20KB", "5GB"], ids=["sharded", "single"])
def test_an_output_is_read_by_the_library_of_the_format_alone(tmp_path: Path, size: str) -> None:
    source = FIXTURES / "hf/llama_sharded"
    assert (
        main(
            [
                "convert",
                str(source / "checkpoint"),
                str(tmp_path / "out"),
                "--yes",
                "--quiet",
                "--max-shard-size",
                size,
            ]
        )
        == 0
    )

    read = subprocess.run(
        [sys.executable, "-I", "-S", "-c", READER, str(tmp_path / "out"), sysconfig.get_path("purelib")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    raw = (source / "expected.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    wanted = {
        name: [entry["dtype"], entry["shape"]] for name, entry in header.items() if name != "__metadata__"
    }
    assert json.loads(read.stdout) == {"tensors": wanted, "model_type": "llama"}
    assert (tmp_path / "out/model.safetensors.index.json").exists() is (size == "20KB")

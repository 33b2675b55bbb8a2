"""What shardscope fixes, transformers and PEFT load like the original: same names, same numbers, to the last bit."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.producers import peers

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

MODELS = (
    "gpt2_tied_sharded",
    "llama_sharded",
    "llama_single_bf16",
    "llama_tied_sharded",
    "mixtral_moe_sharded",
)
OPERATIONS = {
    "merge": ("--what", "merge"),
    "split": ("--what", "split", "--max-shard-size", "20KB"),
    "metadata": ("--what", "metadata", "--strip-metadata", "--set", "run=17"),
}


def logits(folder: Path) -> Any:
    """Return the logits of some tokens; a name that is missing or of another shape fails."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not info["mismatched_keys"]
    assert not info["missing_keys"]
    tokens = torch.arange(2, 26).reshape(2, 12) % model.config.vocab_size
    with torch.no_grad():
        return model.eval()(tokens).logits


def fixed(source: Path, out: Path, *options: str) -> None:
    said = peers.shardscope("fix", source, out, "--yes", *options)
    assert said.exit == 0, said.text


# R089
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_original(name: str, operation: str, tmp_path: Path) -> None:
    source = peers.source(f"hf/{name}")
    if operation == "merge" and len(list(source.glob("*.safetensors"))) == 1:
        pytest.skip("it is one file")
    fixed(source, tmp_path / "out", *OPERATIONS[operation])

    assert torch.equal(logits(tmp_path / "out"), logits(source))


def test_what_a_loader_fills_with_random_numbers_is_loaded_once_it_is_fixed(tmp_path: Path) -> None:
    source = Path(shutil.copytree(peers.source("hf/llama_sharded"), tmp_path / "in"))
    want = logits(source)
    index = source / "model.safetensors.index.json"
    stale = json.loads(index.read_text())
    stale["weight_map"] = dict.fromkeys(stale["weight_map"], "model-00001-of-00010.safetensors")
    index.write_text(json.dumps(stale))
    with (source / "model-00002-of-00010.safetensors").open("ab") as shard:
        shard.write(b"more than the header says")
    with pytest.raises(AssertionError, match=r"mlp\.up_proj"):
        logits(source)
    fixed(source, tmp_path / "out")

    assert torch.equal(logits(tmp_path / "out"), want)
    names = [path.name for path in source.glob("*.safetensors") if "00002" not in path.name]
    assert all((tmp_path / "out" / name).read_bytes() == (source / name).read_bytes() for name in names)


def test_an_adapter_is_loaded_under_its_names(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    source = peers.source("peft/lora_llama")
    fixed(source, tmp_path / "out", "--what", "metadata", "--set", "run=17")

    one, two = (peft.utils.load_peft_weights(str(folder)) for folder in (source, tmp_path / "out"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)

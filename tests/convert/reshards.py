"""Small models to cut anew, and what their ranks hold."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from shardscope.engine import materialize, prepare
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.converting.resharding import Aim, prepare_reshard
from shardscope.engine.geometry.mapping.targets import Numbers
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.plan import PlanOptions, RankLayout
from shardscope.engine.shardmaps.reading import ShardMaps

Arrays = dict[str, NDArray[Any]]
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def llama(
    folder: Path,
    *,
    layers: int = 2,
    heads: int = 8,
    groups: int = 4,
    size: int = 2,
    ffn: int = 24,
    vocabulary: int = 30,
    tied: bool = False,
    seed: int = 0,
) -> Arrays:
    """Write a small Llama, as transformers saves one, and return its tensors."""
    random = np.random.default_rng(seed)
    hidden = heads * size

    def made(*shape: int) -> NDArray[Any]:
        return random.standard_normal(shape, dtype=np.float32)

    found: Arrays = {"model.embed_tokens.weight": made(vocabulary, hidden), "model.norm.weight": made(hidden)}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        found |= {
            at + "self_attn.q_proj.weight": made(heads * size, hidden),
            at + "self_attn.k_proj.weight": made(groups * size, hidden),
            at + "self_attn.v_proj.weight": made(groups * size, hidden),
            at + "self_attn.o_proj.weight": made(hidden, heads * size),
            at + "mlp.gate_proj.weight": made(ffn, hidden),
            at + "mlp.up_proj.weight": made(ffn, hidden),
            at + "mlp.down_proj.weight": made(hidden, ffn),
            at + "input_layernorm.weight": made(hidden),
            at + "post_attention_layernorm.weight": made(hidden),
        }
    if not tied:
        found["lm_head.weight"] = made(vocabulary, hidden)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "num_hidden_layers": layers,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(found, folder / "model.safetensors", {"format": "pt"})
    return found


def aim(numbers: Numbers | None = None, maps: ShardMaps | None = None, **more: Any) -> Aim:
    layout: RankLayout = more.pop("layout", "ranks")
    return Aim(layout, maps, numbers, more.pop("cuts", None))


def planned(source: Path, aimed: Aim, *, decode: bool = False, **options: Any) -> Prepared:
    decoding = Decoding(Intent("convert", "command line"), "all") if decode else None
    return prepare_reshard(source, PlanOptions(**{"verify": "full", **options}), aimed, decoding=decoding)


def resharded(source: Path, target: Path, aimed: Aim, **options: Any) -> Converted:
    return materialize(source, target, planned(source, aimed, **options), confirm=lambda _: True)


def whole(source: Path, target: Path, **options: Any) -> Arrays:
    """Convert to whole tensors, and return them."""
    options = {"max_shard_bytes": 1 << 40, **options}
    materialize(source, target, prepare(source, PlanOptions(**options)), confirm=lambda _: True)
    return load_file(target / "model.safetensors")


def ranks_of(folder: Path) -> dict[int, Arrays]:
    """Return what each rank's file holds."""
    return {int(path.stem.partition("-")[2]): load_file(path) for path in folder.glob("rank-*.safetensors")}


def assert_equal(found: Mapping[str, NDArray[Any]], truth: Mapping[str, NDArray[Any]]) -> None:
    assert found.keys() == truth.keys()
    for name, value in truth.items():
        assert found[name].shape == value.shape, name
        assert found[name].dtype == value.dtype, name
        assert found[name].tobytes() == value.tobytes(), name


def header_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return found

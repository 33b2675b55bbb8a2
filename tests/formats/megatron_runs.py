"""Small Megatron-LM runs, written rank by rank from whole tensors with numpy alone: what decoding has to find again."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import msgspec
import numpy as np

from tests.formats.saved import save

Arrays = dict[str, np.ndarray]


class Run(msgspec.Struct):
    """What a run was given."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    vpp: int = 1
    layers: int = 4
    heads: int = 4
    groups: int = 2
    head_size: int = 4
    ffn: int = 12
    vocabulary: int = 24
    experts: int = 0
    gated: bool = True
    tied: bool = False
    bias: bool = False
    version: float | None = 3.0

    @property
    def hidden(self) -> int:
        return self.heads * self.head_size

    def args(self, **more: object) -> Namespace:
        """Return the arguments as Megatron-LM saves them, private paths among them."""
        values: dict[str, object] = {
            "num_layers": self.layers,
            "hidden_size": self.hidden,
            "ffn_hidden_size": self.ffn,
            "num_attention_heads": self.heads,
            "group_query_attention": self.groups != self.heads,
            "num_query_groups": self.groups,
            "kv_channels": self.head_size,
            "normalization": "RMSNorm" if self.gated else "LayerNorm",
            "position_embedding_type": "rope" if self.gated else "learned_absolute",
            "swiglu": self.gated,
            "untie_embeddings_and_output_weights": not self.tied,
            "padded_vocab_size": self.vocabulary,
            "vocab_size": None,
            "tensor_model_parallel_size": self.tp,
            "pipeline_model_parallel_size": self.pp,
            "expert_model_parallel_size": self.ep,
            "virtual_pipeline_model_parallel_size": self.vpp if self.vpp > 1 else None,
            "num_experts": self.experts or None,
            "data_parallel_size": 1,
            "consumed_train_samples": 80,
            "load": "/home/someone/private/run-7",
            "data_path": ["/mnt/secret/corpus"],
        }
        return Namespace(**(values | more))


def model(run: Run, seed: int = 1) -> Arrays:
    """Return the whole tensors in Megatron Core's names and order."""
    random = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    rows = (run.heads + 2 * run.groups) * run.head_size
    found: Arrays = {"embedding.word_embeddings.weight": some(run.vocabulary, run.hidden)}
    for layer in range(run.layers):
        name = f"decoder.layers.{layer}."
        found[name + "self_attention.linear_qkv.weight"] = some(rows, run.hidden)
        found[name + "self_attention.linear_proj.weight"] = some(run.hidden, run.hidden)
        found[name + "input_layernorm.weight"] = some(run.hidden)
        found[name + "pre_mlp_layernorm.weight"] = some(run.hidden)
        first = run.ffn * (2 if run.gated else 1)
        if run.experts:
            found[name + "mlp.router.weight"] = some(run.experts, run.hidden)
            for expert in range(run.experts):
                at = f"{name}mlp.experts.local_experts.{expert}."
                found[at + "linear_fc1.weight"] = some(first, run.hidden)
                found[at + "linear_fc2.weight"] = some(run.hidden, run.ffn)
        else:
            found[name + "mlp.linear_fc1.weight"] = some(first, run.hidden)
            found[name + "mlp.linear_fc2.weight"] = some(run.hidden, run.ffn)
        if run.bias:
            found[name + "self_attention.linear_qkv.bias"] = some(rows)
            found[name + "self_attention.linear_proj.bias"] = some(run.hidden)
    found["decoder.final_layernorm.weight"] = some(run.hidden)
    found["output_layer.weight"] = (
        found["embedding.word_embeddings.weight"] if run.tied else some(run.vocabulary, run.hidden)
    )
    return found


def cut(name: str, whole: np.ndarray, tp: int, ranks: int, *, gated: bool) -> np.ndarray:
    """Return the slice of a rank, as Megatron-LM's layers make it."""
    if "linear_fc1" in name and gated:
        gate, up = np.split(whole, 2)
        return np.concatenate([np.split(gate, ranks)[tp], np.split(up, ranks)[tp]])
    if name.endswith(("linear_proj.weight", "linear_fc2.weight")):
        return np.split(whole, ranks, axis=1)[tp]
    if (
        "linear_qkv" in name
        or "linear_fc1" in name
        or "word_embeddings" in name
        or name == "output_layer.weight"
    ):
        return np.split(whole, ranks)[tp]
    return whole


def write(
    root: Path,
    run: Run,
    whole: Mapping[str, np.ndarray],
    *,
    stages: list[list[int]] | None = None,
    change: Callable[[tuple[int, int, int], dict[str, object]], object] = lambda at, content: None,
) -> None:
    """Write every rank file of a run. `stages` lists the layers of each stage, all of the first virtual round before the next."""
    each = run.layers // (run.pp * run.vpp)
    stages = stages or [list(range(at * each, at * each + each)) for at in range(run.pp * run.vpp)]
    for pp in range(run.pp):
        for ep in range(run.ep):
            for tp in range(run.tp):
                parts = [
                    _part(run, whole, stages[turn * run.pp + pp], (tp, pp, ep), turn)
                    for turn in range(run.vpp)
                ]
                content: dict[str, object] = {"args": run.args(), "iteration": 10}
                if run.version is not None:
                    content["checkpoint_version"] = run.version
                for turn, part in enumerate(parts):
                    content["model" if run.vpp == 1 else f"model{turn}"] = part
                change((tp, pp, ep), content)
                name = f"mp_rank_{tp:02d}"
                name += f"_{pp:03d}" if run.pp > 1 else ""
                name += f"_{ep:03d}" if run.ep > 1 else ""
                save(root / "iter_0000010" / name / "model_optim_rng.pt", content)
    (root / "latest_checkpointed_iteration.txt").write_text("10")


def _part(
    run: Run, whole: Mapping[str, np.ndarray], layers: list[int], at: tuple[int, int, int], turn: int
) -> dict[str, object]:
    tp, pp, ep = at
    first, last = pp == 0 and turn == 0, pp == run.pp - 1 and turn == run.vpp - 1
    each = run.experts // run.ep if run.experts else 0
    found: dict[str, object] = {}
    for name, tensor in whole.items():
        words = name.split(".")
        if words[0] == "decoder" and words[1] == "layers":
            if int(words[2]) not in layers:
                continue
            words[2] = str(layers.index(int(words[2])))
            if "local_experts" in words:
                expert = int(words[6])
                if expert // each != ep:
                    continue
                words[6] = str(expert % each)
        elif words[0] == "embedding":
            if not first:
                continue
        elif not last or (run.tied and run.pp == 1 and words[0] == "output_layer"):
            continue
        found[".".join(words)] = cut(name, tensor, tp, run.tp, gated=run.gated)
    if layers:
        found["decoder.layers.0.mlp.linear_fc1._extra_state"] = BytesIO()
        found["decoder.layers.0.mlp.linear_fc2._extra_state"] = None
    return found

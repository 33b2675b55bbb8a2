"""Shapes that a configuration asks for, as data: what each dimension of a named weight is.

Names are those of transformers' models, of Meta's and Mistral's releases and of llama.cpp; the part before the number of a layer does not
count. A dimension is a sum of products of sizes. Where architectures give one name to different weights, each reading stands here, and a
weight contradicts a configuration only where none of them fits.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from shardscope.engine.model.anatomy import Sizes

Dims = tuple[str, ...]

_Q, _K, _V, _O = "q", "kv*head", "kv*value", "heads*out"
_QKV: Final = "heads*head+kv*head+kv*value"
_T5: Final = ("SelfAttention", "EncDecAttention")

_HEADS: Final = ("lm_head.weight", "embed_out.weight", "output.weight")
_EMBEDDINGS: Final = (
    *(
        "embed_tokens.weight",
        "wte.weight",
        "word_embeddings.weight",
        "embed_in.weight",
        "tok_embeddings.weight",
    ),
    *("token_embd.weight", "shared.weight", "embeddings.weight", "token_embedding.weight"),
)

TOP: Final[dict[str, tuple[Dims, ...]]] = {
    **dict.fromkeys(_HEADS, (("vocab", "width"),)),
    **dict.fromkeys(_EMBEDDINGS, (("words", "width"),)),
}
"""By the last two parts of a name that has no number: embeddings and output heads."""

LAYER: Final[dict[str, tuple[Dims, ...]]] = {
    # transformers: Llama and what is built like it
    "self_attn.q_proj.weight": ((_Q, "hidden"),),
    "self_attn.k_proj.weight": ((_K, "hidden"),),
    "self_attn.v_proj.weight": ((_V, "hidden"),),
    "self_attn.o_proj.weight": (("hidden", _O),),
    "self_attn.qkv_proj.weight": ((_QKV, "hidden"), ("3*heads*head", "hidden")),
    "self_attn.dense.weight": (("hidden", _O),),
    "self_attn.query_key_value.weight": ((_QKV, "hidden"),),
    "mlp.gate_proj.weight": (("inter", "hidden"),),
    "mlp.up_proj.weight": (("inter", "hidden"),),
    "mlp.down_proj.weight": (("hidden", "inter"),),
    "mlp.gate_up_proj.weight": (("2*inter", "hidden"),),
    # latent attention: DeepSeek
    "self_attn.q_a_proj.weight": (("qrank", "hidden"),),
    "self_attn.q_b_proj.weight": (("heads*head", "qrank"), ("heads*head+heads*value", "2*qrank")),
    "self_attn.kv_a_proj_with_mqa.weight": (("latent+rope", "hidden"),),
    "self_attn.kv_b_proj.weight": (("heads*plain+heads*value", "latent"),),
    # experts
    "mlp.gate.weight": (("routed", "hidden"),),
    "mlp.router.weight": (("routed", "hidden"),),
    "mlp.experts.*.gate_proj.weight": (("einter", "hidden"),),
    "mlp.experts.*.up_proj.weight": (("einter", "hidden"),),
    "mlp.experts.*.down_proj.weight": (("hidden", "einter"),),
    "mlp.experts.gate_up_proj": (("experts", "hidden", "2*einter"), ("experts", "2*einter", "hidden")),
    "mlp.experts.down_proj": (("experts", "einter", "hidden"), ("experts", "hidden", "einter")),
    "block_sparse_moe.gate.weight": (("experts", "hidden"),),
    "block_sparse_moe.experts.*.w1.weight": (("einter", "hidden"),),
    "block_sparse_moe.experts.*.w3.weight": (("einter", "hidden"),),
    "block_sparse_moe.experts.*.w2.weight": (("hidden", "einter"),),
    # GPT-2 keeps inputs first; GPT-BigCode does not
    "attn.c_attn.weight": (("hidden", "3*hidden"), (_QKV, "hidden")),
    "attn.c_proj.weight": (("hidden", "hidden"),),
    "mlp.c_fc.weight": (("hidden", "inter"), ("inter", "hidden")),
    "mlp.c_proj.weight": (("inter", "hidden"), ("hidden", "inter")),
    # GPT-J, CodeGen, GPT-Neo
    "attn.q_proj.weight": (("hidden", "hidden"),),
    "attn.k_proj.weight": (("hidden", "hidden"),),
    "attn.v_proj.weight": (("hidden", "hidden"),),
    "attn.out_proj.weight": (("hidden", "hidden"),),
    "attn.attention.q_proj.weight": ((_Q, "hidden"),),
    "attn.attention.k_proj.weight": ((_K, "hidden"),),
    "attn.attention.v_proj.weight": ((_V, "hidden"),),
    "attn.attention.out_proj.weight": (("hidden", _O),),
    "mlp.fc_in.weight": (("inter", "hidden"),),
    "mlp.fc_out.weight": (("hidden", "inter"),),
    # GPT-NeoX, Falcon, BLOOM
    "attention.query_key_value.weight": ((_QKV, "hidden"),),
    "self_attention.query_key_value.weight": ((_QKV, "hidden"),),
    "attention.dense.weight": (("hidden", _O),),
    "self_attention.dense.weight": (("hidden", _O),),
    "mlp.dense_h_to_4h.weight": (("inter", "hidden"), ("4*hidden", "hidden"), ("2*inter", "hidden")),
    "mlp.dense_4h_to_h.weight": (("hidden", "inter"), ("hidden", "4*hidden")),
    # BERT and its like
    "attention.self.query.weight": (("hidden", "hidden"),),
    "attention.self.key.weight": (("hidden", "hidden"),),
    "attention.self.value.weight": (("hidden", "hidden"),),
    "attention.output.dense.weight": (("hidden", "hidden"),),
    "intermediate.dense.weight": (("inter", "hidden"),),
    "output.dense.weight": (("hidden", "inter"),),
    "attention.self.query_proj.weight": (("hidden", "hidden"),),
    "attention.self.key_proj.weight": (("hidden", "hidden"),),
    "attention.self.value_proj.weight": (("hidden", "hidden"),),
    "attention.q_lin.weight": (("hidden", "hidden"),),
    "attention.k_lin.weight": (("hidden", "hidden"),),
    "attention.v_lin.weight": (("hidden", "hidden"),),
    "attention.out_lin.weight": (("hidden", "hidden"),),
    "ffn.lin1.weight": (("inter", "hidden"),),
    "ffn.lin2.weight": (("hidden", "inter"),),
    # OPT, BART, Whisper; CLIP
    "self_attn.out_proj.weight": (("hidden", "hidden"),),
    "fc1.weight": (("inter", "hidden"),),
    "fc2.weight": (("hidden", "inter"),),
    "mlp.fc1.weight": (("inter", "hidden"), ("2*inter", "hidden")),
    "mlp.fc2.weight": (("hidden", "inter"), ("hidden", "half")),
    # T5
    **{
        f"layer.*.{attention}.{part}.weight": (("heads*head", "hidden"),)
        for attention in _T5
        for part in "qkv"
    },
    **{f"layer.*.{attention}.o.weight": (("hidden", "heads*head"),) for attention in _T5},
    "layer.*.DenseReluDense.wi.weight": (("inter", "hidden"),),
    "layer.*.DenseReluDense.wi_0.weight": (("inter", "hidden"),),
    "layer.*.DenseReluDense.wi_1.weight": (("inter", "hidden"),),
    "layer.*.DenseReluDense.wo.weight": (("hidden", "inter"),),
    # Meta, Mistral
    "attention.wq.weight": ((_Q, "hidden"),),
    "attention.wk.weight": ((_K, "hidden"),),
    "attention.wv.weight": ((_V, "hidden"),),
    "attention.wo.weight": (("hidden", _O),),
    "feed_forward.w1.weight": (("inter", "hidden"),),
    "feed_forward.w3.weight": (("inter", "hidden"),),
    "feed_forward.w2.weight": (("hidden", "inter"),),
    # llama.cpp
    "attn_q.weight": ((_Q, "hidden"), ("heads*head", "qrank")),
    "attn_k.weight": ((_K, "hidden"),),
    "attn_v.weight": ((_V, "hidden"),),
    "attn_output.weight": (("hidden", _O),),
    "attn_qkv.weight": ((_QKV, "hidden"),),
    "ffn_gate.weight": (("inter", "hidden"),),
    "ffn_up.weight": (("inter", "hidden"), ("2*inter", "hidden")),
    "ffn_down.weight": (("hidden", "inter"),),
    "ffn_gate_inp.weight": (("experts", "hidden"),),
    "ffn_gate_exps.weight": (("experts", "einter", "hidden"),),
    "ffn_up_exps.weight": (("experts", "einter", "hidden"),),
    "ffn_down_exps.weight": (("experts", "hidden", "einter"),),
}
"""By what follows the number of the layer, with further numbers taken out."""

STACKS: Final = frozenset(
    {
        "layers",
        "model.layers",
        "model.decoder.layers",
        "decoder.layers",
        "model.language_model.layers",
        "language_model.model.layers",
        "language_model.layers",
        "transformer.h",
        "h",
        "transformer.layers",
        "transformer.blocks",
        "gpt_neox.layers",
        "encoder.layer",
        *(
            f"{name}.encoder.layer"
            for name in ("bert", "roberta", "electra", "deberta", "mpnet", "esm", "ernie", "vit")
        ),
        "distilbert.transformer.layer",
        "transformer.layer",
        "text_model.encoder.layers",
        "decoder.block",
        "backbone.layers",
        "biogpt.layers",
        "rwkv.blocks",
        "blk",
    }
)
"""Prefixes under which the layers stand that a configuration counts."""


class Seen(Struct, frozen=True):
    """A size that shows in one dimension of a weight."""

    fact: str
    rest: str
    """As in `TOP` and `LAYER`."""
    dim: int
    """-1 for the one that is not the hidden size: some classes keep inputs first, some outputs."""
    per: str | None = None
    """The size that the dimension is divided by."""


SEEN: Final = (
    *(Seen("vocabulary", rest, 0) for rest in TOP),
    *(Seen("hidden size", rest, 1) for rest in TOP),
    *(
        Seen("hidden size", rest, 1)
        for rest in (
            "self_attn.q_proj.weight",
            "attention.self.query.weight",
            "attention.self.query_proj.weight",
        )
    ),
    *(
        Seen("attention heads", rest, 0, "head")
        for rest in (
            *(
                "self_attn.q_proj.weight",
                "attention.wq.weight",
                "attn_q.weight",
                "layer.*.SelfAttention.q.weight",
            ),
            *("attention.self.query.weight", "attention.self.query_proj.weight", "attention.q_lin.weight"),
        )
    ),
    *(
        Seen("key and value heads", rest, 0, "head")
        for rest in ("self_attn.k_proj.weight", "attention.wk.weight", "attn_k.weight")
    ),
    *(
        Seen("feed-forward size", rest, 0)
        for rest in (
            *("mlp.gate_proj.weight", "mlp.up_proj.weight", "intermediate.dense.weight", "fc1.weight"),
            *(
                "feed_forward.w1.weight",
                "ffn_gate.weight",
                "ffn_up.weight",
                "mlp.fc_in.weight",
                "ffn.lin1.weight",
                "layer.*.DenseReluDense.wi.weight",
                "layer.*.DenseReluDense.wi_0.weight",
            ),
            "mlp.dense_h_to_4h.weight",
        )
    ),
    Seen("feed-forward size", "mlp.c_fc.weight", -1),
    Seen("feed-forward size", "mlp.down_proj.weight", 1),
    *(
        Seen("expert size", rest, 0)
        for rest in (
            *("mlp.experts.*.gate_proj.weight", "mlp.experts.*.up_proj.weight"),
            "block_sparse_moe.experts.*.w1.weight",
        )
    ),
    Seen("expert size", "ffn_gate_exps.weight", 1),
    *(
        Seen("experts", rest, 0)
        for rest in (
            *("mlp.gate.weight", "mlp.router.weight", "block_sparse_moe.gate.weight", "ffn_gate_inp.weight"),
            *("mlp.experts.gate_up_proj", "ffn_gate_exps.weight"),
        )
    ),
)
"""Where each size is read off, the first place that is there."""


def named(sizes: Sizes) -> dict[str, int | None]:
    """Return the sizes under the names that rules use."""
    query, kv_heads, words, routed = None, sizes.kv_heads, sizes.vocabulary, sizes.experts
    out = sizes.value_head
    if sizes.heads is not None and sizes.head is not None:
        query = sizes.heads * sizes.head * (2 if sizes.gated_queries else 1)
    if sizes.latent_rank is not None and sizes.linear_layers:
        query = kv_heads = out = None  # layers of linear attention have sizes of their own under these names
    return {
        "hidden": sizes.hidden,
        "heads": sizes.heads,
        "kv": kv_heads,
        "head": sizes.head,
        "value": sizes.value_head,
        "out": out,
        "q": query,
        "inter": sizes.intermediate,
        "half": None if sizes.intermediate is None else sizes.intermediate // 2,
        "einter": sizes.expert_intermediate,
        "experts": sizes.experts,
        "routed": None if routed is None else routed + sizes.further_experts,
        "vocab": sizes.vocabulary,
        "words": None if words is None else words + sizes.further_words,
        "width": sizes.embedding or sizes.hidden,
        "qrank": sizes.query_rank,
        "latent": sizes.latent_rank,
        "rope": sizes.rope_head,
        "plain": sizes.plain_head,
    }


def value_of(expression: str, sizes: Mapping[str, int | None]) -> int | None:
    """Return what a sum of products comes to; null where one of its sizes is not known."""
    total = 0
    for term in expression.split("+"):
        product = 1
        for factor in term.split("*"):
            size = int(factor) if factor.isdigit() else sizes[factor]
            if size is None:
                return None
            product *= size
        total += product
    return total

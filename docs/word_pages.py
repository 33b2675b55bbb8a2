"""The closed vocabulary of reports: every word that the engine's own sentences, tables and naming schemes are made of."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ENGINE = Path(__file__).resolve().parent.parent / "engine" / "shardscope" / "engine"
EXCLUDED = ("secret_rules.py", "secrets.py", "openat2.py", "libseccomp.py")
"""What these say is about secrets and the kernel: no word of a checkpoint."""

PUBLIC = """
accelerate adapter albert alibi amax attention audio bamba bart base bert bias bigcode bitnet blip block bloom blt c4ai
causal chameleon chat chatglm clip codegen code coder cogvlm cohere command config conditional conv convnext cross dbrx
deberta decoder deepseek deit diffusers diffusion dinov distil distilbert dpt dropout electra embed embedding encoder
ernie ernie4 esm exaone expert experts falcon ffn final flan florence flux for fp8 fsdp fuyu gate gelu gemma generation
git glm gpt gptj gptneo gptneox granite gqa grok groupvit head helium hubert hunyuan idefics image instruct internlm
internvl jamba janus jetmoe kimi kosmos kv layer layernorm layers led lfm lightning llama llava lm lmhead longformer lora
ls ltx luke m2m mamba marian masked mask mbart megatron minicpm minimax ministral mistral mixtral mllama mlp mobile mobilebert
model modernbert moe molmo moonshot mpt mt5 multi musicgen nemotron neo neox nllb norm olmo olmoe omni openai opt ovis
owlvit paligemma patch pegasus perceiver persimmon phi phimoe pixtral plbart pooler position post pre pretrained proj
projector prompt prophetnet qwen reasoning recurrent reformer regression relu resnet retnet reward rms roberta rope router
rotary rwkv safe scale sdpa seamless segformer sentence seq2seq sequence siglip silu small smollm solar speech stable
stablelm starcoder step swiglu swin switch t5 tapas text timesformer tiny token tokens tower transformer transformers tts
tulu umt5 unet unet2d unit up vae value video vila vilt vision visual vit vl vlm vocab voxtral wav2vec2 whisper window
xglm xlm xlnet xlstm xverse yi yolos zamba zero
added all args best bin bf16 cache checkpoint chat_template ckpt common consolidated data dataset dist distcp dtype ema epoch
events extra fold fp fp16 fp32 fp4 generation_config global gguf ggml ignore index init int4 int8 iter json jsonl last latest
license log logs main md merges metadata mp optim optimizer original params part pickle pipeline pkl plan preprocessor
processor pt pth py pyproject rank readme release requirements results rng sampler scaler scheduler shard special spiece
state states tag tar template tfevents tmp tokenizer toml tracker trainer training txt universal vocab weights world yaml yml
zst
down gate in out input output self attn mixer ssm dt a_log conv1d o q k v w wq wk wv wo wte wpe ln c fc qkv dense h b bias key
query value values keys sin cos inv freq running mean var num batches tracked alpha beta gamma lora_a lora_b magnitude vector
exp avg sq exp_avg exp_avg_sq moment momentum master param group groups lr betas eps decay weight found inf
class classes method entry file files folder byte bytes
linux windows darwin x86_64 aarch64 arm64 python torch deepspeed core
""".split()  # noqa: SIM905 - one word after another is easier to keep
"""Public model families, words of class names, and of file and tensor names in common use."""


def sentences(tree: ast.AST) -> Iterator[str]:
    """Every string of a module but its docstrings."""
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)


def texts() -> Iterator[str]:
    """Every text whose words are ours."""
    for path in sorted(ENGINE.rglob("*.py")):
        if path.name not in EXCLUDED:
            yield from sentences(ast.parse(path.read_text(encoding="utf-8")))
    for path in sorted((ENGINE / "mappings" / "data").glob("*.json")):
        yield from strings(json.loads(path.read_text(encoding="utf-8")))
    yield from PUBLIC


def words() -> str:
    """The vocabulary, one word a line, in lower case."""
    found = set()
    for text in texts():
        for run in re.findall(r"[A-Za-z]+", text):
            if len(run) <= 24:
                found.add(run.lower())
                found |= {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", run)}
    return "".join(f"{word}\n" for word in sorted(found | set(PUBLIC)))

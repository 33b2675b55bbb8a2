"""What the metadata of a GGUF file declares of its model: the keys of `docs/gguf.md` of ggml, and nothing else kept.

Values are of the file's author: a word is kept only where it looks like one, a number only where it is one.
"""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.facts import GgufArray, GgufHeader
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.secrets import find_secrets
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.parse.fields import WORD

ARCHITECTURE: Final = "general.architecture"
TEMPLATE: Final = "tokenizer.chat_template"
VOCABULARY: Final = "tokenizer.ggml.tokens"
_LARGEST: Final = (1 << 63) - 1


def word(header: GgufHeader, key: str) -> str | None:
    """Return a text of the metadata that is a name and no secret."""
    value = header.metadata.get(key)
    return value if isinstance(value, str) and WORD.fullmatch(value) and not find_secrets(value) else None


def whole(header: GgufHeader, key: str) -> int | None:
    """Return a whole number of the metadata that is not negative."""
    value = header.metadata.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return value
    return None


def model_facts(header: GgufHeader) -> ModelFacts:
    """Return what the metadata declares of the model. Keys are named after the architecture: `llama.block_count`."""
    architecture = word(header, ARCHITECTURE)

    def size(key: str) -> int | None:
        return whole(header, f"{architecture}.{key}") or None

    heads, hidden = size("attention.head_count"), size("embedding_length")
    divided = hidden // heads if hidden and heads and hidden % heads == 0 else None
    tokens = header.metadata.get(VOCABULARY)
    return ModelFacts(
        layers=size("block_count"),
        heads=heads,
        groups=size("attention.head_count_kv") or heads,
        head_size=size("attention.key_length") or divided,
        experts=size("expert_count"),
        vocabulary=size("vocab_size") or (tokens.count or None if isinstance(tokens, GgufArray) else None),
        architecture=architecture,
    )


def check_metadata(probe: Probe, entry: Entry, header: GgufHeader) -> None:
    """Report secrets in the metadata, and templates that chat programs run."""
    texts = {key: value for key, value in header.metadata.items() if isinstance(value, str)}
    templates = sum(key == TEMPLATE or key.startswith(f"{TEMPLATE}.") for key in header.metadata)
    if templates:
        probe.report("gguf.template", entry, count=templates)
    rest = {key: value for key, value in texts.items() if not key.startswith(TEMPLATE)}
    model_config.check_metadata(probe, entry, rest)


def counts(headers: Sequence[GgufHeader | None]) -> str:
    """Return how many tensors and keys some files declare; nothing where none of them was read."""
    known = [header for header in headers if header is not None]
    if not known:
        return ""
    tensors = counted(sum(len(header.names) for header in known), "tensor")
    pairs = counted(sum(header.head.pairs for header in known), "metadata key")
    return f"declares {tensors} and {pairs}"

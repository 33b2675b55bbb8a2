"""What of a name or a sentence stays in a report, and what becomes of the rest."""

import pytest

from shardscope.engine.report.names import Names
from shardscope.engine.report.vocabulary import is_common


@pytest.mark.parametrize(
    "name",
    [
        "model-00001-of-00002.safetensors",
        "model.layers.31.self_attn.q_proj.weight",
        "global_step1000/mp_rank_00_model_states.pt",
        "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "iter_0000010/mp_rank_00_000/model_optim_rng.pt",
        "__0_0.distcp",
        ".metadata",
        "config.json",
        "model.embed_tokens.weight",
        "transformer.h.0.attn.c_attn.weight",
        "decoder.layers.self_attention.linear_qkv.weight/0.0.0",
        "consolidated.00.pth",
    ],
)
def test_names_of_model_code_stay(name: str) -> None:
    names = Names()

    assert names.name(name) == name
    assert names.replaced == {}


@pytest.mark.parametrize(
    "run", ["LlamaForCausalLM", "Qwen2VLForConditionalGeneration", "weight", "70b", "E4M3", "w1"]
)
def test_public_words_are_common(run: str) -> None:
    assert is_common(run)


@pytest.mark.parametrize(
    "run", ["alice", "BlueWhaleNet", "a1b2c3", "20240131", "straße", "xK9", "weight" * 20]
)
def test_what_could_be_somebody_is_not(run: str) -> None:
    assert not is_common(run)


def test_one_word_has_one_token_wherever_it_stands() -> None:
    names = Names()

    assert names.name("alice-model/alice.safetensors") == "{1}-model/{1}.safetensors"
    assert names.name("bob/alice.json") == "{2}/{1}.json"
    assert names.text("declared by bob/alice.json, and by alice") == "declared by {2}/{1}.json, and by {1}"
    assert [each.original for each in names.replaced.values()] == ["alice", "bob"]


def test_hash_replaces_every_word_and_keeps_numbers_and_endings() -> None:
    names = Names("hash")

    assert names.name("model.layers.31.mlp.up_proj.weight") == "{1}.{2}.31.{3}.{4}_{5}.{6}"
    assert names.name("model-00001-of-00002.safetensors") == "{1}-00001-{7}-00002.safetensors"
    assert names.word("hf_safetensors") == "hf_safetensors"
    assert (
        names.text("2 valid headers in model-00001.safetensors") == "2 valid headers in {1}-00001.safetensors"
    )


def test_a_token_tells_nothing_of_what_it_stands_for() -> None:
    assert Names().name("alice.pt") == Names().name("zebulon.pt") == "{1}.pt"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/data/model/weights", "{1}"),
        ("~/model", "{1}"),
        ("C:/model/weights", "C:{1}"),
        ("saved at /data/model by 2 ranks", "saved at {1} by 2 ranks"),
        ("from https://github.com/model", "from https:{1}"),
        ("10 files, 1,024 bytes", "10 files, 1,024 bytes"),
        ("at 10.20.30.40 now", "at {1} now"),
        ("on 2024-01-31.", "on {1}."),
        ("{7}", "{1}"),
    ],
)
def test_paths_addresses_and_forged_tokens_are_tokens(text: str, shown: str) -> None:
    assert Names().text(text) == shown


def test_the_name_of_this_machine_is_a_token_though_its_words_are_common() -> None:
    names = Names(private=("rank-node-03",))

    assert names.name("log-rank-node-03.json") == "log-{1}.json"
    assert names.name("rank-node-031.json") == "rank-node-031.json"
    assert names.text("written on RANK-Node-03.") == "written on {2}."


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("4.51.3", "4.51.3"),
        ("2.3.0+cu121", "2.3.0+cu121"),
        ("4.51.0.dev0", "4.51.0.dev0"),
        ("2.3.0+alice", "2.3.0"),
        ("1.0-alice", "1.0"),
        ("alice", None),
        ("", None),
    ],
)
def test_a_version_is_a_version_and_nothing_more(text: str, version: str | None) -> None:
    assert Names().version(text) == version

"""Secrets are found by shape and by name, marked in every sentence, and nothing harmless is."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Finding, blocker, render
from shardscope.engine.model.secret_rules import SecretKind, is_telling
from shardscope.engine.model.secrets import (
    SecretHit,
    find_secrets,
    find_secrets_in,
    redact,
    shown,
    strings_in,
)
from shardscope.engine.model.text import UNSAFE, display_name

# Put together from parts, so that no scanner of repositories takes them for real ones.
SAMPLES = {
    SecretKind.HF_TOKEN: ["hf_" + "aB3" * 11 + "d", "api_" + "org_" + "Zz9" * 11],
    SecretKind.GITHUB_TOKEN: ["gh" + "p_" + "a1B2" * 9, "github_" + "pat_" + "11ABC_" * 9],
    SecretKind.API_KEY: [
        "s" + "k-" + "proj-" + "a1B2" * 10,
        "gl" + "pat-" + "x" * 20,
        "AI" + "za" + "b" * 35,
    ],
    SecretKind.AWS_KEY_ID: ["AK" + "IA" + "IOSFODNN7EXAMPLE"],
    SecretKind.JWT: ["ey" + "J" + "h" * 20 + ".ey" + "J" + "p" * 20 + "." + "s" * 43],
    SecretKind.PRIVATE_KEY: [
        "-----BEGIN RSA PRIVATE " + "KEY-----\nRkFL\n-----END RSA PRIVATE " + "KEY-----"
    ],
    SecretKind.EMAIL: ["alice@example.com", "a.l+i-ce@mail.example.co.uk"],
    SecretKind.HOST: [
        "gpu-node-17.cluster.example.edu",
        "db.corp.internal",
        "alices-macbook.local",
        "svc.ns.svc.cluster.local",
        "ip-10-0-3-17",
    ],
    SecretKind.ADDRESS: ["192.0.2.17", "10.1.2.3", "2001:db8::17", "fe80::1", "2001:db8:1:2:3:4:5:6"],
    SecretKind.POSSIBLE: [
        "0123456789abcdef" * 2 + "01234567",
        "wJalrXUtnFEMI" + "/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    ],
}
PARTIAL = [
    ("Bea" + "rer " + "y" * 40, "Bearer [bearer token]"),
    ("/srv/lab/home/alice/run7", "/srv/lab/[home path]/run7"),
    ("home/alice/model.safetensors", "[home path]/model.safetensors"),
    ("/Users/alice", "/[home path]"),
    ("C:\\Users\\Alice Smith\\run7", "C:\\[home path]\\run7"),
    ("C:\\\\Users\\\\alice\\\\run7", "C:\\\\[home path]\\\\run7"),
    ("~alice/run7", "[home path]/run7"),
    ("home.alice.train.Config", "[home path].train.Config"),
    ("https://user:pass@example.com/x", "https://[url login]@example.com/x"),
    ("https://user:p@ss/word@example.com/x", "https://[url login]@[host name]/[e-mail]/x"),
    ("https:/user:pass@example.com", "https:/[url login]@example.com"),
    ("https://example.com/m?access_token=abc&x=1", "https://example.com/m?access_token=[secret value]&x=1"),
    ("https://example.com/m?sig=abc", "https://example.com/m?sig=[secret value]"),
    ("http://gpu17:8080/v1", "http://[host name]:8080/v1"),
    ("tcp://10.0.0.1:29500", "tcp://[ip address]:29500"),
    ("[2001:db8::17]:80", "[[ip address]]:80"),
    ("run --password=hunter2 --lr 3", "run --password=[secret value] --lr 3"),
    ('{"hub_token": "abc", "lr": 3}', '{"hub_token": "[secret value]", "lr": 3}'),
    ('{\\"api_key\\": \\"abc\\"}', '{\\"api_key\\": \\"[secret value]\\"}'),
    ("password=$tr0ng", "password=[secret value]"),
    ("password: hunter2", "password: [secret value]"),
    ("a@b.com,c@d.org", "[e-mail],[e-mail]"),
]
HARMLESS = [
    "model.layers.0.self_attn.q_proj.weight",
    "model-00001-of-00005.safetensors",
    "pytorch_model.bin.index.json",
    "transformer.h.11.attn.c_attn.bias",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
    "visual.blocks.31.attn.local",
    "layers.0.home.weight",
    "tokenizer.eos_token",
    "bos_token_id",
    "hf_transformer",
    "hf_hub_download",
    "sk-ip connection",
    "task-0123456789abcdef0123",
    "a@b",
    "meta-llama/Llama-3.1-8B@main",
    "git@github.com:org/repo.git",
    "https://huggingface.co/org/model/resolve/main/config.json?download=true",
    "http://localhost:8080/",
    "1.2.3.4-rc",
    "v8.9.2.26",
    "nvidia-nccl-cu12==2.18.3.1",
    "version 1.2.3.4",
    "0.0.0.0",
    "127.0.0.1",
    "256.1.1.1",
    "16:9",
    "12:34:56",
    "std::vector",
    "x[1::2]",
    "::1",
    "5.24.0",
    "eos_token: </s>",
    'the parser met the token: "}"',
    "unexpected token=5",
    '{"eos_token": "</s>", "max_new_tokens": "20"}',
    "num_key_value_heads=8",
    "key=value",
    "hub_token=<HUB_TOKEN>",
    "password=${PASSWORD}",
    "bearer of bad news",
    "snapshots/0123456789abcdef0123456789abcdef01234567/config.json",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "sha256:" + "0123456789abcdef" * 4,
    "0123456789abcdef" * 4,
    "models/Llama2/checkpoints/step100/weight",
    "global_step1000/zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "-----BEGIN CERTIFICATE-----",
    "café/模型.safetensors",
    "",
]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SAMPLES.items() for text in texts]
)
def test_each_kind_is_found_alone_and_inside_other_text(kind: SecretKind, text: str) -> None:
    assert redact(text) == f"[{kind}]"
    assert find_secrets(text) == (SecretHit(kind, 0, len(text)),)
    for before, after in (("<", ">"), ("see ", ", then"), ("“", "”")):
        assert redact(f"{before}{text}{after}") == f"{before}[{kind}]{after}"


@pytest.mark.parametrize(("text", "expected"), PARTIAL)
def test_only_the_private_part_is_replaced(text: str, expected: str) -> None:
    redacted = redact(text)
    assert redacted == expected
    assert redact(redacted) == redacted


@pytest.mark.parametrize("text", HARMLESS)
def test_names_of_the_field_stay_readable(text: str) -> None:
    assert redact(text) == text


PARTS = re.findall(
    r"\S+",
    "model layers 0 17 self_attn q_proj k_proj weight bias lm_head embed_tokens token_type_embeddings mlp gate_up_proj "
    "experts norm key query value_proj attention home local visual blocks lora_A default rotary inv_freq",
)
names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=12).filter(
    lambda parts: parts[0] != "home" and not all(part.isdigit() for part in parts)  # 17.0.0.0 is an address
)


@given(names)
def test_no_tensor_name_is_taken_for_a_secret(parts: list[str]) -> None:
    name = ".".join(parts)
    assert shown(name) == name


@given(
    st.sampled_from(
        [(kind, text) for kind, texts in SAMPLES.items() if kind is not SecretKind.POSSIBLE for text in texts]
    ),
    st.text(st.characters(categories=["Zs", "Ps", "Pe", "So"], exclude_characters="\u3164"), max_size=20),
    st.text(st.characters(categories=["Zs", "Ps", "Pe", "So"], exclude_characters="\u3164"), max_size=20),
)
def test_a_secret_in_any_surroundings_is_gone_and_the_surroundings_stay(
    sample: tuple[SecretKind, str], before: str, after: str
) -> None:
    kind, secret = sample
    # a space in front keeps the surroundings from becoming part of an address or a user name
    assert redact(f"{before} {secret} {after}") == f"{before} [{kind}] {after}"


invisible = st.sampled_from("\u200b\u200d\u2060\ufeff\u00ad\u202e\x00\x1b\udc80\ufe0f")


@given(st.sampled_from(SAMPLES[SecretKind.HF_TOKEN] + SAMPLES[SecretKind.GITHUB_TOKEN]), st.data())
def test_invisible_characters_inside_a_token_do_not_hide_it(secret: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(secret)))
        secret = secret[:at] + data.draw(invisible) + secret[at:]
    core = secret.strip("\u200b\u200d\u2060\ufeff\u00ad\u202e\x00\x1b\udc80\ufe0f")
    hits = find_secrets(secret)
    assert [hit.kind for hit in hits] in ([SecretKind.HF_TOKEN], [SecretKind.GITHUB_TOKEN])
    assert secret[hits[0].start : hits[0].end] == core
    # the same in a name that has already been made visible
    assert core[-10:] not in shown(display_name(secret))
    assert "token]" in shown(display_name(secret))


@given(st.text(max_size=200))
def test_hits_are_ordered_and_apart_and_what_is_redacted_is_shown_harmless(text: str) -> None:
    end = 0
    for hit in find_secrets(text):
        assert end <= hit.start < hit.end <= len(text)
        end = hit.end
    assert UNSAFE.search(shown(text)) is None


@pytest.mark.parametrize(
    "piece",
    ["hf_", "a@", "x-", ":/", "home/", "-----BEGIN ", "1.2.3.", "sk-", "2001:", "a=", '"a":', "a.lan.", "://x:y@", "gpu-",
     "~a", "eyJ", "bearer ", "authorization: ", "@a.b", "http://", "users\\x", "a:", "\u200b", "1", "f", ":/x:y/"],
)  # fmt: skip
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece)) + "@.com.lan private key"
        begin = time.process_time()
        find_secrets(text)
        return time.process_time() - begin

    seconds(1_000)
    # quadratic work on 120,000 characters would take minutes
    assert seconds(120_000) < 2


def test_a_token_longer_than_the_sentence_leaves_nothing_behind() -> None:
    token = "ey" + "J" + "h" * 5_000 + ".ey" + "J" + "p" * 5_000 + "." + "s" * 200
    assert shown(token, 80) == "[jwt]"
    assert shown("x" * 200_000, 80).count("…") == 1
    key = "-----BEGIN PRIVATE " + "KEY-----\n" + "QUJD\n" * 30_000 + "-----END PRIVATE " + "KEY-----"
    assert "QUJD" not in shown(key, 80)


@pytest.mark.parametrize(
    "name",
    ["password", "db_password", "apiKey", "API_KEY", "api-key", "hub_token", "hubToken", "HF_TOKEN", "client_secret",
     "aws_secret_access_key", "privateKey", "token", "push_to_hub_token", "Authorization", "wandb_key"],
)  # fmt: skip
def test_names_that_tell(name: str) -> None:
    assert is_telling(name)


@pytest.mark.parametrize(
    "name",
    ["eos_token", "pad_token_id", "max_new_tokens", "tokens", "key", "num_key_value_heads", "key_value_proj_dim",
     "tokenizer_class", "author", "passes", "secretary", "image_token", "signature", ""],
)  # fmt: skip
def test_names_that_only_sound_alike(name: str) -> None:
    assert not is_telling(name)


def test_places_are_pointers_whose_keys_are_redacted_too() -> None:
    token = SAMPLES[SecretKind.HF_TOKEN][0]
    value = {
        "a": [{"b/c": token}],
        token: {"x": "alice@example.com"},
        "credentials": {"user": "bob", "pins": ["1234"]},
        "_commit_hash": SAMPLES[SecretKind.POSSIBLE][0],
        "cuda_version": "12.1.105.1",
        "use_auth_token": True,
        "password": None,
        "hub_token": "<HUB_TOKEN>",
        "token": "the",
        "api_key": "abc",
    }
    found = [(place.kind, place.place, place.leaf.is_key) for place in find_secrets_in(value)]
    assert found == [
        (SecretKind.HF_TOKEN, "/[hf token]", True),
        (SecretKind.HF_TOKEN, "/a/0/b~1c", False),
        (SecretKind.EMAIL, "/[hf token]/x", False),
        (SecretKind.NAMED, "/credentials/user", False),
        (SecretKind.NAMED, "/credentials/pins/0", False),
        (SecretKind.NAMED, "/api_key", False),
    ]


def test_deep_values_are_walked_without_recursion() -> None:
    value: Any = "alice@example.com"
    for _ in range(50_000):
        value = [value]
    assert [place.kind for place in find_secrets_in(value)] == [SecretKind.EMAIL]
    assert next(strings_in("x")).place == ""


def test_no_sentence_repeats_a_secret() -> None:  # R098
    token = SAMPLES[SecretKind.HF_TOKEN][0]
    for kind in ("path", "name", "text"):
        assert render(f"see {{x:{kind}}}.", {"x": f"a/{token}/b"}) == "see a/[hf token]/b."
    made = blocker(
        Finding("json.duplicate_key", {"key": f"/home/alice/{token}"}),
        f"alice@example.com/{token[:9]}\u200b{token[9:]}",
    )
    assert made.subject == "[e-mail]/[hf token]"
    assert made.params == {"file": "[e-mail]/[hf token]", "key": "/[home path]/[hf token]"}
    for text in (made.message, made.remedy, str(made.params), made.subject):
        assert "alice" not in text
        assert token[9:] not in text


def test_a_file_named_by_its_digest_keeps_its_name() -> None:
    blob = "0123456789abcdef0123456789abcdef01234567"
    assert render("{file:path}", {"file": blob}) == blob
    assert render("{found:text}", {"found": blob}) == "[possible key]"

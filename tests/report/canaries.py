"""Fake secrets and identities, and a checkpoint that has each of them in every place that a stranger can fill."""

import json
import os
from pathlib import Path
from typing import NamedTuple

from tests.checkpoints import safetensors_bytes, write_json
from tests.torchfiles import Called, Tensor, floats, save


class Canary(NamedTuple):
    """One fake secret. `needles` are what must not be found again: the parts of it that are nowhere else."""

    kind: str
    text: str
    needles: tuple[str, ...]


def _canary(kind: str, text: str, *needles: str) -> Canary:
    return Canary(kind, text, needles or (text,))


_LONG = "Zq7XkPw3Vb9Rt2Yh5Lm8"
"""Twenty characters that look random."""

CANARIES = (
    _canary("hf token", f"hf_{_LONG}Abcdefgh"),
    _canary("old hf token", f"api_org_{_LONG}Ab"),
    _canary("github token", f"ghp_{_LONG}{_LONG[:16]}"),
    _canary("github fine-grained token", f"github_pat_{_LONG}_{_LONG}"),
    _canary("gitlab token", f"glpat-{_LONG}"),
    _canary("openai key", f"sk-proj-{_LONG}{_LONG}"),
    _canary("stripe key", "sk_live_" + _LONG),
    _canary("slack token", "xoxb-123456789012-abcdefGHIJKL", "abcdefghijkl"),
    _canary("google key", "AIza" + "SyQw3rTy7UiOp9AsDfGh2JkLzXcVbNm4567"),
    _canary("nvidia key", f"nvapi-{_LONG}"),
    _canary("npm token", f"npm_{_LONG}{_LONG[:16]}"),
    _canary("pypi token", "pypi-AgE" + _LONG * 3),
    _canary("aws key id", "AKIAQWERTYUIOPASDFGH"),
    _canary("aws secret", "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"),
    _canary("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4"),
    _canary("bearer", "Bearer qmzvbxkfjwpt8274gh"),
    _canary(
        "private key", "-----BEGIN RSA PRIVATE KEY-----MIIEqzxw-----END RSA PRIVATE KEY-----", "miieqzxw"
    ),
    _canary("url login", "https://zedrick:pwxq77@git.example.com/r", "zedrick", "pwxq77"),
    _canary("password", "password=xylofon-Quibble9", "xylofon", "quibble9"),
    _canary("bare password", "Tr0ubad0r&Xq3"),
    _canary("wandb key", "a3f9c1d27b6e48805f1a2c3d4e5f60718293a4b5"),
    _canary("e-mail", "wilhelmina.grackle@nowhere-labs.org", "wilhelmina", "grackle", "nowhere"),
    _canary("home", "/home/qtanaka/runs", "qtanaka"),
    _canary("mac home", "/Users/vbjornsson/Documents", "vbjornsson"),
    _canary("windows home", "C:\\Users\\okonkwo\\ckpt", "okonkwo"),
    _canary("absolute path", "/mnt/glacierfs/projects/kestrel", "glacierfs", "kestrel"),
    _canary("relative way out", "../../zanzibar-vault/latest", "zanzibar"),
    _canary("inner host", "node17.cumulus.internal", "cumulus"),
    _canary("public host", "gpu-a100-03.quasarcloud.com", "quasarcloud"),
    _canary("ec2 host", "ip-10-31-42-77", "10-31-42-77"),
    _canary("plain host", "thunderbolt9x", "thunderbolt"),
    _canary("ipv4", "172.16.254.91"),
    _canary("public ipv4", "203.0.113.77"),
    _canary("ipv6", "2001:db8:85a3::8a2e:370:7334"),
    _canary("user", "xiomara_v", "xiomara"),
    _canary("full name", "Thaddeus Winterbottom", "thaddeus", "winterbottom"),
    _canary("customer", "Umbrella-Zephyr GmbH", "umbrella", "zephyr"),
    _canary("project", "project_nightjar", "nightjar"),
    _canary("git remote", "git@git.hoopoe.dev:research/secretmodel.git", "hoopoe", "secretmodel"),
    _canary("s3 bucket", "s3://capybara-weights/prod", "capybara"),
    _canary("uuid", "7d444840-9dc0-11d1-b245-5ffdce74fad2"),
    _canary("telephone", "+442079460958", "442079460958"),
    _canary("card", "4929-1234-5678-9012", "4929-1234-5678-9012"),
    _canary("class", "acmecorp.internal_models.HyperSecretNet", "acmecorp", "hypersecret"),
    _canary("sentence", "trained by ludmila on the vatican dataset", "ludmila", "vatican"),
)
EVERYTHING = " | ".join(canary.text for canary in CANARIES)
PLACES = (
    "file name",
    "folder name",
    "tensor name",
    "dtype",
    "header metadata",
    "config value",
    "config key",
    "architecture",
    "index path",
    "index metadata",
    "pickled string",
    "pickled reference",
    "pickled tensor name",
    "tracker",
    "adapter configuration",
    "tokenizer configuration",
    "text file",
    "code file",
    "zip record",
    "payload",
    "git remote",
    "root folder",
)
"""Where the checkpoint has them; the environment, the machine and the working folder come on top."""


def in_name(text: str) -> str:
    """Return a canary as a file can be called."""
    return text.replace("/", "_").replace("\\", "_")


def write(root: Path) -> Path:
    """Write the checkpoint and return its folder, whose own name is a canary, too."""
    folder = root / "kestrel-of-qtanaka"
    folder.mkdir(parents=True)
    tensors: dict[str, tuple[str, list[int]]] = {}
    for number, canary in enumerate(CANARIES):
        name = in_name(canary.text)
        tensors[f"model.layers.{number}.{canary.text}.weight"] = ("F32", [2, 2])
        (folder / f"{name}.safetensors").write_bytes(
            safetensors_bytes({canary.text: ("F32", (1,))}, {canary.text: canary.text})
        )
        inner = folder / name
        inner.mkdir()
        (inner / "latest").write_text(canary.text)
        (inner / f"{name}.txt").write_text(canary.text)
        (inner / f"modeling_{name}.py").write_text(f"# {canary.text}\n")
        save(
            inner / "pytorch_model.bin",
            {
                canary.text: Tensor("0", 4, (4,)),
                "note": canary.text,
                "call": Called(canary.text, canary.text, (canary.text,)),
            },
            {"0": floats(0, 1, 2, 3)},
            root=name,
        )
        write_json(
            inner / "config.json",
            {
                "architectures": [canary.text],
                "model_type": canary.text,
                "torch_dtype": canary.text,
                "_name_or_path": canary.text,
                "auto_map": {canary.text: canary.text},
                "transformers_version": canary.text,
                canary.text: canary.text,
                "quantization_config": {"quant_method": canary.text},
            },
        )
        write_json(
            inner / "adapter_config.json",
            {
                "base_model_name_or_path": canary.text,
                "peft_type": canary.text,
                "revision": canary.text,
                "target_modules": [canary.text],
            },
        )
        write_json(
            inner / "tokenizer_config.json", {"name_or_path": canary.text, "chat_template": canary.text}
        )
    (folder / "model-00001-of-00002.safetensors").write_bytes(
        safetensors_bytes(tensors, {"format": "pt", "author": EVERYTHING})
    )
    weight_map = {name: f"{in_name(canary.text)}.bin" for name, canary in zip(tensors, CANARIES, strict=True)}
    write_json(
        folder / "model.safetensors.index.json", {"metadata": {"who": EVERYTHING}, "weight_map": weight_map}
    )
    odd = json.dumps(
        {canary.text: {"dtype": canary.text, "shape": [1], "data_offsets": [0, 4]} for canary in CANARIES[:1]}
    ).encode()
    (folder / "odd.safetensors").write_bytes(len(odd).to_bytes(8, "little") + odd + b"\0" * 4)
    payload = EVERYTHING.encode() * 700  # above the size from which a digest is kept
    header = json.dumps(
        {"w": {"dtype": "U8", "shape": [len(payload)], "data_offsets": [0, len(payload)]}}
    ).encode()
    (folder / "large.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + payload)
    git = folder / ".git"
    git.mkdir()
    (git / "config").write_text(
        "".join(f'[remote "r{number}"]\n\turl = {canary.text}\n' for number, canary in enumerate(CANARIES))
    )
    (folder / os.fsdecode(b"caf\xe9-xiomara")).write_text("x")
    return folder


def found(text: str) -> list[str]:
    """Return the kinds of the canaries that are in `text`, whichever way letters are written."""
    lowered = text.lower()
    return [canary.kind for canary in CANARIES if any(needle.lower() in lowered for needle in canary.needles)]

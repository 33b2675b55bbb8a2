"""The page made from the records of the fixtures: which software wrote what the readers are held against, in which versions."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {
    "accelerate": ("Accelerate states and offload folders", ("R14", "R20")),
    "dcp": ("PyTorch DCP, also written as safetensors", ("R01", "R03")),
    "deepspeed": ("DeepSpeed ZeRO, MoE, pipeline, AutoTP, Universal", ("R08", "R09", "R10")),
    "gguf": ("GGUF files", ("R36",)),
    "hf": ("Hugging Face folders and their relatives", ("R11", "R12", "R13")),
    "megatron": ("Megatron-LM rank folders and distributed checkpoints", ("R04", "R05", "R06")),
    "numpy": ("NumPy arrays and archives of them", ("R37",)),
    "orbax": ("Orbax checkpoints", ("R39",)),
    "peft": ("PEFT adapters", ("R16",)),
    "zarr": ("Zarr arrays", ("R38",)),
    "torch": ("files of torch.save, FSDP rank files", ("R03", "R17")),
}
"""What each folder of tests/fixtures holds, and the entries of the register that its readers rest on."""


def records() -> dict[str, list[dict[str, Any]]]:
    """Return what is recorded of each fixture, by the family's folder."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in sorted((ROOT / "tests/fixtures").glob("*/*/PRODUCER.json")):
        found[path.parts[-3]].append(json.loads(path.read_text(encoding="utf-8")))
    return dict(found)


def producers() -> str:
    """What wrote the fixtures."""
    lines = [
        "# Producers and versions",
        "",
        "The readers are held against checkpoints that real software wrote, in these versions. What was built by hand follows the published",
        "layout without having been written by the producer. Other versions are read by the same code and said to be unknown where they do not",
        "name themselves; none of this qualifies a row of the [support matrix](support-matrix.md). What the parsers decide where a text, a library",
        "and a careful reader disagree is in the [notes on formats](format-notes.md).",
        "",
        "| family | written by | fixtures | of them by hand | sources |",
        "|---|---|---:|---:|---|",
    ]
    for family, fixtures in records().items():
        title, ids = FAMILIES.get(family, (family, ()))
        versions = sorted(
            {
                f"{name} {version}"
                for each in fixtures
                for name, version in each.get("versions", {}).items()
                if name != "python"
            }
        )
        by_hand = sum(1 for each in fixtures if each.get("hand_built"))
        sources = ", ".join(f"[{name}](sources.md#{name.lower()})" for name in ids)
        lines.append(f"| {title} | {', '.join(versions)} | {len(fixtures)} | {by_hand} | {sources} |")
    return "\n".join([*lines, ""])

"""What real DeepSpeed saves say of their shards.

`data/*.json` holds `universal_checkpoint_info` of the checkpoints of the same name under tests/fixtures (or of saves made the
same way), as plain JSON; `shards` are the shapes on each tensor-parallel rank, `expected` those of the full tensors.
"""

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

WITH_MAPS = (
    "autotp2-bigcode-zero1-fp32",
    "autotp2-bloom-zero1-fp32",
    "autotp2-codegen-heur-zero1-fp32",
    "autotp2-llama-gqa3-dp1-zero1-bf16",
    "autotp2-phi3-heur-zero1-fp32",
    "handbuilt-scaled-bias-tp2",
    "handbuilt-yuan-sharedqk-tp2",
)


class Saved:
    """One save."""

    def __init__(self, name: str) -> None:
        said: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
        self.info: dict[str, Any] = said["info"]
        self.shards = {
            tensor: [tuple(shape) for shape in shapes] for tensor, shapes in said["shards"].items()
        }
        self.expected = {tensor: tuple(shape) for tensor, shape in said["expected"].items()}

"""The words of the shard-map language name structure. What a tensor is for in a model has no word in it."""

import ast
import re
from pathlib import Path
from typing import get_args

import msgspec

from shardscope.engine.model.piece import Piece
from shardscope.engine.model.shardmap import Node, Part

ENGINE = Path(__file__).resolve().parents[2] / "engine/shardscope/engine/geometry"
ROLES = re.compile(
    r"\b(?:attention|attn|query|queries|qkv|mlp|ffn|gate|up_proj|down_proj|embed\w*|expert\w*|norm|bias|lm_head|layer\w*|moe|rotary)\b"
)
NODES = {
    "replicate", "contiguous", "sub_param_concat", "interleave", "trim", "explicit", "block", "flat_range", "scale"
}  # fmt: skip
BY_PRODUCER = (
    "constructors",
    "mapping",
    "interchange/expert_layers.py",
    "interchange/universal.py",
    "interchange/universal_info.py",
    "interchange/categories.py",
)
"""Where producers' habits are turned into maps, and their documents read: there their words are spoken."""


# R159
def test_nodes_and_their_fields_are_called_by_structure() -> None:
    kinds = get_args(Node)
    tags = {str(kind.__struct_config__.tag) for kind in kinds}
    fields = {field.name for kind in (*kinds, Part, Piece) for field in msgspec.structs.fields(kind)}

    assert tags == NODES
    assert [word for word in sorted(tags | fields) if ROLES.search(word.replace("_", " "))] == []


# R147 R159
def test_the_engine_of_maps_compares_no_name_with_a_role() -> None:
    """No string of a module that lowers, checks, composes or executes maps is the name of what a tensor is for."""
    theirs = {
        path for name in BY_PRODUCER for path in ENGINE.glob(f"{name}/*.py" if "." not in name else name)
    }
    modules = [path for path in ENGINE.rglob("*.py") if path not in theirs]
    spoken = []
    for path in modules:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        spoken += [
            f"{path.name}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
            if ROLES.search(node.value)
        ]
    assert len(modules) > 20
    assert len(theirs) > len(BY_PRODUCER)
    assert spoken == []

"""The examples of docs/geometry.md: what each is, and what the page has to say of it."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from shardscope.app.cli.map_explain import shard_lines
from shardscope.engine.geometry.describing.explain import explain
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, TensorMap

EXAMPLE = re.compile(r"```json example\n(?P<map>.*?)```\n\n```text\n(?P<says>.*?)```", re.DOTALL)


class Example(NamedTuple):
    """One example of the page."""

    map: str
    says: str


def examples(page: str) -> Iterator[Example]:
    """Yield the examples of a page in order."""
    for found in EXAMPLE.finditer(page):
        yield Example(found["map"], found["says"])


def meaning(text: str) -> str:
    """Return what the page has to say of an example: a line for each piece, or the refusal."""
    value: dict[str, Any] = json.loads(text)
    mesh = DeviceMesh(tuple(MeshAxis(name, size) for name, size in value["axes"].items()))
    tensor = msgspec.convert({"shape": value["shape"], "map": value["map"]}, TensorMap)
    try:
        lowered = lower(tensor, mesh)
    except Fault as fault:
        return f"{fault.finding.code}: {blocker(fault.finding).message}\n"
    shards = explain("example", lowered, tensor, mesh).shards
    return "".join(
        f"{line.removeprefix('  ')}\n" for shard in shards for line in shard_lines(shard, everything=True)
    )


def filled(page: str) -> str:
    """Return the page with every example's text as it has to be."""
    return EXAMPLE.sub(lambda m: f"```json example\n{m['map']}```\n\n```text\n{meaning(m['map'])}```", page)

"""The gallery of layouts: each document of `maps/` with its story, and what `shardscope map explain` says of it."""

import json
from pathlib import Path
from typing import NamedTuple

from shardscope.app.cli.map_compose import lines as plan_lines
from shardscope.app.cli.map_explain import lines as explained
from shardscope.engine import read_shard_map
from shardscope.engine.geometry.constructors.attention import codegen, shared_query_key
from shardscope.engine.model.blocker import Fault, blocker

MAPS = Path(__file__).resolve().parent / "maps"


class Layout(NamedTuple):
    """One document of the gallery."""

    file: str
    title: str
    story: str
    rank: int = 0
    """Whose shard is drawn."""


SECTIONS: tuple[tuple[str, str, tuple[Layout, ...]], ...] = (
    (
        "Plain cuts",
        "One piece for each rank, whatever the size of the tensor.",
        (
            Layout(
                "replicated",
                "Replicated",
                "Norms and most biases: every rank has all of it. Copies are compared before one of them is taken.",
            ),
            Layout(
                "column",
                "Columns of a linear layer (dimension 0)",
                "The full tensor is the shards end to end.",
            ),
            Layout(
                "row",
                "Rows of a linear layer (dimension 1)",
                "The shards lie side by side: a piece has one step in the full tensor and another in the shard, which is why "
                "joining the bytes of the shards end to end gives another tensor.",
                rank=1,
            ),
            Layout(
                "uneven_heads",
                "Six heads over four ranks",
                "24 rows in six heads of four: 8, 8, 4 and 4 rows. Dividing evenly gives 6 each, covers the tensor just as well, "
                "and cuts through heads. Widths are recorded, never divided.",
                rank=2,
            ),
            Layout(
                "vocabulary",
                "A padded vocabulary",
                "Ten rows padded to twelve and cut evenly. `trim` says that the last two exist in no full tensor: they are left "
                "out on the way in, whatever they hold, and are zero on the way out.",
                rank=3,
            ),
        ),
    ),
    (
        "Fused projections",
        "Several matrices in one tensor, each cut by itself. Joining the shards as they are gives another tensor.",
        (
            Layout(
                "fused_qkv",
                "Query, key and value end to end, fewer key heads than query heads",
                "A rank holds its slice of each of the three.",
                rank=1,
            ),
            Layout("gate_up", "Gate and up", "The same with two equal halves.", rank=1),
            Layout(
                "generic_fused",
                "Any fused parts, uneven and partly replicated",
                "A converter that knows categories refuses a fused tensor of which it has no description. Here the description "
                "is the map, and there is nothing to recognise: sixteen rows cut evenly, ten cut 6 and 4, four on both ranks.",
                rank=1,
            ),
            Layout(
                "bloom",
                "Heads interleaved: BLOOM, Falcon",
                "The shard keeps query, key and value of a head together, the full tensor here keeps all queries first. "
                "Categories had no word for it, so that conversion was refused.",
            ),
            Layout(
                "codegen",
                "Four groups of three parts: CodeGen",
                "The rows are four groups, each with its queries, values and keys, and groups are dealt to ranks in blocks of a "
                "head's share. Upstream lists eleven pieces for each rank; folded in every dimension they are one, for "
                "24 rows and for 24,576.",
            ),
            Layout(
                "gpt_bigcode",
                "Multi-query attention: GPTBigCode",
                "Eight query rows for each rank, and the key and value of the one shared head on all four.",
                rank=2,
            ),
            Layout(
                "yuan",
                "Heads paired over two halves: Yuan",
                "A rank holds a run of heads of the first half and one of the second: rows of the value projection, columns of "
                "the output projection. No run of rows or columns describes it, so that it was refused.",
                rank=1,
            ),
            Layout(
                "scaled_bias",
                "A bias divided by the number of ranks",
                "Row-parallel layers sum over ranks and may keep a replicated bias divided beforehand. A power of two comes back "
                "bit for bit; on optimizer state any factor is refused.",
            ),
        ),
    ),
    (
        "Flat partitions",
        "A flattened parameter, or several end to end, cut without regard to rows. What is beyond the last element is padding.",
        (
            Layout(
                "zero12",
                "ZeRO stage 1 and 2: a group of parameters, two ranks",
                "Three parameters of 28, 9 and 15 elements end to end make 52, and each rank owns 26 of them: the cut goes "
                "through the last row of the first parameter. These are the stretches of each parameter alone.",
                rank=1,
            ),
            Layout(
                "zero3",
                "ZeRO stage 3: each parameter by itself",
                "35 elements over four ranks are nine each, and one of padding on the last.",
                rank=3,
            ),
            Layout(
                "zero3_over_tp",
                "ZeRO stage 3 over tensor parallelism",
                "Nodes compose: the flat range cuts the shard that the columns make, and a rank's rows may end in the middle.",
                rank=2,
            ),
            Layout(
                "fsdp_flat",
                "FSDP1: one flat parameter of two tensors",
                "Thirteen elements for each of two ranks.",
                rank=1,
            ),
        ),
    ),
    (
        "Meshes",
        "Several axes at a time.",
        (
            Layout(
                "fsdp_over_tp",
                "FSDP2 over tensor parallelism",
                "The same dimension cut twice (up), or another one (down). The mesh is dp x tp, the cut by tp comes first: torch "
                "calls that a strided shard.",
                rank=1,
            ),
            Layout(
                "chunks",
                "Boxes: distributed checkpoints of PyTorch, DTensor, Megatron's global offsets",
                "Whatever is recorded as offsets and sizes. The last column chunk is short, as `torch.chunk` cuts it.",
                rank=3,
            ),
            Layout(
                "experts",
                "Dense parameters and experts on the same ranks",
                "Two meshes side by side: four ranks are dp 2 x tp 2 for dense parameters, which are therefore replicated twice, "
                "and ep 2 x etp 2 for the experts, which are not. How optimizer state of experts is partitioned is open.",
                rank=1,
            ),
        ),
    ),
    (
        "Index arrays",
        "The last resort, and rarely needed.",
        (
            Layout(
                "explicit",
                "Any permutation",
                "Indices that stand in progressions become pieces like any other: every second row is one piece. A shuffle "
                "becomes a piece for every run, and beyond a bound stays an index, which is named wherever it turns up.",
                rank=1,
            ),
        ),
    ),
)


def gallery() -> str:
    """The page."""
    page = [
        "# Gallery of layouts",
        "",
        (
            "How tensors are cut, as shard maps ([the language](geometry.md)). Every document is in [`maps/`](maps), and every block "
            "below is what `shardscope map explain` prints of it. The tensors are small so that all of them can be seen; the number "
            "of pieces would be the same at any size. In the first picture a letter is the rank that holds an element, `*` all "
            "of them; in that of a shard letters are rows (or columns) of the full tensor in their order, and `.` is padding."
        ),
        "",
    ]
    for title, about, layouts in SECTIONS:
        page += [f"## {title}", "", about, ""]
        for layout in layouts:
            page += shown(layout)
    return "\n".join([*page, *moves(), *refusals()])


def shown(layout: Layout) -> list[str]:
    """One layout: its story, its trees as JSON, its explanation."""
    maps = read_shard_map(MAPS / f"{layout.file}.json")
    trees = json.loads((MAPS / f"{layout.file}.json").read_text(encoding="utf-8"))["tensors"]
    texts = [
        "\n".join(explained(maps.explain(name, rank=layout.rank, height=24), layout.rank))
        for name in maps.names
    ]
    several = len({json.dumps(tree["map"]) for tree in trees.values()}) > 1
    tree = {name: entry["map"] for name, entry in trees.items()} if several else trees[maps.names[0]]["map"]
    return [
        f"### {layout.title}",
        "",
        layout.story,
        "",
        "```json",
        laid_out(tree),
        "```",
        "",
        f"`shardscope map explain maps/{layout.file}.json --rank {layout.rank} --height 24`",
        "",
        "```text",
        *"\n\n\n".join(texts).split("\n"),
        "```",
        "",
    ]


def laid_out(value: object, indent: int = 0) -> str:
    """JSON with what fits in a line in one."""
    line = json.dumps(value)
    if len(line) + indent <= 100 or not isinstance(value, dict | list):
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(key)}: {laid_out(item, indent + 2)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + laid_out(item, indent + 2) for item in value) + "\n" + " " * indent + "]"


def moves() -> list[str]:
    """From one layout to another."""
    source, target = (read_shard_map(MAPS / f"{name}.json") for name in ("row_tp2", "column_tp4"))
    plan = plan_lines({"weight": source.plan("weight", target)}, everything=False)
    return [
        "## From one layout to another",
        "",
        (
            "An 8 x 8 tensor cut by columns over two ranks, moved to rows over four: eight copies of 4 x 2 elements from shard to "
            "shard. The full tensor appears nowhere in the plan."
        ),
        "",
        "`shardscope map compose maps/row_tp2.json maps/column_tp4.json`",
        "",
        "```text",
        *plan,
        "```",
        "",
    ]


def refusals() -> list[str]:
    """Layouts that stay refused, with the words in which they are."""
    rows = []
    for what, make in (
        ("Twelve heads paired over two halves, four ranks (Yuan)", lambda: shared_query_key((48, 8), 4, 12)),
        ("Twelve heads in four groups, two ranks (CodeGen)", lambda: codegen((144, 8), 2, 12)),
    ):
        try:
            make()
        except Fault as fault:
            rows.append(f"| {what} | `{fault.finding.code}` | {blocker(fault.finding).message} |")
    return [
        "## What stays refused",
        "",
        (
            "Where the facts do not decide, nothing is guessed. A parameter to be averaged over ranks (`universal.average`) has no "
            "inverse; one that no category matches (`universal.unmatched`) is not joined along dimension 0 unless a person says so; "
            "a fused projection whose head count is unknown (`universal.unsupported`) needs it. And some numbers have no layout:"
        ),
        "",
        "| layout | code | message |",
        "|---|---|---|",
        *rows,
        "",
    ]

"""`shardscope map from-deepspeed` and `to-deepspeed`: DeepSpeed's own descriptions of shards, read and written."""

# ruff: noqa: ARG001 ARG002 - click calls these functions and methods with all of their arguments; `run` looks for --json

import json
import re
from typing import TYPE_CHECKING, Any

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.map import EXITS, opened, reading
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import LOWERED, SHARD_MAP

if TYPE_CHECKING:
    from shardscope.engine.model.blocker import Finding
    from shardscope.engine.model.translation import Translations

Shape = tuple[int, ...]


class Shards(click.ParamType[tuple[str, tuple[Shape, ...]]]):
    """A parameter with the shapes of its shards: `NAME=8x4` or `NAME=8x4,8x4,4x4`."""

    name = "shards"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what help shows in place of the value."""
        return "NAME=SHAPE[,SHAPE...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[Shape, ...]]:
        """Return the pair; fails with what a value looks like."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).rpartition("=")
        if (
            not equals
            or re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})*(,[0-9]{1,18}(x[0-9]{1,18})*)*", text) is None
        ):
            self.fail(
                "a parameter takes the shapes of its shards, such as w=4096x1024 or w=8x4,8x4,4x4.",
                param,
                ctx,
            )
        return name, tuple(tuple(map(int, shape.split("x"))) for shape in text.split(","))


@command(
    "from-deepspeed",
    short_help="Read DeepSpeed's affine maps and categories.",
    examples=(
        ("shardscope map from-deepspeed affine_map.json > map.json", "The affine maps of a container."),
        (
            "shardscope map from-deepspeed info.json --tp 2 --shard w=4096x1024 > map.json",
            "The categories of universal_checkpoint_info, for a parameter of two equal shards.",
        ),
        (
            "shardscope map from-deepspeed info.json --shards shapes.json > map.json",
            "The same for many parameters.",
        ),
    ),
    notes="""FILE is JSON: an affine_map container, or universal_checkpoint_info of any version, alone or under its name. Affine
    maps need nothing else. Categories match names with patterns and say nothing of sizes, so the shapes of the shards are
    needed: --shard for one parameter, or --shards with a JSON object of lists of shapes, by parameter and rank. A parameter
    that cannot be described (to be averaged, unmatched, listed as unsupported) is refused with the reason, and with it the
    whole: exit code 8.""",
    exits=EXITS,
)
@click.argument("file", type=click.Path())
@click.option(
    "--tp", type=click.IntRange(1, 65_536), help="Tensor-parallel ranks, for --shard with one shape."
)
@click.option(
    "--shard", "listed", type=Shards(), multiple=True, help="A parameter's shards; may be repeated."
)
@click.option(
    "--shards", "shapes", type=click.Path(), metavar="FILE", help="The shards of many parameters, as JSON."
)
@click.option(
    "--unmatched-dim",
    type=click.IntRange(0, 7),
    help="Say that parameters of no category are cut along this dimension. DeepSpeed joins them along 0, unasked.",
)
@click.option("--any-patterns", is_flag=True, help="Take patterns that match no parameter.")
@click.option("--lowered", is_flag=True, help="Print normal forms even where there are trees.")
@reading
@click.option("--json", "as_json", is_flag=True, help="Print errors as JSON, too; maps always are.")
@click.pass_obj
def from_deepspeed(
    session: Session,
    file: str,
    tp: int | None,
    listed: tuple[tuple[str, tuple[Shape, ...]], ...],
    shapes: str | None,
    unmatched_dim: int | None,
    any_patterns: bool,
    lowered: bool,
    limits: tuple[tuple[str, int], ...],
    as_json: bool,
) -> None:
    """Print the shard maps that DeepSpeed's entry in FILE comes to, checked as they are read.

    Trees where categories are translated (a document shardmap), normal forms for affine maps (a document lowered).
    """
    from shardscope.app.cli.map_text import by_tensor
    from shardscope.engine import read_deepspeed, read_shapes, translate_deepspeed
    from shardscope.engine.geometry.language.document import written
    from shardscope.engine.model.limits import Limits, with_overrides

    bounds = with_overrides(Limits(), dict(limits))
    found = read_deepspeed(file, bounds)
    known = {} if shapes is None else dict(read_shapes(shapes, bounds))
    for name, given in listed:
        known[name] = given * (tp or 1) if len(given) == 1 else given
        if tp is not None and len(known[name]) != tp:
            raise click.UsageError(
                f"{name!r} has {len(known[name])} shards, and --tp says {tp}.", click.get_current_context()
            )
    if not known and not found.affine:
        raise click.UsageError(
            "There is no affine map, and categories need the shapes of the shards: --shard or --shards.",
            click.get_current_context(),
        )
    translations = translate_deepspeed(found, known, strict=not any_patterns, unmatched_dim=unmatched_dim)
    refuse(session, translations)
    made = translations.parameters
    ranks = {len(one.lowered.ranks) for one in made.values() if one.lowered is not None}
    if lowered or any(one.map is None for one in made.values()) or len(ranks) > 1:
        parts = by_tensor(
            LOWERED, ((name, written(one.lowered)) for name, one in made.items() if one.lowered is not None)
        )
    else:
        mesh = {"tp": {"axes": [{"name": "tp", "size": ranks.pop()}]}}
        trees = (
            (name, {"shape": one.map.shape, "map": one.map.map, "mesh": "tp"})
            for name, one in made.items()
            if one.map is not None
        )
        parts = by_tensor(SHARD_MAP, trees, before=f'"meshes":{json.dumps(mesh)},')
    session.out.write(b"".join(parts))


def refuse(session: Session, found: "Translations") -> None:
    """Say what was refused and what was decided; raises `Fault` with the first refusal."""
    from shardscope.engine.model.blocker import Fault, blocker
    from shardscope.engine.model.text import display_name

    for one in found.parameters.values():
        for warning in one.warnings:
            session.narrate(blocker(warning, one.name).message)
        if one.decided:
            session.narrate(f"{display_name(one.name, 120)}: {one.decided}")
    every: list[tuple[Finding, str | None]] = [
        (one.refusal, one.name) for one in found.refused if one.refusal is not None
    ]
    every += [(finding, None) for finding in found.findings]
    for finding, name in every[1:]:
        session.out.narrate(f"shardscope: {blocker(finding, name).message} [{finding.code}]")
    for finding, name in every[:1]:
        raise Fault(finding.code, **{**({} if name is None else {"tensor": name}), **finding.params})


@command(
    "to-deepspeed",
    short_help="Write maps as DeepSpeed's affine_map container.",
    examples=(("shardscope map to-deepspeed map.json > affine_map.json", "As deepspeed 0.19.8 writes it."),),
    notes="""Padding, index lists and factors that no floating-point number comes near have no place in the container: a map with
    one of them is refused.""",
    exits=EXITS,
)
@click.argument("file", type=click.Path())
@reading
@click.option("--json", "as_json", is_flag=True, help="Print errors as JSON, too; the container always is.")
@click.pass_obj
def to_deepspeed(session: Session, file: str, limits: tuple[tuple[str, int], ...], as_json: bool) -> ExitCode:
    """Print the maps of FILE as the affine_map container of DeepSpeed, format version 1."""
    import msgspec

    from shardscope.engine import to_deepspeed as container
    from shardscope.engine.model.text import json_escape

    (maps,) = opened((file,), limits)
    session.out.write(json_escape(msgspec.json.encode(container(maps)).decode()).encode() + b"\n")
    return ExitCode.OK

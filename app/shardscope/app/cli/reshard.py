"""`shardscope reshard`: the files of another topology's ranks, straight from the fragments of a checkpoint."""

import threading
from typing import TYPE_CHECKING, Any

import click

from shardscope.app.cli.carrying_out import Job, carry_out, carrying_out
from shardscope.app.cli.command import command
from shardscope.app.cli.examine import reading
from shardscope.app.cli.plan import EXITS
from shardscope.app.cli.plan_shown import print_plan
from shardscope.app.cli.planning import bounds_of, choosing, decoding_of, options_of
from shardscope.app.cli.session import Session
from shardscope.app.cli.watching import watching
from shardscope.engine.model.exits import ExitCode

if TYPE_CHECKING:
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.converting.resharding import Aim
    from shardscope.engine.geometry.mapping.targets import Sharding
    from shardscope.engine.model.progress import OnProgress

WORD = "reshard"
"""What a person types to start."""
_ZERO: "dict[str, Sharding]" = {"0": "none", "1": "zero1", "2": "zero2", "3": "zero3"}


@command(
    "reshard",
    short_help="Write the shards of another topology's ranks.",
    examples=(
        ("shardscope reshard ./ckpt ./tp4 --tp 4", "Four tensor-parallel ranks, cut by the table that fits."),
        (
            "shardscope reshard ./ckpt ./out --decode --tp 4 --pp 2 --dp 2 --zero 3",
            "Stages, and flattened stretches among data-parallel ranks.",
        ),
        (
            "shardscope reshard ./ckpt ./out --target target.json",
            "A target as a shard map (docs/geometry.md), by the names of the tensors.",
        ),
        (
            "shardscope reshard ./ckpt ./out --dp 8 --fsdp --layout dcp-safetensors",
            "What PyTorch's Hugging Face storage reader loads.",
        ),
        (
            "shardscope reshard ./hf ./vllm --tp 2 --layout vllm --fuse vllm-llama",
            "Files of vLLM's workers, with its fused projections.",
        ),
        (
            "shardscope reshard ./ckpt --target target.json --plan-only --json > transfer.json",
            "Every copy, pair by pair of ranks, for a transport of your own.",
        ),
    ),
    notes="""No tensor is put together on the way: a target's map after the inverse of the source's says which bytes of which fragment go where.
    Everything else is as in convert: planned, admitted, staged, read back, promoted by one rename.

    Which dimension of which tensor ranks cut is told by a table (--cuts) and never by a guess; a tensor without a rule refuses the
    whole. Optimizer states move with their parameters (--component all). No output is an exact resume of a training run.""",
    exits=(*EXITS[:-2], ExitCode.OUTPUT, *EXITS[-2:]),
)
@reading
@choosing
@click.argument("target", metavar="OUT", type=click.Path(), required=False)
@click.option(
    "--target",
    "map_file",
    metavar="MAP",
    type=click.Path(),
    help="A shard map, or its normal form, of every tensor.",
)
@click.option("--tp", type=click.IntRange(1), help="Tensor-parallel ranks.")
@click.option("--pp", type=click.IntRange(1), help="Stages of a pipeline.")
@click.option("--dp", type=click.IntRange(1), help="Data-parallel ranks.")
@click.option("--ep", type=click.IntRange(1), help="Expert-parallel ranks, among the data-parallel ones.")
@click.option(
    "--zero",
    type=click.Choice(list(_ZERO)),
    help="Stage of ZeRO: optimizer states in flattened stretches among data-parallel ranks, from 3 on weights, too.",
)
@click.option(
    "--fsdp", is_flag=True, help="Slices of dimension 0 among data-parallel ranks, as FSDP2 cuts them."
)
@click.option(
    "--cuts",
    metavar="NAME|FILE",
    help="The layout table that says how ranks cut which tensor; by default the only packaged one with rules for all.",
)
@click.option(
    "--fuse",
    metavar="NAME|FILE",
    help="A naming taken the other way: a model's tensors put end to end as its producer has them.",
)
@click.option(
    "--vocab-multiple",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Pad vocabularies with zeros to a multiple of it that divides among --tp.",
)
@click.option(
    "--layout",
    type=click.Choice(["ranks", "dcp-safetensors", "vllm"]),
    default="ranks",
    show_default=True,
    help="How files are named and what stands beside them.",
)
@click.option(
    "--plan-only", is_flag=True, help="Write nothing: print the plan, with --json every copy of it."
)
@carrying_out
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the manifest as one JSON document; with --plan-only the copies.",
)
@click.pass_obj
def reshard(
    session: Session,
    /,
    path: str,
    target: str | None,
    plan_only: bool,
    decode: bool,
    config: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
    progress: bool | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Write the shards of another topology's ranks, made of the checkpoint at PATH, to the new folder OUT.

    The target is a shard map, or numbers of ranks and a table. What appears is described by maps beside it, and shardscope reads it back.
    """
    from msgspec.structs import replace

    from shardscope.engine.converting.preparing import admitted_here
    from shardscope.engine.converting.resharding import prepare_reshard, transfers

    bounds = bounds_of(limits)
    aim = _aim(given, limits)
    options = replace(options_of(given), fuse=given.pop("fuse"))

    def planned(cancel: threading.Event, report: "OnProgress | None") -> "Prepared":
        return prepare_reshard(
            path,
            options,
            aim,
            decoding=decoding_of("convert", limits, decode=decode, compares_all=not plan_only),
            config=config,
            limits=bounds,
            hf_cache=hf_cache,
            cancel=cancel,
            progress=report,
        )

    if plan_only:
        with (
            session.interrupt.cooperative() as cancel,
            watching(session, progress, machine=as_json) as report,
        ):
            prepared = planned(cancel, report)
        return print_plan(
            session, admitted_here(prepared.plan, target), transfers(prepared) if as_json else None
        )
    if target is None:
        raise click.UsageError(
            "OUT is missing; without it only --plan-only works.", click.get_current_context()
        )
    job = Job(path, target, WORD, bounds, hf_cache, decode, progress, as_json)
    return carry_out(session, job, given, planned)


def _aim(given: dict[str, Any], limits: tuple[tuple[str, int], ...]) -> "Aim":
    """Return the target that the options come to. Takes what is its own out of `given`."""
    from shardscope.engine import read_shard_map
    from shardscope.engine.converting.resharding import Aim
    from shardscope.engine.geometry.mapping.targets import Numbers

    ctx = click.get_current_context()
    map_file, cuts, layout = (given.pop(name) for name in ("map_file", "cuts", "layout"))
    counts = {name: given.pop(name) for name in ("tp", "pp", "dp", "ep")}
    zero, fsdp, multiple = (given.pop(name) for name in ("zero", "fsdp", "vocab_multiple"))
    numbered = any(count is not None for count in counts.values())
    if map_file is not None:
        if numbered or zero is not None or fsdp or cuts is not None or multiple != 1:
            raise click.UsageError(
                "--target stands alone: its map says all that numbers and tables would.", ctx
            )
        return Aim(layout, read_shard_map(map_file, bounds_of(limits)))
    if fsdp and zero not in (None, "0"):
        raise click.UsageError("--fsdp and --zero are two ways to share; choose one.", ctx)
    if not numbered:
        return Aim(layout)
    sharding: Sharding = "fsdp" if fsdp else _ZERO[zero or "0"]
    numbers = Numbers(
        **{name: count or 1 for name, count in counts.items()},
        sharding=sharding,
        vocabulary_multiple=multiple,
    )
    return Aim(layout, None, numbers, cuts)

"""`shardscope tensors --map`: the map of one tensor of a checkpoint in words, with a picture."""

from typing import TYPE_CHECKING

import click

from shardscope.app.cli.limit import nearest
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode, most_specific
from shardscope.engine.model.schemas import MAP_EXPLANATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.catalogue import LogicalTensor


def show_map(
    session: Session, found: "Inspection", name: str, rank: int | None, *, as_json: bool
) -> ExitCode:
    """Print the map of every tensor of a name: several, where ranks have their own. Returns the exit code of what is wrong with it.

    Raises `click.BadParameter` for a name or a rank that is not there, `Fault` for a map that is too broken or too large.
    """
    from shardscope.app.cli.map_explain import lines
    from shardscope.engine.model.codes import CODES
    from shardscope.engine.model.mapdocuments import MapExplanationDocument
    from shardscope.engine.peeking.tensormaps import explained

    made = [explained(tensor, rank=rank) for tensor in named(found, name)]
    if rank is not None and not any(rank in shard.ranks for one in made for shard in one.shards):
        raise click.BadParameter(f"no shard has the number {rank}.", param_hint="--rank")
    if as_json:
        session.out.write_document(MapExplanationDocument(MAP_EXPLANATION, tuple(made)))
    else:
        texts = ["\n".join(lines(one, rank, everything=session.verbose > 0)) for one in made]
        session.out.write_text("\n\n\n".join(texts) + "\n")
    return most_specific({CODES[item.code].exit or ExitCode.BLOCKED for one in made for item in one.blockers})


def named(found: "Inspection", name: str) -> "Sequence[LogicalTensor]":
    """Return the tensors of a name: as they were decoded, otherwise as headers have them. Raises `click.BadParameter`."""
    from shardscope.engine.peeking.tensormaps import whole_of

    if found.catalogue is not None:
        names = [tensor.name for tensor in found.catalogue.tensors]
        tensors = [tensor for tensor in found.catalogue.tensors if tensor.name == name]
    else:
        names = list(found.tensors.names)
        tensors = [whole_of(found.tensors[row]) for row, each in enumerate(names) if each == name]
    if not tensors:
        hint = nearest(name, tuple(names))
        more = "" if found.catalogue is not None else " What lies behind pickles is listed with --decode."
        raise click.BadParameter(f"there is no tensor {name!r}.{hint}{more}", param_hint="--map")
    return tensors

"""What the metadata of a distributed save tells beside its tensors: who wrote, how it was cut, which state is in it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats.decode.dcp_metadata import Saved, SavedTensor, in_words
from shardscope.engine.formats.decode.torch_components import parts_of
from shardscope.engine.formats.rank_grid import rank_grid
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import ProducerFact
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

_DATA: Final = re.compile(r".*?__(?P<rank>\d{1,9})_\d{1,9}\.distcp")
_HIGHEST: Final = 1 << 30


def evidence_of(saved: Saved) -> Evidence:
    """Return what the metadata says in one clause."""
    columns = saved.metadata[0].columns
    chunks = sum(len(tensor.chunks) for tensor in saved.tensors.values())
    version = f", version {display_name(columns.version, 20)}" if columns.version else ", without a version"
    says = (
        f"metadata of {counted(len(saved.tensors), 'tensor')} in {counted(chunks, 'chunk')} and of "
        f"{counted(len(saved.objects), 'object')}{version}"
    )
    return Evidence(EvidenceKind.PICKLE, saved.metadata[0].entry.text, says, Basis.DECLARED)


def producer_of(saved: Saved) -> ProducerFact:
    """Return the writer that the class of the metadata names."""
    says = f"{saved.metadata[0].entry.text}: an object of its class Metadata"
    return ProducerFact("torch.distributed.checkpoint", None, Basis.DECLARED, says)


def topology_of(saved: Saved) -> Topology:
    """Return the ranks that wrote what the metadata names; files of other saves are none of it."""
    by_rank = _by_rank({name: entry.text for name, entry in saved.files.items()})
    missing = _by_rank({name: name for name in saved.missing})
    for item in saved.metadata if len(saved.metadata) > 1 else ():
        rank = item.entry.name.removeprefix("__").partition(".")[0]
        if rank.isdigit() and int(rank) < _HIGHEST:
            by_rank.setdefault(int(rank), []).insert(0, item.entry.text)
    seen = sorted({*by_rank, *missing})
    if not seen:
        return Topology(note=_cuts(saved.tensors.values()))
    writers = saved.metadata[0].columns.writers
    if writers is not None and seen[-1] < writers < _HIGHEST:
        world = Axis("world", writers, Basis.DECLARED, "the metadata has the plan of each rank")
    elif len(saved.metadata) > 1:
        world = Axis("world", seen[-1] + 1, Basis.OBSERVED, "each rank left its own metadata")
    else:
        says = f"rank {seen[-1]:,} is the highest that wrote something; others may have had nothing to write"
        world = Axis("world", seen[-1] + 1, Basis.INFERRED, says)
    grid = rank_grid((rank,) for rank in by_rank) if by_rank else None
    mesh = Mesh(
        name="world",
        axes=(
            world,
            Axis("rank", seen[-1] + 1, Basis.OBSERVED, "the data files that the metadata names"),
        ),
        ranks_seen=grid.seen if grid is not None else (),
        ranks_missing=tuple((rank,) for rank in sorted(missing.keys() - by_rank.keys())),
    )
    files = tuple(RankFiles("world", (rank,), tuple(by_rank[rank])) for rank in sorted(by_rank))
    return Topology((mesh,), files, _cuts(saved.tensors.values()))


def _by_rank(names: Mapping[str, str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, shown in sorted(names.items()):
        match = _DATA.fullmatch(name)
        if match is not None and int(match["rank"]) < _HIGHEST:
            found.setdefault(int(match["rank"]), []).append(shown)
    return found


def _cuts(tensors: Iterable[SavedTensor]) -> str | None:
    """Return into which grids tensors are cut, the most frequent ones first."""
    grids: Counter[tuple[int, ...]] = Counter()
    for tensor in tensors:
        columns = zip(*(chunk.offsets for chunk in tensor.chunks), strict=True)
        grids[tuple(len(set(offsets)) for offsets in columns)] += 1
    cut = [(grid, count) for grid, count in grids.most_common() if any(size > 1 for size in grid)]
    whole = sum(grids.values()) - sum(count for _, count in cut)
    if not cut:
        return "Every tensor is stored in one piece." if whole else None
    words = ", ".join(f"{in_words(grid)} ({count:,})" for grid, count in cut[:6])
    more = f" and {len(cut) - 6:,} other grids" if len(cut) > 6 else ""
    rest = f"; {counted(whole, 'tensor')} in one piece" if whole else ""
    return f"Tensors are cut into grids of {words}{more}{rest}. The mesh behind the cuts is not recorded."


def scope_of_keys(
    state: StateScope, keys: Sequence[str], tensors: Sequence[LogicalTensor], source: str
) -> StateScope:
    """Return the state scope with what the keys of the metadata name; what no key names is not in this save."""
    top: dict[str, int] = {}
    for key in keys:
        first = key.partition(".")[0]
        top[first] = top.get(first, 0) + 1
    found: dict[str, StatePart] = {}
    for part, key in parts_of(top).items():
        says = f"{counted(top[key], 'key')} under {display_name(key, 80)}"
        found[part] = StatePart(Presence.PRESENT, Basis.OBSERVED, says, (source,))
    for part, component, noun in (("weights", "model", "model"), ("optimizer", "optimizer", "optimizer")):
        named = [tensor for tensor in tensors if tensor.component == component]
        if named:
            lacking = sum(tensor.note is not None for tensor in named)
            says = counted(len(named), "tensor") + (f", {lacking:,} of them incomplete" if lacking else "")
            found[part] = StatePart(Presence.PRESENT, Basis.OBSERVED, says, (source,))
        else:
            found[part] = StatePart(Presence.ABSENT, Basis.OBSERVED, f"no tensor of the {noun} is named")
    for part in ("scheduler", "rng", "scaler", "progress", "data_position"):
        known: StatePart = getattr(state, part)
        if part not in found and known.presence is Presence.UNKNOWN:
            says = f"no key of the metadata is named like {part.replace('_', ' ')} state"
            found[part] = StatePart(Presence.ABSENT, Basis.INFERRED, says)
    return replace(state, **found)

"""The files of one weight set, its index and its headers, as far as each can be read: what is wrong, and which tensor counts."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats.hf_index import CrossCheck, Index, locate, read_index
from shardscope.engine.formats.probe import Probe, explained
from shardscope.engine.formats.protocol import Claim
from shardscope.engine.formats.safetensors_sets import SUFFIX
from shardscope.engine.formats.set_checks import check_group
from shardscope.engine.formats.weight_sets import Layout, NumberedGroup, WeightSet, layout_of, weight_sets
from shardscope.engine.mending.headers import WeightFile, read_file, unreadable
from shardscope.engine.mending.holdings import Found, Survey
from shardscope.engine.model.blocker import Fault, Finding, Param, blocker
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.repair import Repair
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.parse.sniff import unfinished_download

_GONE: Final = frozenset({"index.shard_missing", "index.shard_unreadable", "index.tensor_missing"})
_NAMED: Final = 6
_COUNTED: Final = "findings.more"


def survey(probe: Probe, claim: Claim, globs: Sequence[str] = ()) -> Survey:
    """Return what the weight set of a claim holds; `globs` choose its files by name.

    Raises `Fault`: `fix.several_sets`, `fix.no_weights`, `fix.no_match`, `limit.*`, `source.*`; `Cancelled`.
    """
    folder = probe.folder(claim.folder)
    layout = layout_of(folder.only(claim.files), SUFFIX)
    if not layout.files and probe.inventory.root_is_file:
        layout = Layout((), (), ((claim.files[0], _stem(claim.files[0].name)),))
    probe.blockers.clear()
    indexes = [read_index(probe, entry) for entry, _ in layout.indexes]
    about_indexes = list(probe.blockers)
    chosen, index = _chosen(layout, indexes, globs)
    entry = chosen.index
    probe.blockers[:] = [
        item for item in about_indexes if entry is not None and item.subject == shown(entry.text)
    ]
    entries = _listed(probe, index, chosen.files, entirely=bool(globs))
    files = _read(probe, entries)
    group = None if probe.inventory.root_is_file else _group(layout, entries)
    check_group(probe, Layout((), () if group is None else (group,), ()))
    _check(probe, index, chosen, files)
    found = [
        *(
            Found(item, "salvage" if item.code in _GONE else "index")
            for item in probe.blockers
            if item.code != _COUNTED
        ),
        *(
            Found(blocker(flaw.finding, file.entry.text), flaw.repair)
            for file in files
            for flaw in file.flaws
        ),
    ]
    ours = {each.path for each in entries} | ({entry.path} if entry is not None else set())
    strays = [
        each for each in (*layout.files, *(each for each, _ in layout.indexes)) if each.path not in ours
    ]
    if strays and not globs:
        sets = ", ".join(display_name(each.name) for each in strays[:_NAMED])
        aside: dict[str, Param] = {"count": 1 + len(strays), "sets": f"{chosen.key}, {sets}"}
        where = path_text(claim.folder) or "."
        found.append(Found(blocker(Finding("layout.weight_sets", aside), where), "index"))
    looked = Survey(
        key=_key(layout, chosen, entries),
        folder=claim.folder,
        files=tuple(files),
        strays=tuple(sorted(strays, key=lambda each: each.path)),
        index=entry,
        entries=_places(index, probe, entries),
        targets={} if index is None else index.weight_map,
        index_metadata=index.metadata if index is not None and isinstance(index.metadata, dict) else {},
        found=tuple(found),
        chosen=bool(globs),
        group=group,
        numbered=frozenset(shard.entry.path for each in layout.groups for shard in each.shards),
    )
    return replace(looked, found=_settled(looked))


def _settled(looked: Survey) -> tuple[Found, ...]:
    """Return what is wrong, where that an index misses what stands elsewhere needs no more than another index."""
    files = {shown(item.file) for item in looked.lost}
    gaps = any(item.code in ("index.shard_missing", "layout.shard_gap") for item in looked.lost)

    def mends(each: Found) -> Repair:
        if each.blocker.code == "layout.shard_gap":
            return "salvage" if gaps else "index"
        here = each.blocker.code not in _GONE or each.blocker.params.get("target") in files
        return each.repair if here else "index"

    return tuple(Found(each.blocker, mends(each)) for each in looked.found)


def _stem(name: str) -> str:
    """Return what a file of another suffix is called that turned out to be safetensors: less the mark of a download."""
    unfinished = unfinished_download(name)
    if unfinished is not None:
        name = name.removesuffix(str(unfinished.params["marker"]))
    return name.removesuffix(f".{SUFFIX}")


def _chosen(
    layout: Layout, indexes: Sequence[Index | None], globs: Sequence[str]
) -> tuple[WeightSet, Index | None]:
    """Return the one set that is meant, and its index where that can be read."""
    sets = weight_sets(layout, [index.files if index else () for index in indexes])
    by_entry = {index.entry.path: index for index in indexes if index is not None}
    if globs:
        chosen = _by_name(layout, sets, globs)
    else:
        filled = [_joined(found, sets) for found in sets]
        whole = [found for found in filled if found.files]
        if not whole:
            raise Fault("fix.no_weights", found="no file named *.safetensors")
        candidates = _candidates(whole)
        if len(candidates) > 1:
            names = ", ".join(_described(found) for found in candidates[:_NAMED])
            raise Fault("fix.several_sets", count=len(candidates), sets=names)
        chosen = candidates[0]
    return chosen, None if chosen.index is None else by_entry.get(chosen.index.path)


def _candidates(whole: Sequence[WeightSet]) -> Sequence[WeightSet]:
    """Return the sets that could be meant: the one with an index, unless a file stands beside it that loaders take before it."""
    indexed = [found for found in whole if found.index is not None]
    if len(indexed) != 1:
        return whole
    rivals = [found for found in whole if found.index is None and found.key == indexed[0].key]
    rivals = [found for found in rivals if not set(found.files) <= set(indexed[0].files)]
    return [*indexed, *rivals]


def _described(found: WeightSet) -> str:
    first = display_name(found.files[0].name)
    return first if len(found.files) == 1 else f"{first} and {len(found.files) - 1:,} more"


def _joined(found: WeightSet, sets: Sequence[WeightSet]) -> WeightSet:
    """Give an index that names no file here, or cannot be read, the files that are called like it."""
    if found.index is None or found.files:
        return found
    files = [file for other in sets if other.index is None and other.key == found.key for file in other.files]
    return WeightSet(found.key, found.index, tuple(files), found.group)


def _by_name(layout: Layout, sets: Sequence[WeightSet], globs: Sequence[str]) -> WeightSet:
    files = tuple(entry for entry in layout.files if any(fnmatchcase(entry.name, glob) for glob in globs))
    unmatched = [glob for glob in globs if not any(fnmatchcase(entry.name, glob) for entry in layout.files)]
    if unmatched:
        raise Fault("fix.no_match", option="--file", pattern=unmatched[0], count=len(layout.files))
    paths = {entry.path for entry in files}
    owners = [found for found in sets if paths & {entry.path for entry in found.files}]
    indexed = [found for found in owners if found.index is not None]
    owner = indexed[0] if len(indexed) == 1 else owners[0]
    return WeightSet(owner.key, owner.index if len(indexed) == 1 else None, files, None)


def _key(layout: Layout, chosen: WeightSet, entries: Sequence[Entry]) -> str:
    """Return what the files of a set are called: as its index, as all of them, or as no file in particular."""
    if chosen.index is not None:
        return next(key for entry, key in layout.indexes if entry.path == chosen.index.path)
    keys = {shard.entry.path: shard.key for group in layout.groups for shard in group.shards}
    keys |= {entry.path: key for entry, key in layout.singles}
    found = {keys.get(entry.path, "") for entry in entries}
    return found.pop() if len(found) == 1 else ""


def _listed(probe: Probe, index: Index | None, files: Sequence[Entry], *, entirely: bool) -> list[Entry]:
    """Return the files of a set, those of sub-folders that its index names among them, by path. `entirely`: no other than these."""
    found = {entry.path: entry for entry in files}
    if index is not None and not entirely:
        for target in index.files:
            entry = locate(probe, index, target)
            if entry is not None and entry.name.lower().endswith(f".{SUFFIX}"):
                found[entry.path] = entry
    return sorted(found.values(), key=lambda entry: entry.path)


def _read(probe: Probe, entries: Sequence[Entry]) -> list[WeightFile]:
    files: list[WeightFile] = []
    headers = tensors = 0
    for done, entry in enumerate(entries):
        probe.checkpoint("headers", done, len(entries), entry)

        def read(reader: Reader, entry: Entry = entry) -> WeightFile:
            try:
                return read_file(entry, reader, probe.limits)
            except Fault as fault:
                if fault.finding.code.startswith(("limit.", "source.")):
                    raise
                return unreadable(entry, explained(fault, reader, Nature.SAFETENSORS))

        file = probe.guarded(entry, read)
        if file is None:
            refused = probe.blockers[-1]
            raise Fault(refused.code, **refused.params)
        files.append(file)
        headers += file.data_begin
        tensors += len(file.tensors) + len(file.lost)
        if headers > probe.limits.header_bytes_total:
            raise Fault("limit.header_bytes_total", limit=probe.limits.header_bytes_total, found=headers)
        if tensors > probe.limits.tensors:
            raise Fault("limit.tensors", limit=probe.limits.tensors, found=tensors)
    return files


def _group(layout: Layout, entries: Sequence[Entry]) -> NumberedGroup | None:
    """Return the numbered group that all of some files are in; null where they are of none, or of several."""
    paths = {entry.path for entry in entries}
    for group in layout.groups:
        if paths and paths <= {shard.entry.path for shard in group.shards}:
            return NumberedGroup(
                group.key, group.total, tuple(each for each in group.shards if each.entry.path in paths)
            )
    return None


def _check(probe: Probe, index: Index | None, chosen: WeightSet, files: Sequence[WeightFile]) -> None:
    """Report where index and headers disagree, and tensors that more than one file has where no index decides."""
    if index is None:
        if len(files) > 1 and chosen.index is None:
            pattern = f"{chosen.key}-*-of-*.{SUFFIX}"
            probe.report("index.absent", files[0].entry, count=len(files), pattern=pattern)
        _duplicates(probe, {}, files)
        return
    check = CrossCheck(probe, index)
    check.absent()
    for file in files:
        if file.readable:
            size = sum(tensor.end - tensor.begin for tensor in file.tensors)
            size += sum(item.bytes or 0 for item in file.lost)
            check.compare_names(file.entry, file.names, size)
        else:
            check.unreadable(file.entry)
    check.total()
    _duplicates(probe, index.weight_map, files)


def _duplicates(probe: Probe, weight_map: Mapping[str, str], files: Sequence[WeightFile]) -> None:
    first: dict[str, str] = {}
    twice: list[tuple[str, str, str]] = []
    for file in files:
        for name in file.names:
            other = first.setdefault(name, file.entry.text)
            if other != file.entry.text and name not in weight_map:
                twice.append((name, other, file.entry.text))
    if twice:
        name, one, other = twice[0]
        probe.report("index.tensor_duplicate", one, count=len(twice), tensor=name, target=other)


def _places(index: Index | None, probe: Probe, entries: Sequence[Entry]) -> dict[str, int | None]:
    """Return the number of the file to which an index sends a loader, for each name in it."""
    if index is None:
        return {}
    numbers = {each.path: number for number, each in enumerate(entries)}
    places: dict[str, int | None] = {}
    for target in index.files:
        found = locate(probe, index, target)
        places[target] = None if found is None else numbers.get(found.path)
    named = {name: places[target] for name, target in index.weight_map.items()}
    return named | dict.fromkeys(index.unfollowed)

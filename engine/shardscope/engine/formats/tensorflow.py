"""TensorFlow: SavedModel folders and checkpoints. Recognised only.

A SavedModel holds `saved_model.pb` and `variables/`; a checkpoint is `name.index` with `name.data-00000-of-00002`, numbered from
zero, and a text file `checkpoint` that names the newest (tensorflow `core/util/tensor_bundle`, `core/protobuf`). An index is
a table of LevelDB: it ends in a fixed number.
"""

import re
from typing import Final

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import magic, named, part, unread
from shardscope.engine.formats.set_checks import report_sets
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted

_MODELS: Final = ("saved_model.pb", "saved_model.pbtxt")
_TRACKER: Final = "checkpoint"
_DATA: Final = re.compile(r"(?P<name>.+)\.(data-(?P<number>\d{1,9})-of-(?P<total>\d{1,9}))", re.ASCII)
_NEWEST: Final = re.compile(r'model_checkpoint_path:\s*"((?:[^"\\\n]|\\.){1,4096})"')
_NO_CONTENT: Final = frozenset({Nature.EMPTY, Nature.ZEROS, Nature.LFS_POINTER})
_TABLE_END: Final = (0xDB4775248B80FB57).to_bytes(8, "little")


class Tensorflow:
    """The family `tensorflow`."""

    name = "tensorflow"
    general = False
    hint = Hint(("pb", "pbtxt", "index", "data"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim a SavedModel with its folders, or the files of checkpoints."""
        models = [folder.files[name] for name in _MODELS if name in folder.files]
        if models:
            owned = tuple(
                _below(folder, n) for n in ("variables", "assets", "assets.extra") if n in folder.folders
            )
            below = [entry for path in owned for entry in probe.folder(path).files.values()]
            beside = [
                entry for name, entry in folder.files.items() if name.endswith(".pb") and name not in _MODELS
            ]
            evidence = named(models[0], f"named {models[0].name}")
            return Claim(
                self.name, folder.path, (*models, *beside, *below), Confidence.LOW, (evidence,), owned
            )
        indexes = folder.with_suffix("index")
        data = folder.with_suffix(*(suffix for suffix in folder.suffixes if suffix.startswith("data-")))
        if not data and not (indexes and _TRACKER in folder.files):
            return Alternative(self.name, "*.index without data files or a tracker") if indexes else None
        metas = [entry for entry in folder.with_suffix("meta") if entry.name[:-5] + ".index" in folder.files]
        tracker = [folder.files[_TRACKER]] if _TRACKER in folder.files else []
        first = (data or indexes)[0]
        says = (
            f"{counted(len(indexes), 'file')} named *.index, {counted(len(data), 'file')} named *.data-*-of-*"
        )
        return Claim(
            self.name,
            folder.path,
            (*indexes, *data, *metas, *tracker),
            Confidence.LOW,
            (named(first, says),),
        )

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Check numbers, and the end of each index."""
        model = next((entry for entry in claim.files if entry.name in _MODELS), None)
        if model is not None and not any(path.endswith(b"variables") for path in claim.owned):
            probe.report("tensorflow.variables_missing", model)
        tracker = next((entry for entry in claim.files if entry.name == _TRACKER), None)
        indexes = {_key(entry, ".index"): entry for entry in claim.files if entry.name.endswith(".index")}
        parts: dict[str, list[tuple[Entry, int, int]]] = {}
        for entry in claim.files:
            match = _DATA.fullmatch(entry.name)
            if match is not None:
                key = _key(entry, f".{match[2]}")
                parts.setdefault(key, []).append((entry, int(match["number"]), int(match["total"])))
        evidence = [
            found for entry in claim.files if entry.name in _MODELS and (found := _graph(probe, entry))
        ]
        evidence += [found for entry in indexes.values() if (found := _index(probe, entry)) is not None]
        for key, pieces in sorted(parts.items()):
            _check_parts(probe, key, pieces)
            if key not in indexes:
                probe.report("tensorflow.index_missing", f"{key}.data-*", pattern=f"{key}.data-*")
        for key, entry in sorted(indexes.items()):
            if key not in parts:
                probe.report("tensorflow.data_missing", entry)
        saves = sorted({*indexes, *parts})
        if model is None:
            report_sets(probe, claim.folder, saves)
        if tracker is not None:
            evidence += _tracker(probe, tracker, set(saves))
        components = [
            part(
                claim,
                key,
                [*([indexes[key]] if key in indexes else []), *(e for e, _, _ in parts.get(key, ()))],
            )
            for key in saves
        ]
        if model is not None:
            graph = [entry for entry in claim.files if entry.name.endswith((".pb", ".pbtxt"))]
            components.insert(0, part(claim, model.name, graph, kind="graph"))
        seen = any(item.kind is EvidenceKind.MAGIC for item in evidence)
        return unread(probe, claim, claim.files, seen=seen, evidence=evidence, components=components)


def _below(folder: Folder, name: str) -> bytes:
    return folder.path + b"/" + name.encode() if folder.path else name.encode()


def _key(entry: Entry, end: str) -> str:
    return entry.text[: -len(end)]


def _graph(probe: Probe, entry: Entry) -> Evidence | None:
    """Look at the first fields of a SavedModel: its schema version, which is 1, and the first graph."""
    sniff = probe.sniff(entry)
    if sniff is not None and sniff.nature in _NO_CONTENT:
        probe.expect(entry, Nature.TEXT)
    if probe.peek(entry, 3) != b"\x08\x01\x12":
        return None
    return magic(entry, "starts like a SavedModel of schema version 1")


def _index(probe: Probe, entry: Entry) -> Evidence | None:
    if probe.peek(entry, 8, -8) != _TABLE_END:
        probe.report("tensorflow.index_magic", entry)
        return None
    return magic(entry, "ends like the table of a TensorFlow checkpoint")


def _check_parts(probe: Probe, key: str, found: list[tuple[Entry, int, int]]) -> None:
    totals = sorted({total for _, _, total in found})
    pattern = f"{key}.data-*"
    if len(totals) > 1:
        words = ", ".join(f"{total:,}" for total in totals[:8])
        probe.report("layout.totals_mixed", pattern, pattern=pattern, totals=words)
    for total in totals:
        numbers = {number for _, number, of in found if of == total and number < total}
        missing = total - len(numbers)
        if missing and not probe.inventory.root_is_file:
            first = next(number for number in range(len(numbers) + 1) if number not in numbers)
            probe.report(
                "layout.shard_gap", pattern, missing=missing, total=total, pattern=pattern, first=first
            )


def _tracker(probe: Probe, entry: Entry, saves: set[str]) -> list[Evidence]:
    """Read the tracker; report what it names and is not here. A path in it is never followed."""
    text = probe.text(entry)
    if text is None:
        return []
    match = _NEWEST.search(text)
    if match is None:
        probe.report("tracker.malformed", entry, size=entry.size)
        return []
    target = match[1]
    if "/" in target or "\\" in target or target.startswith("."):
        probe.report("tracker.unsafe", entry, size=entry.size)
        return []
    prefix = entry.text[: -len(entry.name)]
    if prefix + target not in saves:
        probe.report("tracker.stale", entry, target=target)
        return []
    return [Evidence(EvidenceKind.TRACKER, entry.text, f"names {target}", Basis.DECLARED)]


TENSORFLOW: Final = Tensorflow()

"""The index of a sharded Hugging Face save, read within bounds and checked against files and headers entry by entry.

An index is `{"metadata": {"total_size": N}, "weight_map": {tensor: file}}` (huggingface_hub
`serialization/_base.py`). Three different things can be wrong with an entry and each is said in its own words: the
index does not name a tensor, the file is absent, or the file's header lacks the tensor.
"""

from collections import Counter
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.facts import SafetensorsHeader
from shardscope.engine.model.source import Entry, Kind

_UNSAFE_PARTS: Final = frozenset({"", ".."})
_JSON_WORDS: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
}


def json_word(value: Any) -> str:
    """Return what JSON calls a value: `null`, `object`, `number`, ..."""
    return "null" if value is None else _JSON_WORDS.get(type(value), "value")


class Index(Struct, frozen=True):
    """A weight index whose values are known to be names of files beneath the checkpoint."""

    entry: Entry
    weight_map: dict[str, str]
    """Tensor name to file name, only for values that may be followed."""
    total_size: int | None
    unfollowed: tuple[str, ...] = ()
    """Names of tensors whose file may not be followed."""
    metadata: Any = None
    """As it stands there."""

    @property
    def files(self) -> Counter[str]:
        """How many tensors each file should hold, counted anew."""
        return Counter(self.weight_map.values())


def read_index(probe: Probe, entry: Entry) -> Index | None:
    """Return the index in `entry`; None, with a blocker, where it is none."""
    document = probe.weight_index(entry)
    if document is None:
        return None
    value = document.value
    for finding in document.notes:
        probe.note(finding, entry)
    if not isinstance(value, dict):
        probe.report("index.not_object", entry, found=json_word(value))
        return None
    if "weight_map" not in value:
        probe.report("index.map_missing", entry)
        return None
    weight_map = value["weight_map"]
    if not isinstance(weight_map, dict):
        probe.report("index.map_type", entry, found=json_word(weight_map))
        return None
    if not weight_map:
        probe.report("index.map_empty", entry)
    followed = _followed(probe, entry, weight_map)
    metadata = value.get("metadata")
    left = (
        () if len(followed) == len(weight_map) else tuple(name for name in weight_map if name not in followed)
    )
    return Index(entry, followed, _total_size(probe, entry, metadata), left, metadata)


def _total_size(probe: Probe, entry: Entry, metadata: Any) -> int | None:
    if metadata is None:
        return None
    declared = metadata.get("total_size", 0) if isinstance(metadata, dict) else metadata
    if not isinstance(declared, int) or isinstance(declared, bool) or declared < 0:
        negative = isinstance(declared, int) and not isinstance(declared, bool)
        probe.report(
            "index.total_size_type", entry, found="negative number" if negative else json_word(declared)
        )
        return None
    return declared if isinstance(metadata, dict) and "total_size" in metadata else None


def _followed(probe: Probe, entry: Entry, weight_map: dict[str, Any]) -> dict[str, str]:
    """Return the entries whose file may be looked up; say once for each bad value what is wrong with it."""
    if set(map(type, weight_map.values())) - {str}:
        wrong_type = [(name, value) for name, value in weight_map.items() if not isinstance(value, str)]
        name, value = wrong_type[0]
        probe.report("index.value_type", entry, count=len(wrong_type), tensor=name, found=json_word(value))
        weight_map = {name: value for name, value in weight_map.items() if isinstance(value, str)}
    verdicts = {}
    for target, count in Counter(weight_map.values()).items():
        code = _verdict(target, entry.name)
        verdicts[target] = code in (None, "index.path_subfolder")
        if code is not None:
            probe.report(code, entry, count=count, target=target)
    if all(verdicts.values()):
        return weight_map
    return {name: target for name, target in weight_map.items() if verdicts[target]}


def _verdict(target: str, own_name: str) -> str | None:
    if target == own_name:
        return "index.self"
    parts = target.split("/")
    hostile = (
        len(target.encode("utf-8", "surrogatepass")) > 1024
        or any(char in target for char in "\\:\0")
        or target.startswith("~")
        or _UNSAFE_PARTS.intersection(parts)
        or parts[-1] == "."
    )
    if hostile:
        return "index.path_unsafe"
    return "index.path_subfolder" if len(parts) > 1 else None


def locate(probe: Probe, index: Index, target: str) -> Entry | None:
    """Return the inventoried file that a value of the index names; None where there is none."""
    parts = [part for part in target.split("/") if part != "."]
    try:
        path = "/".join(parts).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate names no file
        return None
    folder = index.entry.folder
    found = probe.inventory.by_path.get(folder + b"/" + path if folder else path)
    return found if found is not None and found.kind is Kind.FILE else None


class CrossCheck:
    """The comparison of one index with the headers of its files, fed one header at a time."""

    def __init__(self, probe: Probe, index: Index) -> None:
        self._probe = probe
        self._index = index
        self._counts = index.files
        self._targets = {target: locate(probe, index, target) for target in self._counts}
        self._by_path = {entry.path: target for target, entry in self._targets.items() if entry is not None}
        self._tensor_bytes = 0

    @property
    def files(self) -> list[Entry]:
        """The files that the index names and that are here, by path."""
        return sorted((entry for entry in self._targets.values() if entry is not None), key=lambda e: e.path)

    def absent(self) -> bool:
        """Report the files that the index names and that are not here; tell whether there was any."""
        counts = self._counts
        gone = [target for target, entry in self._targets.items() if entry is None]
        cap = self._probe.limits.findings
        for target in gone[:cap]:
            self._probe.report(
                "index.shard_missing",
                self._index.entry,
                target=target,
                count=counts[target],
                tensor=self._names_by_file[target][0],
            )
        if gone[cap:]:
            self._probe.report(
                "findings.more", self._index.entry, count=len(gone) - cap, word="index.shard_missing"
            )
        return bool(gone)

    def unreadable(self, entry: Entry) -> None:
        """Say that a listed file could not be read."""
        target = self._by_path.get(entry.path)
        if target is not None:
            count = self._counts[target]
            self._probe.report("index.shard_unreadable", self._index.entry, target=entry.text, count=count)

    def compare(self, entry: Entry, header: SafetensorsHeader) -> bool:
        """Compare one header with what the index says of its file; tell whether they agree."""
        return self.compare_names(entry, header.names, header.data_end - header.data_begin)

    def compare_names(self, entry: Entry, names: list[str], size: int) -> bool:
        """Compare the names in one file, whose tensors take `size` bytes, with what the index says; tell whether they agree."""
        target = self._by_path.get(entry.path)
        weight_map = self._index.weight_map
        self._tensor_bytes += size
        if target is None:
            if not any(weight_map.get(name) for name in names):
                self._probe.report("index.shard_unlisted", self._index.entry, target=entry.text)
                return False
            target = entry.name
        if list(map(weight_map.get, names)).count(target) == len(names) == self._counts.get(target, 0):
            return True
        self._differences(entry, target, names)
        return False

    def _differences(self, entry: Entry, target: str, names: list[str]) -> None:
        weight_map = self._index.weight_map
        here = [name for name in names if weight_map.get(name) == target]
        expected = self._counts.get(target, 0)
        unlisted = [name for name in names if name not in weight_map]
        elsewhere = [name for name in names if name in weight_map and weight_map[name] != target]
        missing: list[str] = []
        if len(here) < expected:
            present = set(here)
            missing = [name for name in self._names_by_file[target] if name not in present]
        for code, found in (
            ("index.tensor_missing", missing),
            ("index.tensor_elsewhere", elsewhere),
            ("index.tensor_unlisted", unlisted),
        ):
            if found:
                index = self._index.entry
                self._probe.report(code, index, target=entry.text, count=len(found), tensor=found[0])

    @cached_property
    def _names_by_file(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name, target in self._index.weight_map.items():
            names.setdefault(target, []).append(name)
        return names

    def total(self) -> None:
        """Compare the declared total with what the headers hold; with files absent it tells how much is absent."""
        declared = self._index.total_size
        if declared is not None and declared != self._tensor_bytes:
            self._probe.report(
                "index.total_size", self._index.entry, declared=declared, found=self._tensor_bytes
            )

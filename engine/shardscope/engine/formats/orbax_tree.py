"""What the JSON files of an Orbax save declare: the leaves of a tree, how it was stored, and when it was committed.

Keys follow Orbax 0.12 (`_src/metadata/tree.py`, `_src/metadata/step_metadata_serialization.py`). Classes that they name are not imported.
"""

from itertools import islice
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.zarr_tree import Tree
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.secrets import find_secrets, shown
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.parse.fields import WORD
from shardscope.engine.parse.json import parse_json

_STORED: Final = frozenset({"jax.Array", "np.ndarray", "scalar"})
"""Types of leaves that are arrays of their own; texts stand in one file for all."""
_DEEPEST: Final = 64
_LEAVES: Final = 100_000
"""Leaves whose mesh is read."""


class Described(Struct, frozen=True):
    """One leaf of a tree."""

    name: str
    """Its keys joined with dots, as its folder is called."""
    written: tuple[int, ...] | None
    """Shape of the part that one process wrote at once; null where the tree does not give it."""
    stored: bool
    """It is an array with a folder of its own."""


class Description(Struct, frozen=True):
    """What `_METADATA` says of one item."""

    entry: Entry
    leaves: tuple[Described, ...]
    every_chunk: bool
    """Chunks that hold nothing but the fill value were written, too."""


def read_description(probe: Probe, entry: Entry) -> Description | None:
    """Return what `_METADATA` says; null where it describes no tree."""
    document = probe.json(entry)
    if document is None or not isinstance(document.value, dict):
        return None
    tree = document.value.get("tree_metadata")
    if not isinstance(tree, dict):
        return None
    leaves = tuple(_leaf(key, value) for key, value in tree.items())
    every = document.value.get("store_array_data_equal_to_fill_value") is True
    return Description(entry, leaves, every)


def _leaf(key: str, value: Any) -> Described:
    value = value if isinstance(value, dict) else {}
    kind = value.get("value_metadata")
    kind = kind if isinstance(kind, dict) else {}
    shape = kind.get("write_shape")
    sizes = isinstance(shape, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in shape)
    stored = kind.get("value_type") in _STORED and kind.get("skip_deserialize") is not True
    return Described(_name(key, value.get("key_metadata")), tuple(shape) if sizes else None, stored)  # type: ignore[arg-type]


def _name(key: str, path: Any) -> str:
    """Return the keys of a leaf joined with dots; the key itself where they are not given."""
    if not isinstance(path, list) or not 0 < len(path) <= _DEEPEST:
        return key
    keys = [part.get("key") if isinstance(part, dict) else None for part in path]
    return ".".join(map(str, keys)) if all(isinstance(each, str | int) for each in keys) else key


def check_arrays(probe: Probe, description: Description, tree: Tree | None) -> bool:
    """Compare the leaves of a tree with the arrays that are there; tell whether they agree."""
    found = {leaf.name: leaf.array.shape for leaf in tree.leaves} if tree is not None else {}
    if tree is not None and len(tree.leaves) < tree.described:
        return False  # descriptions that cannot be read were reported, and would all be called absent
    stored = [leaf for leaf in description.leaves if leaf.stored]
    absent = [leaf.name for leaf in stored if leaf.name not in found]
    if absent:
        probe.report("orbax.array_missing", description.entry, count=len(absent), tensor=absent[0])
    other = [
        leaf.name for leaf in stored if leaf.name in found and not _holds(found[leaf.name], leaf.written)
    ]
    if other:
        probe.report("orbax.shape", description.entry, count=len(other), tensor=other[0])
    return not absent and not other


def _holds(shape: tuple[int, ...], written: tuple[int, ...] | None) -> bool:
    """Tell whether a part of that shape can be of an array: as many dimensions, none of them longer."""
    if written is None:
        return True
    return len(shape) == len(written) and all(
        part <= whole for part, whole in zip(written, shape, strict=True)
    )


def check_chunks(probe: Probe, tree: Tree, description: Description | None) -> None:
    """Report chunks that are absent: lost where the save says that all were written."""
    lacking = tree.missing
    if not lacking:
        return
    first = lacking[0]
    count = sum(leaf.missing for leaf in lacking)
    if description is not None and description.every_chunk:
        probe.report("orbax.chunk_missing", first.entry, count=count, arrays=len(lacking), tensor=first.name)
        return
    value = first.array.fill or "zero"
    probe.report(
        "zarr.chunk_missing", first.entry, count=count, arrays=len(lacking), tensor=first.name, value=value
    )


def check_step(probe: Probe, entry: Entry) -> tuple[str, ...]:
    """Report a save without a time of commit; return the keys under which the step names Python classes."""
    document = probe.json(entry)
    if document is None or not isinstance(document.value, dict):
        return ()
    value = document.value
    if value.get("init_timestamp_nsecs") is not None and value.get("commit_timestamp_nsecs") is None:
        probe.report("orbax.uncommitted", entry)
    handlers = value.get("item_handlers")
    if isinstance(handlers, str):
        return ("item_handlers",)
    if not isinstance(handlers, dict):
        return ()
    return tuple(f"item_handlers.{shown(name, 60, possible=True)}" for name in sorted(handlers)[:1_000])


def mesh_words(probe: Probe, entry: Entry) -> str | None:
    """Return on which meshes of devices arrays were, as `_sharding` declares; null where it declares none.

    The file maps names to texts that hold JSON. Words are kept only where they look like names.
    """
    document = probe.json(entry)
    if document is None or not isinstance(document.value, dict):
        return None
    meshes: dict[str, int] = {}
    for text in islice(document.value.values(), _LEAVES):
        words = _mesh(text, probe.limits) if isinstance(text, str) else None
        if words is not None:
            meshes[words] = meshes.get(words, 0) + 1
    if not meshes:
        return None
    most = max(meshes, key=meshes.__getitem__)
    more = f", and others on {len(meshes) - 1:,} more" if len(meshes) > 1 else ""
    return f"{counted(meshes[most], 'array')} on a mesh of devices, {most}{more}"


def _mesh(text: str, limits: Limits) -> str | None:
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"), limits).value
    except Fault:
        return None
    if not isinstance(value, dict):
        return None
    names, shape = value.get("axis_names"), value.get("shape")
    if not isinstance(names, list) or not isinstance(shape, list) or len(names) != len(shape):
        return None
    sound = all(isinstance(size, int) and not isinstance(size, bool) and 0 < size < 1 << 32 for size in shape)
    words = all(isinstance(name, str) and WORD.fullmatch(name) and not find_secrets(name) for name in names)
    if not (sound and words and 0 < len(shape) <= _DEEPEST):
        return None
    return " x ".join(f"{name} {size:,}" for name, size in zip(names, shape, strict=True))

"""Quantised weights of a model, gathered by scheme, and what is missing among them or contradicts the configuration."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from shardscope.engine.anatomy.items import Item
from shardscope.engine.anatomy.schemes import FP8, Leaves, Packed, of_block_type, packed_of
from shardscope.engine.model.anatomy import PackedGroup, Packing, Shape
from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.model.modules import SEPARATOR

_LEAVES: Final = frozenset(
    {
        *(
            ".qweight",
            ".qzeros",
            ".scales",
            ".g_idx",
            ".weight",
            ".weight_packed",
            ".weight_shape",
            ".weight_scale",
        ),
        *(
            ".weight_scale_inv",
            ".weight_scale_2",
            ".weight_global_scale",
            ".weight_zero_point",
            ".weight_g_idx",
        ),
        *(".input_scale", ".input_global_scale", ".SCB", ".weight_format"),
    }
)
_OF_WEIGHT: Final = re.compile(r"absmax|quant_map|nested_absmax|nested_quant_map|quant_state\.\w+")
"""What bitsandbytes puts behind the name of a weight."""
_ENDS: Final = ("_blocks", "_scales")
_MARKS: Final = frozenset(
    {".qweight", ".weight_packed", ".weight_scale", ".weight_scale_inv", ".SCB", ".weight.absmax", "_blocks"}
)


class Found(Struct, frozen=True):
    """All packed weights of a model."""

    groups: tuple[PackedGroup, ...]
    findings: tuple[Finding, ...]
    elements: dict[str, int | None]
    """Of each packed tensor by name: weights in it."""
    companions: frozenset[str]
    """Names of scales, zero points and their like."""
    weights: dict[str, tuple[str, Shape]]
    """Of each packed tensor whose weight's shape is known: the weight's name and shape."""


def modules_of(items: Iterable[Item]) -> dict[str, dict[str, Item]]:
    """Return the tensors of modules that are packed, by module and leaf."""
    found: dict[str, dict[str, Item]] = {}
    for item in items:
        name = item.name
        at = name.rfind(SEPARATOR)
        if at > 0 and name[at:] in _LEAVES:
            found.setdefault(name[:at], {})[name[at:]] = item
        elif name.endswith(_ENDS):
            found.setdefault(name[:-7], {})[name[-7:]] = item
        elif ".weight." in name:
            module, _, rest = name.rpartition(".weight.")
            if module and _OF_WEIGHT.fullmatch(rest):
                found.setdefault(module, {})[f".weight.{rest}"] = item
    return {module: leaves for module, leaves in found.items() if not _MARKS.isdisjoint(leaves)}


def find(items: Iterable[Item], declared: Packing | None) -> Found:
    """Return what is packed among `items`, and what is wrong with it."""
    items = list(items)
    tally = _Tally()
    modules = modules_of(items)
    for module, leaves in modules.items():
        tally.add(module, leaves, packed_of(leaves, declared))
    for item in items:
        if item.dtype in BLOCK_TYPES:
            tally.add(item.name, {"": item}, of_block_type(item))
    if any(scheme.startswith("fp8") for scheme in tally.schemes):
        for item in items:
            module, _, leaf = item.name.rpartition(SEPARATOR)
            if item.dtype in FP8 and leaf == "weight" and len(item.shape) > 1 and module not in modules:
                tally.lack("fp8", "its scale", item.name)
    return tally.found(declared)


class _Tally:
    """Modules of each scheme, gathered one by one."""

    def __init__(self) -> None:
        self.schemes: dict[str, list[tuple[str, Leaves, Packed]]] = {}
        self._lacking: dict[tuple[str, str], list[str]] = {}

    def add(self, module: str, leaves: Leaves, packed: Packed) -> None:
        key = f"{packed.scheme}\0{packed.bits}\0{packed.group}"
        self.schemes.setdefault(key, []).append((module, leaves, packed))
        for leaf in packed.needs:
            if leaf not in leaves:
                self.lack(packed.scheme, leaf.lstrip("._"), module)

    def lack(self, scheme: str, companion: str, module: str) -> None:
        self._lacking.setdefault((scheme, companion), []).append(module)

    def found(self, declared: Packing | None) -> Found:
        everything = [each for group in self.schemes.values() for each in group]
        elements = {
            leaves[packed.weight].name: packed.elements
            for _, leaves, packed in everything
            if packed.weight in leaves
        }
        companions = frozenset(
            item.name
            for _, leaves, packed in everything
            for leaf, item in leaves.items()
            if leaf != packed.weight
        )
        weights = {
            leaves[packed.weight].name: (_name(module, packed.weight), packed.logical)
            for module, leaves, packed in everything
            if packed.weight in leaves and packed.logical is not None
        }
        groups = tuple(_group(group) for group in self.schemes.values())
        return Found(groups, tuple(self._findings(groups, declared)), elements, companions, weights)

    def _findings(self, groups: tuple[PackedGroup, ...], declared: Packing | None) -> Iterator[Finding]:
        for (scheme, companion), modules in self._lacking.items():
            params: dict[str, Param] = {
                "scheme": scheme,
                "count": len(modules),
                "companion": companion,
                "tensor": modules[0],
            }
            yield Finding("model.companion_missing", params)
        for group in self.schemes.values():
            wrong = [module for module, _, packed in group if not packed.fits]
            if wrong:
                scheme = group[0][2].scheme
                yield Finding(
                    "model.packing_shape", {"scheme": scheme, "count": len(wrong), "tensor": wrong[0]}
                )
        yield from _declarations([group[0][2] for group in self.schemes.values()], groups, declared)


def _declarations(
    packed: list[Packed], groups: tuple[PackedGroup, ...], declared: Packing | None
) -> Iterator[Finding]:
    """Yield where the configuration says something else than the tensors."""
    foreign = [each for each in packed if not each.scheme.startswith("GGUF")]
    if declared is None:
        if foreign:
            yield Finding("model.packing_undeclared", {"scheme": foreign[0].scheme})
        return
    if not groups:
        yield Finding("model.packing_absent", {"method": declared.method or "a quantisation"})
        return
    bits = {each.bits for each in foreign if each.bits is not None}
    if declared.bits is not None and bits and declared.bits not in bits:
        yield _declared("bits", declared.bits, bits)
    sizes = {each.group_size for each in foreign if each.group_size is not None}
    if declared.group is not None and declared.group > 0 and sizes and declared.group not in sizes:
        yield _declared("groups of", declared.group, sizes)


def _declared(fact: str, declared: int, found: set[int]) -> Finding:
    words = ", ".join(f"{each:,}" for each in sorted(found))
    return Finding("model.packing_declared", {"fact": fact, "declared": f"{declared:,}", "found": words})


def _name(module: str, leaf: str) -> str:
    """Return what the weight of a module is called where it is not packed."""
    return f"{module}.weight" if leaf.startswith(".") else module


def _group(modules: list[tuple[str, Leaves, Packed]]) -> PackedGroup:
    module, leaves, packed = modules[0]
    counts: dict[str, int] = {}
    for _, held, each in modules:
        for leaf in held:
            if leaf != each.weight:
                counts[leaf.lstrip("._")] = counts.get(leaf.lstrip("._"), 0) + 1
    known = [each.elements for _, _, each in modules if each.elements is not None]
    weight = leaves.get(packed.weight)
    return PackedGroup(
        scheme=packed.scheme,
        modules=len(modules),
        bits=packed.bits,
        group=packed.group,
        first=module,
        stored=weight.shape if weight is not None else (),
        logical=packed.logical,
        elements=sum(known) if len(known) == len(modules) else None,
        bytes=sum(item.bytes for _, held, _ in modules for item in held.values()),
        companions=tuple(sorted(counts.items())),
        explanation=packed.explanation,
    )

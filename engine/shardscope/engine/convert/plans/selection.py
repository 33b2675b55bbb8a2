"""Which tensors of a catalogue are written, under which names and types, and what is left out: every choice with its reason."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from shardscope.engine.convert.plans.renaming import Renaming, common_prefix, wrappers_in
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor, Shape
from shardscope.engine.model.plan import Alias, Decision, LeftOut, PlanOptions
from shardscope.engine.model.text import counted, display_name

CASTABLE: Final = ("F16", "BF16", "F32", "F64")
"""Floats that stand for themselves. Eight-bit and smaller floats mean nothing without their scales and are never cast."""
EXTRA_STATE: Final = "_extra_state"
"""The last part of names of Transformer Engine's runtime state: no weights."""
_EXAMPLES: Final = 3
NOTHING: Final[Mapping[str, "Rows"]] = MappingProxyType({})


class Chosen(Struct, frozen=True):
    """One tensor of the output."""

    name: str
    tensor: LogicalTensor
    dtype: str
    """Of the output."""
    shape: Shape
    """Of the output: the tensor's, or fewer rows."""


class Rows(Struct, frozen=True):
    """How many rows of a vocabulary are true ones, and who says so."""

    count: int
    evidence: str
    """One clause."""


class Selection(Struct, frozen=True):
    """What is written and what is not."""

    chosen: tuple[Chosen, ...]
    aliases: tuple[Alias, ...]
    decisions: tuple[Decision, ...]
    left_out: tuple[LeftOut, ...]


def select(
    catalogue: Catalogue,
    options: PlanOptions,
    size_of: Callable[[LogicalTensor], int | None],
    rows: Mapping[str, Rows] = NOTHING,
) -> Selection:
    """Return the tensors of the output; `rows` names those with a vocabulary on dimension 0, and its true height.

    Raises `Fault`: `convert.rename_rule`, `convert.rename_collision`, `convert.name_repeated`.
    """
    decisions: list[Decision] = []
    left: list[LeftOut] = []
    wanted = list(catalogue.of(options.component))
    _leave_components(catalogue, options, left, decisions, size_of)
    wanted = _without_extra_state(wanted, options, left, decisions, size_of)
    wanted = _filtered(wanted, options, left, size_of)
    _unique(wanted)
    kept, aliases = _tied(wanted, options, decisions)
    renaming = Renaming(options.renames)
    named = _renamed(kept, renaming, options, decisions)
    chosen = tuple(
        Chosen(name, tensor, _dtype(tensor, options), _shape(tensor, rows)) for name, tensor in named
    )
    _say_trims(chosen, rows, decisions)
    _say_casts(chosen, options, decisions)
    _say_roles(kept, decisions)
    shown = tuple(Alias(renaming(alias.name), renaming(alias.tensor)) for alias in aliases)
    return Selection(chosen, shown, tuple(decisions), tuple(left))


def _leave_components(
    catalogue: Catalogue,
    options: PlanOptions,
    left: list[LeftOut],
    decisions: list[Decision],
    size_of: Callable[[LogicalTensor], int | None],
) -> None:
    wanted = {id(tensor) for tensor in catalogue.of(options.component)}
    others = [tensor for tensor in catalogue.tensors if id(tensor) not in wanted]
    for component in dict.fromkeys(tensor.component for tensor in others):
        some = [tensor for tensor in others if tensor.component == component]
        why = "kept apart from the model" if options.component == "all" else "not asked for"
        left.append(LeftOut(component, len(some), _total(some, size_of), f"{why}: --component names it"))
    if others:
        choice = f"{options.component} tensors only"
        decisions.append(
            _decision(
                "component",
                choice,
                "the default" if options.component == "model" else "asked for",
                "--component",
                others,
            )
        )


def _without_extra_state(
    wanted: Sequence[LogicalTensor],
    options: PlanOptions,
    left: list[LeftOut],
    decisions: list[Decision],
    size_of: Callable[[LogicalTensor], int | None],
) -> list[LogicalTensor]:
    """Leave out runtime state that sits among the weights, unless a person includes it by name."""
    if any(EXTRA_STATE in pattern for pattern in options.include) or options.component == "all":
        return list(wanted)
    extra = [tensor for tensor in wanted if tensor.name.rpartition(".")[2] == EXTRA_STATE]
    if extra:
        left.append(
            LeftOut("extra state", len(extra), _total(extra, size_of), "runtime state of a layer, no weights")
        )
        decisions.append(
            _decision("extra_state", "left out", "named _extra_state", "--include '*_extra_state'", extra)
        )
    return [tensor for tensor in wanted if tensor not in extra] if extra else list(wanted)


def _filtered(
    wanted: Sequence[LogicalTensor],
    options: PlanOptions,
    left: list[LeftOut],
    size_of: Callable[[LogicalTensor], int | None],
) -> list[LogicalTensor]:
    include, exclude = matcher(options.include), matcher(options.exclude)
    kept = [
        tensor
        for tensor in wanted
        if (include is None or include(tensor.name)) and not (exclude is not None and exclude(tensor.name))
    ]
    if len(kept) < len(wanted):
        held = {id(tensor) for tensor in kept}
        gone = [tensor for tensor in wanted if id(tensor) not in held]
        left.append(LeftOut("excluded", len(gone), _total(gone, size_of), "by --include and --exclude"))
    return kept


def matcher(patterns: Sequence[str]) -> Callable[[str], object] | None:
    """Return what tells whether a name fits any of the globs; null where there are none."""
    return re.compile("|".join(map(translate, patterns))).match if patterns else None


def _unique(tensors: Iterable[LogicalTensor]) -> None:
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise Fault("convert.name_repeated", tensor=tensor.name)
        seen.add(tensor.name)


def _tied(
    wanted: Sequence[LogicalTensor], options: PlanOptions, decisions: list[Decision]
) -> tuple[list[LogicalTensor], list[Alias]]:
    """Return what is written and what only stands for it. A tie to something that is not written is written itself."""
    names = {tensor.name for tensor in wanted}
    tied = [tensor for tensor in wanted if tensor.alias_of is not None and tensor.alias_of in names]
    if not tied:
        return list(wanted), []
    once = options.ties == "once"
    choice = "written once, the other names recorded" if once else "written under every name"
    decisions.append(
        _decision("ties", choice, "they share their bytes in the source", "--ties once|both", tied)
    )
    if not once:
        return list(wanted), []
    aliases = [Alias(tensor.name, tensor.alias_of or "") for tensor in tied]
    gone = {tensor.name for tensor in tied}
    return [tensor for tensor in wanted if tensor.name not in gone], aliases


def _renamed(
    kept: Sequence[LogicalTensor], renaming: Renaming, options: PlanOptions, decisions: list[Decision]
) -> list[tuple[str, LogicalTensor]]:
    named = [(renaming(tensor.name), tensor) for tensor in kept]
    holders: dict[str, str] = {}
    for name, tensor in named:
        if name in holders:
            raise Fault("convert.rename_collision", name=name, first=holders[name], second=tensor.name)
        holders[name] = tensor.name
    changed = [tensor for name, tensor in named if name != tensor.name]
    if options.renames:
        decisions.append(
            _decision(
                "rename",
                f"{counted(len(changed), 'name')} changed",
                f"{counted(len(options.renames), 'rule')} given",
                "--rename FILE",
                changed,
            )
        )
    wrapped = wrappers_in(name for name, _ in named)
    for wrapper, count in wrapped.items():
        some = [tensor for name, tensor in named if wrapper in name]
        decisions.append(
            _decision(
                "prefix",
                f"{wrapper} kept in {counted(count, 'name')}",
                "a wrapper's name",
                "--rename FILE",
                some,
            )
        )
    common = common_prefix([name for name, _ in named])
    if common is not None and common not in wrapped:
        decisions.append(
            _decision(
                "prefix", f"{common} kept in every name", "all names begin with it", "--rename FILE", kept
            )
        )
    return named


def _dtype(tensor: LogicalTensor, options: PlanOptions) -> str:
    return options.dtype if options.dtype != "keep" and tensor.dtype in CASTABLE else tensor.dtype


def _shape(tensor: LogicalTensor, rows: Mapping[str, Rows]) -> Shape:
    """Return the shape without the padding of a vocabulary."""
    true = rows.get(tensor.name)
    if true is None or not tensor.shape or true.count >= tensor.shape[0]:
        return tensor.shape
    return (true.count, *tensor.shape[1:])


def _say_trims(chosen: Sequence[Chosen], rows: Mapping[str, Rows], decisions: list[Decision]) -> None:
    trimmed = [item.tensor for item in chosen if item.shape != item.tensor.shape]
    if trimmed:
        first = trimmed[0]
        choice = f"{rows[first.name].count:,} of {first.shape[0]:,} rows"
        decisions.append(
            _decision("vocabulary", choice, rows[first.name].evidence, "--vocab-size N", trimmed)
        )


def _say_casts(chosen: Sequence[Chosen], options: PlanOptions, decisions: list[Decision]) -> None:
    if options.dtype == "keep":
        return
    cast = [item.tensor for item in chosen if item.dtype != item.tensor.dtype]
    if cast:
        choice = f"to {options.dtype}, round to nearest even"
        decisions.append(_decision("cast", choice, "asked for", "--dtype", cast))
    kept = [item.tensor for item in chosen if item.tensor.dtype not in CASTABLE]
    if kept:
        decisions.append(_decision("cast", "left as they are", "no plain floats", None, kept))


def _say_roles(kept: Sequence[LogicalTensor], decisions: list[Decision]) -> None:
    for role, choice in (("frozen", "written as stored"), ("buffer", "written")):
        some = [tensor for tensor in kept if tensor.role == role]
        if some:
            decisions.append(
                _decision(
                    f"{role}s" if role == "buffer" else role,
                    choice,
                    "the source lists them so",
                    "--exclude GLOB",
                    some,
                )
            )
    copies = [tensor for tensor in kept if tensor.replicas]
    if copies:
        decisions.append(
            _decision(
                "replicas",
                "the first copy is written, the others are compared with it",
                "the source holds them more than once",
                None,
                copies,
            )
        )
    padded = [
        tensor for tensor in kept if tensor.stored_shape is not None and tensor.stored_shape != tensor.shape
    ]
    if padded:
        first = padded[0]
        stored = 0 if first.stored_shape is None else first.stored_shape[0]
        evidence = first.note or "the source declares the true size"
        decisions.append(
            _decision(
                "vocabulary", f"{first.shape[0]:,} of {stored:,} rows", evidence, "--vocab-size N", padded
            )
        )


def _decision(
    kind: str, choice: str, evidence: str, option: str | None, tensors: Sequence[LogicalTensor]
) -> Decision:
    examples = tuple(display_name(tensor.name, 120) for tensor in tensors[:_EXAMPLES])
    return Decision(kind, choice, evidence, option, len(tensors), examples)


def _total(tensors: Iterable[LogicalTensor], size_of: Callable[[LogicalTensor], int | None]) -> int | None:
    sizes = [size_of(tensor) for tensor in tensors]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None

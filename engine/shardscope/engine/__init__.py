"""The engine: everything shardscope knows how to do, with no terminal in sight.

The names are resolved on first use (PEP 562), so that `import shardscope.engine.model` pulls in nothing
else and `shardscope --version` starts in the time of an interpreter.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardscope.engine.benching import BenchOptions, bench
    from shardscope.engine.capabilities.published import glossary, sources, support_matrix
    from shardscope.engine.capabilities.reading import read_capability
    from shardscope.engine.capabilities.validation import validate
    from shardscope.engine.comparing.compared import DiffOptions
    from shardscope.engine.comparing.diff import diff
    from shardscope.engine.converting.fixing import (
        Fix,
        FixLook,
        check_idle,
        look_for_fix,
        plan_fix,
        prepare_fix,
    )
    from shardscope.engine.converting.materializing import Converted, materialize
    from shardscope.engine.converting.preparing import Prepared, prepare, read_plan, read_renames
    from shardscope.engine.converting.resharding import Aim, prepare_reshard, read_transfer, transfers
    from shardscope.engine.converting.verify import verify
    from shardscope.engine.geometry.checking.check import check
    from shardscope.engine.geometry.checking.compare import first_difference
    from shardscope.engine.geometry.describing.explain import explain
    from shardscope.engine.geometry.describing.picture import picture, shard_picture
    from shardscope.engine.geometry.execution.exchange import Move, gather, moves, scatter, stream
    from shardscope.engine.geometry.language.lower import lower
    from shardscope.engine.geometry.mapping.targets import Numbers
    from shardscope.engine.geometry.transfer.compose import compose, invert
    from shardscope.engine.geometry.transfer.planning import Planner
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection, inspect, with_digests
    from shardscope.engine.model.fix import FixOptions
    from shardscope.engine.modelling import ModelOptions, describe_model, explain_model
    from shardscope.engine.peeking.peek import PeekOptions, peek
    from shardscope.engine.peeking.scanning import scan
    from shardscope.engine.previewing import Preview, preview
    from shardscope.engine.reporting import compare_reports, prepare_report, read_report, write_report
    from shardscope.engine.shardmaps.applying import Applied, assemble_files, reshard_files, slice_file
    from shardscope.engine.shardmaps.reading import (
        ShardMaps,
        read_deepspeed,
        read_shapes,
        read_shard_map,
        to_deepspeed,
        translate_deepspeed,
    )
    from shardscope.engine.watching.known import read_known
    from shardscope.engine.watching.watch import WatchOptions, watch

__all__ = [
    "Aim",
    "Applied",
    "BenchOptions",
    "Converted",
    "Decoding",
    "DiffOptions",
    "Fix",
    "FixLook",
    "FixOptions",
    "Inspection",
    "ModelOptions",
    "Move",
    "Numbers",
    "PeekOptions",
    "Planner",
    "Prepared",
    "Preview",
    "ShardMaps",
    "WatchOptions",
    "assemble_files",
    "bench",
    "check",
    "check_idle",
    "compare_reports",
    "compose",
    "describe_model",
    "diff",
    "explain",
    "explain_model",
    "first_difference",
    "gather",
    "glossary",
    "inspect",
    "invert",
    "look_for_fix",
    "lower",
    "materialize",
    "moves",
    "peek",
    "picture",
    "plan_fix",
    "prepare",
    "prepare_fix",
    "prepare_report",
    "prepare_reshard",
    "preview",
    "read_capability",
    "read_deepspeed",
    "read_known",
    "read_plan",
    "read_renames",
    "read_report",
    "read_shapes",
    "read_shard_map",
    "read_transfer",
    "reshard_files",
    "scan",
    "scatter",
    "shard_picture",
    "slice_file",
    "sources",
    "stream",
    "support_matrix",
    "to_deepspeed",
    "transfers",
    "translate_deepspeed",
    "validate",
    "verify",
    "watch",
    "with_digests",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    match name:
        case "glossary" | "read_capability" | "sources" | "support_matrix" | "validate":
            return _capabilities(name)
        case (
            "check"
            | "compose"
            | "explain"
            | "first_difference"
            | "invert"
            | "lower"
            | "picture"
            | "shard_picture"
        ):
            return _geometry(name)
        case "Move" | "Numbers" | "Planner" | "gather" | "moves" | "scatter" | "stream":
            return _transfers(name)
        case (
            "Applied"
            | "ShardMaps"
            | "assemble_files"
            | "read_deepspeed"
            | "read_shapes"
            | "read_shard_map"
            | "reshard_files"
            | "slice_file"
            | "to_deepspeed"
            | "translate_deepspeed"
        ):
            return _shardmaps(name)
        case (
            "Aim"
            | "Converted"
            | "Fix"
            | "FixLook"
            | "FixOptions"
            | "Prepared"
            | "check_idle"
            | "look_for_fix"
            | "materialize"
            | "plan_fix"
            | "prepare"
            | "prepare_fix"
            | "prepare_reshard"
            | "read_plan"
            | "read_renames"
            | "read_transfer"
            | "transfers"
            | "verify"
        ):
            return _converting(name)
        case "DiffOptions" | "PeekOptions" | "diff" | "peek" | "scan":
            return _values(name)
        case "WatchOptions" | "read_known" | "watch":
            return _watching(name)
        case "Decoding" | "Inspection" | "inspect" | "with_digests":
            return _inspecting(name)
    return _alone(name)


def _inspecting(name: str) -> Any:
    """Return what finds out what a checkpoint is."""
    if name == "Decoding":
        from shardscope.engine.inspecting.decoding import Decoding

        return Decoding
    from shardscope.engine.inspecting import inspection

    return getattr(inspection, name)


def _capabilities(name: str) -> Any:
    """Return what reads the registry and the claims."""
    match name:
        case "read_capability":
            from shardscope.engine.capabilities.reading import read_capability

            return read_capability
        case "validate":
            from shardscope.engine.capabilities.validation import validate

            return validate
    from shardscope.engine.capabilities import published

    return getattr(published, name)


def _converting(name: str) -> Any:
    """Return what plans an output, what carries the plan out, and what verifies it."""
    match name:
        case "Converted" | "materialize":
            from shardscope.engine.converting import materializing

            return getattr(materializing, name)
        case "Fix" | "FixLook" | "FixOptions" | "check_idle" | "look_for_fix" | "plan_fix" | "prepare_fix":
            from shardscope.engine.converting import fixing

            return getattr(fixing, name)
        case "Aim" | "prepare_reshard" | "read_transfer" | "transfers":
            from shardscope.engine.converting import resharding

            return getattr(resharding, name)
        case "verify":
            from shardscope.engine.converting.verify import verify

            return verify
    from shardscope.engine.converting import preparing

    return getattr(preparing, name)


def _values(name: str) -> Any:
    """Return what reads numbers: of one tensor, of all, of two checkpoints."""
    match name:
        case "PeekOptions" | "peek":
            from shardscope.engine.peeking import peek

            return getattr(peek, name)
        case "scan":
            from shardscope.engine.peeking.scanning import scan

            return scan
    from shardscope.engine.comparing import diff

    return getattr(diff, name)


def _watching(name: str) -> Any:
    """Return what looks at a folder as it fills."""
    if name == "read_known":
        from shardscope.engine.watching.known import read_known

        return read_known
    from shardscope.engine.watching import watch

    return getattr(watch, name)


def _alone(name: str) -> Any:
    """Return what takes one module."""
    match name:
        case "Preview" | "preview":
            from shardscope.engine import previewing

            return getattr(previewing, name)
        case "ModelOptions" | "describe_model" | "explain_model":
            from shardscope.engine import modelling

            return getattr(modelling, name)
        case "BenchOptions" | "bench":
            from shardscope.engine import benching

            return getattr(benching, name)
    from shardscope.engine import reporting

    return getattr(reporting, name)


def _shardmaps(name: str) -> Any:
    """Return what reads documents of maps, and what applies them to files."""
    if name in ("Applied", "assemble_files", "reshard_files", "slice_file"):
        from shardscope.engine.shardmaps import applying

        return getattr(applying, name)
    from shardscope.engine.shardmaps import reading

    return getattr(reading, name)


def _transfers(name: str) -> Any:
    """Return what plans transfers between maps, and what moves elements by them."""
    match name:
        case "Planner":
            from shardscope.engine.geometry.transfer.planning import Planner

            return Planner
        case "Numbers":
            from shardscope.engine.geometry.mapping.targets import Numbers

            return Numbers
    from shardscope.engine.geometry.execution import exchange

    return getattr(exchange, name)


def _geometry(name: str) -> Any:
    """Return what works on maps alone: no file and no array."""
    from shardscope.engine.geometry.checking import check, compare
    from shardscope.engine.geometry.describing import explain, picture
    from shardscope.engine.geometry.language import lower
    from shardscope.engine.geometry.transfer import compose

    return {
        "check": check.check,
        "compose": compose.compose,
        "explain": explain.explain,
        "first_difference": compare.first_difference,
        "invert": compose.invert,
        "lower": lower.lower,
        "picture": picture.picture,
        "shard_picture": picture.shard_picture,
    }[name]

"""The engine calls that the explorer makes, in one place.

They are a value, so that a test hands in others, and the real ones import the engine when the first worker calls them:
the first frame is drawn without it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.host import Host
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import DigestMode, Inspection
    from shardscope.engine.model.escalation import IsolationProfile
    from shardscope.engine.model.file_layout import FileLayout
    from shardscope.engine.model.limits import DecodeLimits
    from shardscope.engine.previewing import Preview


@dataclass(frozen=True)
class Engine:
    """The calls. Each of them blocks, so that only workers make them."""

    inspect: "Callable[[Target, threading.Event, OnProgress], Inspection]"
    """Everything but digests. Raises `Fault` and `Cancelled`."""
    with_digests: "Callable[[Inspection, DigestMode, threading.Event, OnProgress], Inspection]"
    """Raises `Fault` and `Cancelled`."""
    preview: "Callable[[Inspection, bytes, threading.Event], Preview]"
    """Raises `Cancelled`."""
    layout: "Callable[[Inspection, bytes, threading.Event], FileLayout]"
    """What stands where in a file. Raises `Cancelled`."""
    host: "Callable[[Target], Host]"
    """Figures of this machine."""
    preflight: "Callable[[DecodeLimits], IsolationProfile]"
    """The containment that this machine gives just now. Raises `Fault`."""
    decode: "Callable[[Target, Decoding, threading.Event, OnProgress], Inspection]"
    """What `inspect` does, and decoding. Raises `Fault` and `Cancelled`."""


def _inspect(target: Target, cancel: threading.Event, progress: OnProgress) -> "Inspection":
    from shardscope.engine.inspecting.inspection import inspect

    return inspect(
        target.path,
        limits=target.limits,
        digest="none",
        hf_cache=target.hf_cache,
        cancel=cancel,
        progress=progress,
    )


def _with_digests(
    found: "Inspection", mode: "DigestMode", cancel: threading.Event, progress: OnProgress
) -> "Inspection":
    from shardscope.engine.inspecting.inspection import with_digests

    return with_digests(found, mode, cancel=cancel, progress=progress)


def _preview(found: "Inspection", path: bytes, cancel: threading.Event) -> "Preview":
    from shardscope.engine.previewing import preview

    return preview(found, path, cancel=cancel)


def _layout(found: "Inspection", path: bytes, cancel: threading.Event) -> "FileLayout":
    from shardscope.engine.previewing import layout

    return layout(found, path, cancel=cancel)


def _host(target: Target) -> "Host":
    from shardscope.engine.host import probe

    return probe(target.path)


def _preflight(limits: "DecodeLimits") -> "IsolationProfile":
    from shardscope.engine.isolation.containment import preflight

    return preflight(limits)


def _decode(target: Target, wish: "Decoding", cancel: threading.Event, progress: OnProgress) -> "Inspection":
    from msgspec.structs import replace

    from shardscope.engine.inspecting.inspection import inspect

    return inspect(
        target.path,
        limits=target.limits,
        digest="none",
        hf_cache=target.hf_cache,
        decoding=replace(wish, outlines=True),
        cancel=cancel,
        progress=progress,
    )


ENGINE = Engine(
    inspect=_inspect,
    with_digests=_with_digests,
    preview=_preview,
    layout=_layout,
    host=_host,
    preflight=_preflight,
    decode=_decode,
)
"""The engine of this installation."""

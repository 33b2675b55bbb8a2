"""Tensors of one file that share storage: aliases, views that overlap, and stored bytes that none of them refers to."""

from collections.abc import Sequence
from math import prod

from msgspec import Struct

from shardscope.engine.model.catalogue import Fragment
from shardscope.engine.parse.strides import reach
from shardscope.engine.parse.torch_storages import bits_of


class View(Struct, frozen=True):
    """One tensor and where it is stored."""

    name: str
    dtype: str
    fragment: Fragment


class Shared(Struct, frozen=True):
    """How the views of one file share their storages."""

    alias_of: dict[int, str]
    """By place in the list of views: the earlier tensor that is the very same view."""
    overlaps: dict[int, str]
    """By place: another tensor whose span in the storage meets that of this one, without being the same."""
    unused: int
    """Bytes of storages that no view spans."""
    unused_in: int
    """How many storages have such bytes."""


def shared(views: Sequence[View | None]) -> Shared:
    """Return what is shared among views; null ones have no bytes and share nothing.

    Spans go from the first byte of a view to its last: two views that take turns (even and odd columns) meet as well.
    """
    alias_of: dict[int, str] = {}
    first: dict[tuple[object, ...], str] = {}
    spans: dict[int, list[tuple[int, int, int]]] = {}
    sizes: dict[int, int] = {}
    for place, view in enumerate(views):
        if view is None or 0 in view.fragment.shape:
            continue
        item = view.fragment
        key = (item.record.begin, item.offset, item.shape, item.strides, view.dtype)
        earlier = first.setdefault(key, view.name)
        if earlier is not view.name:
            alias_of[place] = earlier
            continue
        sizes[item.record.begin] = item.record.size
        spans.setdefault(item.record.begin, []).append((item.offset, _end(view), place))
    overlaps: dict[int, str] = {}
    unused = unused_in = 0
    for begin, found in spans.items():
        used = _sweep(sorted(found), views, overlaps)
        unused += sizes[begin] - used
        unused_in += used < sizes[begin]
    return Shared(alias_of, overlaps, unused, unused_in)


def _end(view: View) -> int:
    item = view.fragment
    bits = bits_of(view.dtype) or 8
    elements = prod(item.shape) if item.strides is None else reach(item.shape, item.strides)
    return item.offset - -elements * bits // 8


def _sweep(
    spans: Sequence[tuple[int, int, int]], views: Sequence[View | None], overlaps: dict[int, str]
) -> int:
    """Note which of the spans of one storage meet; return how many bytes they take up together."""
    used = end = 0
    furthest: int | None = None
    for begin, stop, place in spans:
        if furthest is not None and begin < end:
            one, other = views[furthest], views[place]
            if one is not None and other is not None:
                overlaps.setdefault(place, one.name)
                overlaps.setdefault(furthest, other.name)
        used += max(0, stop - max(begin, end))
        if stop > end or furthest is None:
            end, furthest = stop, place
    return used

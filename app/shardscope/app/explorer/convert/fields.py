"""What a field of a conversion is, and how options of its plan are turned and shown."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from shardscope.app.explorer.convert.draft import Draft
from shardscope.app.explorer.output import fields
from shardscope.app.explorer.output.fields import next_of
from shardscope.engine.model.decoded import ComponentFigures
from shardscope.widgets.safe import Part


class Known(fields.Known, frozen=True):
    """What choices depend on beside the draft."""

    components: tuple[ComponentFigures, ...] = ()


Field = fields.Field[Draft, Known]


def with_options(draft: Draft, **options: Any) -> Draft:
    """Return a draft with other options of its plan."""
    return replace(draft, options=replace(draft.options, **options))


def turned_option(name: str, values: Sequence[Any]) -> Callable[[Draft, int], Draft]:
    """Return what turns an option through its values."""
    return lambda draft, by: with_options(draft, **{name: next_of(values, getattr(draft.options, name), by)})


def said_of(name: str, words: dict[Any, Part]) -> Callable[[Draft, Known], Part]:
    """Return what says the value of an option."""
    return lambda draft, _: words[getattr(draft.options, name)]

"""What the summary says to press next: the screens that answer the questions a person has by then, with the keys of the settings."""

from collections.abc import Iterator

from textual.binding import Binding
from textual.widget import Widget

from shardscope.app.explorer.checkpoint.panels import Found
from shardscope.app.explorer.offer import mended_by


def onward(found: Found) -> Iterator[tuple[str, str]]:
    """Yield stable names of keys with a word or two: only what has something to show here."""
    if found.parts:
        yield "explore.part", "choose one" if found.parts[0].is_save else "open a part"
    if found.descriptor.blockers:
        yield "explore.blockers", "blockers"
    if found.descriptor.tensors.count:
        yield "explore.tensors", "tensors"
        yield "explore.model", "model"
        yield "explore.scan", "scan values"
        yield "explore.compare", "compare"
    if found.asked is not None:
        yield "explore.pickles", "pickles"
    if mended_by(found.descriptor):
        yield "explore.fix", "fix"
    if found.descriptor.blockers:
        yield "explore.report", "report"
    yield "explore.copy", "copy"


def hints(panel: Widget, found: Found) -> tuple[tuple[str, str], ...]:
    """Return keys as they stand on the keyboard, with what they do.

    They are read from the bindings themselves: what is bound is not yet in force when the summary is first drawn.
    """
    from shardscope.app.explorer.app import Explorer
    from shardscope.app.explorer.checkpoint.explore import Explore
    from shardscope.app.explorer.checkpoint.workspace import Workspace

    app = panel.app
    settings = app.settings if isinstance(app, Explorer) else None
    chosen = {} if settings is None else dict(settings.settings.keys)
    bound = {
        each.id: each.with_key(chosen.get(each.id, each.key).split(",")[0])
        for each in (*Explore.BINDINGS, *Workspace.BINDINGS)
        if isinstance(each, Binding) and each.id is not None
    }
    return tuple((app.get_key_display(bound[name]), words) for name, words in onward(found))

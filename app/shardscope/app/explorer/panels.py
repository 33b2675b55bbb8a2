"""The tabs on the right of the Explore screen: one closed table, each panel made when it is first shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Tab, Tabs

from shardscope.engine.model.descriptor import Descriptor

if TYPE_CHECKING:
    from shardscope.engine.host import Host
    from shardscope.engine.inspection import Inspection
    from shardscope.engine.previewing import Preview
    from shardscope.widgets.preview_panel import Blocks


@dataclass(frozen=True)
class Found:
    """Everything that the panels draw."""

    inspection: "Inspection"
    host: "Host"
    preview: "Preview | None" = None
    blocks: "Blocks | None" = None
    """Where the JSON of the preview folds."""

    @property
    def descriptor(self) -> Descriptor:
        """Every fact of the checkpoint."""
        return self.inspection.descriptor


@dataclass(frozen=True)
class Panel:
    """One tab and what stands behind it."""

    id: str
    title: str
    tooltip: str
    make: Callable[[], Widget]
    """Imports the widget's module, so that a panel that is never shown costs nothing."""
    facts: Callable[[Found], object]
    """What it draws: the widget is filled again when this is no longer equal, so that news move nobody's cursor."""
    fill: Callable[[Any, Found], None]
    """Hands the facts to the widget."""
    count: Callable[[Found], int | None] | None = None
    """The number beside the title."""
    keys: str | None = None
    """Which widget inside takes the keys; itself where this is None."""


def _summary() -> Widget:
    from shardscope.widgets.summary_panel import SummaryPanel

    return SummaryPanel()


def _evidence() -> Widget:
    from shardscope.widgets.evidence_panel import EvidencePanel

    return EvidencePanel()


def _blockers() -> Widget:
    from shardscope.widgets.blockers_panel import BlockersPanel

    return BlockersPanel()


def _topology() -> Widget:
    from shardscope.widgets.topology_panel import TopologyPanel

    return TopologyPanel()


def _resources() -> Widget:
    from shardscope.widgets.resources_panel import ResourcesPanel

    return ResourcesPanel()


def _tensors() -> Widget:
    from shardscope.widgets.tensor_table import TensorPanel

    return TensorPanel()


def _fill_tensors(panel: Any, found: Found) -> None:
    from shardscope.widgets.tensor_query import rank_labels

    opaque = found.descriptor.tensors.files_opaque
    panel.show(
        found.inspection.tensors,
        ranks=rank_labels(found.descriptor.topology),
        none="None could be listed without decoding" if opaque else "No tensor is listed",
    )


def _preview() -> Widget:
    from shardscope.widgets.preview_panel import PreviewPanel

    return PreviewPanel()


def _fill_preview(panel: Any, found: Found) -> None:
    if found.preview is not None:
        panel.show(found.preview.title, found.preview.lines, found.preview.note, found.blocks)


NEXT: Final = (("3", "blockers"), ("6", "tensors"), ("y", "copy command"), ("?", "keys"))
"""What the summary says to press next."""

PANELS: Final = (
    Panel(
        "summary",
        "Summary",
        "The answer at a glance",
        _summary,
        lambda found: (found.descriptor.classification, found.descriptor.blockers),
        lambda panel, found: panel.show(found.descriptor, found.host, NEXT),
    ),
    Panel(
        "evidence",
        "Evidence",
        "Why we think that it is what we think",
        _evidence,
        lambda found: found.descriptor.classification,
        lambda panel, found: panel.show(found.descriptor.classification),
        lambda found: len(found.descriptor.classification.evidence),
    ),
    Panel(
        "blockers",
        "Blockers",
        "What stands in the way, and what to do",
        _blockers,
        lambda found: found.descriptor.blockers,
        lambda panel, found: panel.show(found.descriptor.blockers),
        lambda found: len(found.descriptor.blockers),
    ),
    Panel(
        "topology",
        "Topology",
        "Which ranks wrote it",
        _topology,
        lambda found: found.descriptor.topology,
        lambda panel, found: panel.show(found.descriptor.topology),
    ),
    Panel(
        "resources",
        "Resources",
        "How many bytes it holds and a conversion would need",
        _resources,
        lambda found: found.descriptor.resources,
        lambda panel, found: panel.show(found.descriptor.resources, found.host),
    ),
    Panel(
        "tensors",
        "Tensors",
        "Every tensor with its type, shape, size and file",
        _tensors,
        lambda found: found.inspection.tensors,
        _fill_tensors,
        lambda found: found.descriptor.tensors.count,
        "VirtualTable",
    ),
    Panel(
        "preview",
        "Preview",
        "What the chosen file says: its header, JSON, text or first bytes",
        _preview,
        lambda found: found.preview,
        _fill_preview,
    ),
)
"""The tabs, in their order; keys 1 to 7."""


class Panels(Container):
    """The tabs and the panel of the active one."""

    class Switched(Message):
        """Another panel is in front."""

        def __init__(self, panel: str) -> None:
            super().__init__()
            self.panel = panel

    def __init__(self, found: Found) -> None:
        super().__init__()
        self._found = found
        self._drawn: dict[str, object] = {}
        """What each panel was filled with."""
        self.active = PANELS[0].id

    def compose(self) -> ComposeResult:
        """Draw the tabs; the first panel follows when it is switched to."""
        tabs = Tabs(*(Tab(self._label(panel), id=panel.id) for panel in PANELS))
        tabs.can_focus = False
        yield tabs
        yield self._made(PANELS[0])

    def _label(self, panel: Panel) -> Content:
        if panel.count is None or (count := panel.count(self._found)) is None:
            return Content(panel.title)
        return Content(f"{panel.title} {count:,}")

    def _made(self, panel: Panel) -> Widget:
        widget = panel.make()
        widget.id = f"panel-{panel.id}"
        return widget

    def panel(self, name: str) -> Widget | None:
        """Return the widget of a panel, or None while it was never shown."""
        return next(iter(self.query_children(f"#panel-{name}")), None)

    @property
    def _active_panel(self) -> Panel:
        return next(panel for panel in PANELS if panel.id == self.active)

    @property
    def front(self) -> Widget | None:
        """The widget of the active panel."""
        return self.panel(self.active)

    def switch(self, name: str) -> None:
        """Bring a panel to the front and give it the keys."""
        if name == self.active:
            self.focus_front()
        self.query_one(Tabs).active = name

    def step(self, by: int) -> None:
        """Go to the panel `by` tabs to the right, around the ends."""
        names = [panel.id for panel in PANELS]
        self.switch(names[(names.index(self.active) + by) % len(names)])

    def show(self, found: Found) -> None:
        """Draw newer facts: at once in the active panel, in the others when they come to the front."""
        self._found = found
        for panel in PANELS:
            self.query_one(f"#{panel.id}", Tab).label = self._label(panel)
        self._freshen()

    def _freshen(self) -> None:
        panel, widget = self._active_panel, self.front
        if widget is None:
            return
        facts = panel.facts(self._found)
        if panel.id not in self._drawn or self._drawn[panel.id] != facts:
            self._drawn[panel.id] = facts
            panel.fill(widget, self._found)

    @on(Tabs.TabActivated)
    async def _activate(self, event: Tabs.TabActivated) -> None:
        event.stop()
        name = event.tab.id or PANELS[0].id
        self.active = name
        if self.front is None:
            await self.mount(self._made(self._active_panel))
        self._freshen()
        for widget in self.query_children("*").exclude("Tabs"):
            widget.display = widget.id == f"panel-{name}"
        self.focus_front()
        self.post_message(self.Switched(name))

    def focus_front(self) -> None:
        """Give the keys to the active panel."""
        front = self.front
        if front is not None:
            keys = self._active_panel.keys
            (front if keys is None else front.query_one(keys)).focus()

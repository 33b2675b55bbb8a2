"""The tabs on the right of the Explore screen: one closed table, each panel made when it is first shown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from textual.widget import Widget

from shardscope.app.explorer.parts import PartOf, parts_of
from shardscope.engine.model.descriptor import Descriptor
from shardscope.widgets.safe import Tone

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

    @cached_property
    def parts(self) -> tuple[PartOf, ...]:
        """What can be looked at alone."""
        return parts_of(self.descriptor, self.inspection.inventory)


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
    tone: Callable[[Found], Tone] = lambda _: Tone.PLAIN
    """How bad the number is."""
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


def _worst(found: Found) -> Tone:
    worst = max((each.severity.rank for each in found.descriptor.blockers), default=0)
    return (Tone.PLAIN, Tone.CAUTION, Tone.STOP)[worst]


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


def _next(found: Found) -> tuple[tuple[str, str], ...]:
    """Return what the summary says to press next."""
    keys = (("3", "blockers"), ("6", "tensors"), ("y", "copy command"), ("?", "keys"))
    if not found.parts:
        return keys
    return (("o", "choose one" if found.parts[0].is_save else "open a part"), *keys)


PANELS: Final = (
    Panel(
        "summary",
        "Summary",
        "The answer at a glance",
        _summary,
        lambda found: (found.descriptor.classification, found.descriptor.blockers),
        lambda panel, found: panel.show(found.descriptor, found.host, _next(found)),
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
        _worst,
    ),
    Panel(
        "topology",
        "Topology",
        "Which ranks wrote it",
        _topology,
        lambda found: found.descriptor.topology,
        lambda panel, found: panel.show(found.descriptor.topology),
        keys="RankMap",
    ),
    Panel(
        "resources",
        "Resources",
        "How many bytes it holds, and would need",
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
        keys="VirtualTable",
    ),
    Panel(
        "preview",
        "Preview",
        "What the chosen file says",
        _preview,
        lambda found: found.preview,
        _fill_preview,
    ),
)
"""The tabs, in their order; keys 1 to 7."""

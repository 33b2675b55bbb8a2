"""The tabs on the right of the Explore screen: one closed table, each panel made when it is first shown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET
from textual.widget import Widget

from shardscope.app.explorer.checkpoint.parts import PartOf, parts_of
from shardscope.app.explorer.offer import Offer, mended_by
from shardscope.app.explorer.target import Asked
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.file_layout import FileLayout
from shardscope.widgets.safe import Tone

if TYPE_CHECKING:
    from shardscope.engine.host import Host
    from shardscope.engine.inspecting.inspection import Inspection
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
    layout: FileLayout | None = None
    """What stands where in the file that was chosen."""
    offer: Offer | None = None
    """What decoding could read; as long as this checkpoint is looked at, also once it was decoded."""
    decode_key: str = "d"
    """What to press for it, as it stands on the keyboard."""
    asked: Asked | None = None
    """What was decoded; None where nothing was."""
    fix_key: str = "F"
    """What to press for a fix, as it stands on the keyboard."""

    @property
    def descriptor(self) -> Descriptor:
        """Every fact of the checkpoint."""
        return self.inspection.descriptor

    @cached_property
    def parts(self) -> tuple[PartOf, ...]:
        """What can be looked at alone."""
        return parts_of(self.descriptor, self.inspection.inventory)

    @property
    def decoded(self) -> DecodedPlane | None:
        """What decoding did."""
        return None if self.descriptor.decoded is UNSET else self.descriptor.decoded

    @cached_property
    def wholes(self) -> tuple[LogicalTensor, ...]:
        """The decoded tensors that are listed, in the order of the first rows of the table."""
        catalogue, plane = self.inspection.catalogue, self.decoded
        return () if catalogue is None or plane is None else catalogue.listed(plane.listed)

    @property
    def offered(self) -> str:
        """What to press to decode; empty where nothing calls for it, or it was done."""
        return "" if self.offer is None or self.asked is not None else self.offer.words(self.decode_key)


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
    short: str = ""
    """The title where there is no room for all of them."""
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
    none = "No tensor is listed"
    if opaque:
        none = "None could be listed" if not found.offered else "None could be listed without decoding"
    panel.show(
        found.inspection.tensors,
        ranks=rank_labels(found.descriptor.topology),
        none=none,
        wholes=found.wholes,
        offer=found.offered,
    )


def _pickles() -> Widget:
    from shardscope.widgets.pickle_panel import PicklePanel

    return PicklePanel()


def _foreign(found: Found) -> Tone:
    known = found.decoded is None or all(item.known for item in found.decoded.references)
    return Tone.PLAIN if known else Tone.CAUTION


def _layout() -> Widget:
    from shardscope.widgets.layout_panel import LayoutPanel

    return LayoutPanel()


def _fill_layout(panel: Any, found: Found) -> None:
    if found.layout is not None:
        panel.show(found.layout)


def _preview() -> Widget:
    from shardscope.widgets.preview_panel import PreviewPanel

    return PreviewPanel()


def _fill_preview(panel: Any, found: Found) -> None:
    if found.preview is not None:
        panel.show(found.preview.title, found.preview.lines, found.preview.note, found.blocks)


def _fill_summary(panel: Any, found: Found) -> None:
    from shardscope.app.explorer.checkpoint.onward import hints

    panel.show(found.descriptor, found.host, hints(panel, found), found.offered)


PANELS: Final = (
    Panel(
        "summary",
        "Summary",
        "The answer at a glance",
        _summary,
        lambda found: (found.descriptor.classification, found.descriptor.blockers),
        _fill_summary,
    ),
    Panel(
        "evidence",
        "Evidence",
        "Why we think that it is what we think",
        _evidence,
        lambda found: found.descriptor.classification,
        lambda panel, found: panel.show(found.descriptor.classification),
        short="Evid.",
        count=lambda found: len(found.descriptor.classification.evidence),
    ),
    Panel(
        "blockers",
        "Blockers",
        "What stands in the way, and what to do",
        _blockers,
        lambda found: found.descriptor.blockers,
        lambda panel, found: panel.show(
            found.descriptor.blockers, mended_by(found.descriptor), found.fix_key
        ),
        short="Block.",
        count=lambda found: len(found.descriptor.blockers),
        tone=_worst,
    ),
    Panel(
        "topology",
        "Topology",
        "Which ranks wrote it",
        _topology,
        lambda found: found.descriptor.topology,
        lambda panel, found: panel.show(found.descriptor.topology),
        short="Topol.",
        keys="RankMap",
    ),
    Panel(
        "resources",
        "Resources",
        "How many bytes it holds, and would need",
        _resources,
        lambda found: found.descriptor.resources,
        lambda panel, found: panel.show(found.descriptor.resources, found.host),
        short="Res.",
    ),
    Panel(
        "tensors",
        "Tensors",
        "Every tensor with its type, shape, size and file",
        _tensors,
        lambda found: found.inspection.tensors,
        _fill_tensors,
        count=lambda found: found.descriptor.tensors.count,
        keys=".-front",
    ),
    Panel(
        "layout",
        "Layout",
        "What stands where in the chosen file: header, tensors, gaps, padding, holes",
        _layout,
        lambda found: found.layout,
        _fill_layout,
        keys="RangeTable",
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
"""The tabs, in their order; keys 1 to 8."""

PICKLES: Final = Panel(
    "pickles",
    "Pickles",
    "What the decoded pickles refer to, foreign names first, and their streams",
    _pickles,
    lambda found: found.decoded,
    lambda panel, found: panel.show(found.decoded, found.inspection.outlines),
    count=lambda found: None if found.decoded is None else len(found.decoded.references),
    tone=_foreign,
    keys=".-front",
)
"""The tab that is there once pickles were decoded; key 9."""


def panels_of(found: Found) -> tuple[Panel, ...]:
    """Return the tabs that a checkpoint has."""
    return PANELS if found.decoded is None else (*PANELS, PICKLES)

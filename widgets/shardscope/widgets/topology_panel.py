"""Which ranks wrote the checkpoint: the map of ranks, and at its foot the files of the rank under the cursor."""

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from shardscope.engine.model.topology import RankFiles, Topology
from shardscope.widgets.figures import plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.mesh_picture import MISSING, TONES, UNSEEN, WORDS, Place
from shardscope.widgets.rank_map import RankMap
from shardscope.widgets.safe import Part, Tone, content, elide, visible

FILES: Final = 2
"""Lines of the foot that name files."""


class TopologyPanel(Vertical):
    """The topology.

    `TopologyPanel(topology=None, *, glyphs=None, id=None, classes=None)`, then `show(topology)`.

    Message: `FilesChosen` with the files of the rank that was chosen.
    """

    BINDING_GROUP_TITLE = "Topology"
    DEFAULT_CSS = """
    TopologyPanel {
        height: 1fr;
        #rank-foot { height: 3; padding: 0 1; display: none; background: $surface; }
        &.-ranks #rank-foot { display: block; }
    }
    """

    class FilesChosen(Message):
        """A rank with files of its own was chosen."""

        def __init__(self, panel: "TopologyPanel", held: RankFiles) -> None:
            super().__init__()
            self.panel = panel
            self.held = held

        @property
        def control(self) -> "TopologyPanel":
            """The panel it happened in."""
            return self.panel

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`topology` is None while nothing was examined."""
        super().__init__(id=id, classes=classes)
        self.ranks = RankMap(topology, glyphs=glyphs)
        self._take(topology or Topology())

    def compose(self) -> ComposeResult:
        """Draw the map and its foot."""
        yield self.ranks
        yield Static(id="rank-foot")

    def show(self, topology: Topology) -> None:
        """Show another topology."""
        self._take(topology)
        self.ranks.show(topology)

    def _take(self, topology: Topology) -> None:
        self._topology = topology
        self._held = {(each.mesh, each.coordinate): each for each in topology.rank_files}

    def held(self, place: Place) -> RankFiles | None:
        """Return the files of a rank, None where none is its own."""
        return self._held.get((self._topology.meshes[place.mesh].name, place.coordinate))

    def on_resize(self) -> None:
        """Give the foot the new width."""
        self._tell(self.ranks.place)

    @on(RankMap.RankHighlighted)
    def _highlighted(self, event: RankMap.RankHighlighted) -> None:
        event.stop()
        self._tell(self.ranks.place)

    @on(RankMap.RankSelected)
    def _selected(self, event: RankMap.RankSelected) -> None:
        event.stop()
        held = self.held(event.place)
        if held is not None:
            self.post_message(self.FilesChosen(self, held))

    def _tell(self, place: Place | None) -> None:
        self.set_class(place is not None, "-ranks")
        foot = self.query_one("#rank-foot", Static)
        foot.update("" if place is None else self._foot(place), layout=False)

    def _foot(self, place: Place) -> Content:
        mesh = self._topology.meshes[place.mesh]
        held = self.held(place)
        files = () if held is None else held.files
        parts: list[Part] = [
            (f"{mesh.rank_name(place.coordinate)}", Tone.STRONG),
            (f"  {WORDS[place.letter]}", TONES[place.letter]),
        ]
        if files:
            which = "it" if len(files) == 1 else "the first"
            parts.append((f"  {plural(len(files), 'file')}, enter shows {which}", Tone.MUTED))
        elif place.letter == MISSING:
            parts.append(("  what it wrote is not here", Tone.MUTED))
        elif place.letter == UNSEEN:
            parts.append(("  nothing that was examined names it", Tone.MUTED))
        else:
            parts.append(("  no file is its own", Tone.MUTED))
        lines = [content(*parts)]
        width = max(16, self.size.width - 2)
        for number, file in enumerate(files[:FILES]):
            rest = len(files) - FILES
            more = f"  and {rest:,} more" if number == FILES - 1 and rest > 0 else ""
            name = elide(visible(file), width - len(more), self.ranks.glyphs.ellipsis, tail=0.7)
            lines.append(content(name, (more, Tone.MUTED)))
        return Content("\n").join(lines)

"""The files of a checkpoint as a tree, with what is wrong with each said in a letter."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from shardscope.engine.model.source import Entry, Inventory, Kind
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.virtual_tree import VirtualTree


class Mark(StrEnum):
    """What a letter beside a file says. A folder carries the errors and warnings of what is in it."""

    ERROR = "E"
    WARNING = "W"
    LINK = "l"
    SPECIAL = "x"
    HOLES = "h"
    OPAQUE = "o"
    CODE = "c"


WORDS: Final = {
    Mark.ERROR: "error",
    Mark.WARNING: "warning",
    Mark.LINK: "link",
    Mark.SPECIAL: "not a file",
    Mark.HOLES: "holes",
    Mark.OPAQUE: "opaque",
    Mark.CODE: "code",
}
"""The legend: what each letter stands for."""
_TONES: Final = {
    Mark.ERROR: Tone.STOP,
    Mark.SPECIAL: Tone.STOP,
    Mark.WARNING: Tone.CAUTION,
    Mark.LINK: Tone.CAUTION,
}
_SPECIAL: Final = {
    Kind.FIFO: "fifo",
    Kind.SOCKET: "socket",
    Kind.DEVICE: "device",
    Kind.UNKNOWN: "unreadable",
}

SIZE: Final = 9
ROLE: Final = 16
"""Cells of the columns at the right."""
ROLES_FROM: Final = 60
"""Cells of a tree that has room for the roles of files."""

NOTHING: Final = Inventory(root_is_file=False, entries=(), blockers=())
"""What a tree shows before it is given files."""

Marks = Mapping[bytes, Iterable[Mark]]
"""Marks by the path of the entry. Links and what is no file are marked without being told."""


class InventoryTree:
    """An inventory as nodes: entry `n` is node `n`. Folders come first, names in the order of their bytes.

    Making it takes one pass over the inventory (a worker may do it); the children of a folder are put in order when it
    opens.
    """

    def __init__(self, inventory: Inventory, marks: Marks | None = None, roles: Sequence[str] = ()) -> None:
        """Prepare the nodes of `inventory`. `roles` say by entry what a file is for."""
        self.inventory = inventory
        self.shows_roles = False
        """Whether the detail of a file begins with its role."""
        self._roles = roles
        self._entries: Sequence[Entry] = inventory.entries
        self._by_path = {entry.path: node for node, entry in enumerate(self._entries)}
        self._parents = array("q", (self._by_path.get(entry.folder, -1) for entry in self._entries))
        self._below: dict[int, list[int]] = {}
        for node, parent in enumerate(self._parents):
            self._below.setdefault(parent, []).append(node)
        self._marks: dict[int, frozenset[Mark]] = {}
        self.set_marks(marks or {})

    def set_marks(self, marks: Marks) -> None:
        """Replace the marks. Errors and warnings reach up to the folders that hold them."""
        found: dict[int, set[Mark]] = {}
        for path, letters in marks.items():
            node = self._by_path.get(path)
            if node is None:
                continue
            own = set(letters)
            found.setdefault(node, set()).update(own)
            upwards = own & {Mark.ERROR, Mark.WARNING}
            above = self._parents[node]
            while upwards and above >= 0:
                found.setdefault(above, set()).update(upwards)
                above = self._parents[above]
        self._marks = {node: frozenset(letters) for node, letters in found.items()}

    @cached_property
    def _totals(self) -> "array[int]":
        """Bytes of each file, and of all files in each folder."""
        totals = array("Q", (0 if entry.kind is Kind.DIRECTORY else entry.size for entry in self._entries))
        for node in range(len(totals) - 1, -1, -1):  # what a folder holds comes after it
            parent = self._parents[node]
            if parent >= 0:
                totals[parent] += totals[node]
        return totals

    def entry(self, node: int) -> Entry:
        """Return the entry of a node."""
        return self._entries[node]

    def node_of(self, path: bytes) -> int | None:
        """Return the node of a path."""
        return self._by_path.get(path)

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {entry.text: node for node, entry in enumerate(self._entries)}

    def node_of_subject(self, subject: str) -> int | None:
        """Return the node of the neutralised path that a blocker names."""
        return self._by_text.get(subject)

    def children(self, node: int | None) -> Sequence[int]:
        """Return what a folder holds, folders first."""
        held = self._below.get(-1 if node is None else node, [])
        return sorted(held, key=lambda child: self._entries[child].kind is not Kind.DIRECTORY)

    def parent(self, node: int) -> int | None:
        """Return the folder that holds a node; None at the top."""
        parent = self._parents[node]
        return parent if parent >= 0 else None

    def is_branch(self, node: int) -> bool:
        """Tell whether a node is a folder with something in it."""
        return node in self._below

    def label(self, node: int) -> Part:
        """Return the name, with a slash where it is a folder."""
        entry = self._entries[node]
        return f"{entry.name}/" if entry.kind is Kind.DIRECTORY else entry.name

    def detail(self, node: int) -> Part:
        """Return the size; of a folder, that of everything in it."""
        kind = self._entries[node].kind
        if kind is Kind.FILE or kind is Kind.DIRECTORY:
            figure = size(self._totals[node])
            if self.shows_roles and kind is Kind.FILE:
                figure = f"{self.role(node):<{ROLE}}{figure:>{SIZE}}"
            return figure, Tone.MUTED
        return _SPECIAL.get(kind, kind.value), Tone.CAUTION

    def role(self, node: int) -> str:
        """Return what a file is for, as far as its name tells; empty where it tells nothing."""
        role = self._roles[node] if node < len(self._roles) else ""
        return "" if role == "other" else role

    def marks(self, node: int) -> Sequence[tuple[str, Tone]]:
        """Return the letters of a node, the worst first."""
        return [(mark.value, _TONES.get(mark, Tone.MUTED)) for mark in self._letters(node)]

    def _letters(self, node: int) -> list[Mark]:
        entry = self._entries[node]
        letters = set(self._marks.get(node, ()))
        if entry.kind is Kind.LINK or entry.admitted is not None:
            letters.add(Mark.LINK)
        elif entry.kind in _SPECIAL:
            letters.add(Mark.SPECIAL)
        return [mark for mark in Mark if mark in letters]

    def legend(self) -> list[tuple[Part, ...]]:
        """Return how many files and folders there are, and each letter in use with its word."""
        kinds = [entry.kind for entry in self._entries]
        folders = kinds.count(Kind.DIRECTORY)
        used = {mark for letters in self._marks.values() for mark in letters}
        if Kind.LINK in kinds or any(entry.admitted is not None for entry in self._entries):
            used.add(Mark.LINK)
        if not _SPECIAL.keys().isdisjoint(kinds):
            used.add(Mark.SPECIAL)
        items: list[tuple[Part, ...]] = [((plural(len(kinds) - folders, "file"), Tone.MUTED),)]
        if folders:
            items.append(((plural(folders, "folder"), Tone.MUTED),))
        for mark in Mark:
            if mark in used:
                tone = _TONES.get(mark, Tone.PLAIN)
                items.append(((mark.value, tone), (f" {WORDS[mark]}", Tone.MUTED)))
        return items


class FileTree(VirtualTree):
    """The files of an inventory.

    `FileTree(*, empty="No files", glyphs=None, id=None, classes=None)`, then `show_files(InventoryTree(...))`.

    Messages: `FileHighlighted` and `FileSelected` with the `Entry`.
    """

    BINDING_GROUP_TITLE = "Files"

    class FileHighlighted(Message):
        """The cursor came to another file or folder."""

        def __init__(self, file_tree: "FileTree", entry: Entry) -> None:
            super().__init__()
            self.file_tree = file_tree
            self.entry = entry

        @property
        def control(self) -> "FileTree":
            """The tree it happened in."""
            return self.file_tree

        def can_replace(self, message: Message) -> bool:
            """Only the newest place of the cursor matters."""
            return isinstance(message, type(self)) and message.file_tree is self.file_tree

    class FileSelected(Message):
        """A file was chosen."""

        def __init__(self, file_tree: "FileTree", entry: Entry) -> None:
            super().__init__()
            self.file_tree = file_tree
            self.entry = entry

        @property
        def control(self) -> "FileTree":
            """The tree it happened in."""
            return self.file_tree

    def __init__(
        self,
        *,
        empty: str = "No files",
        glyphs: Glyphs | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Make an empty tree."""
        self.files = InventoryTree(NOTHING)
        super().__init__(
            self.files,
            detail_width=SIZE,
            mark_width=3,
            empty=empty,
            glyphs=glyphs,
            name=name,
            id=id,
            classes=classes,
        )

    def fit_rows(self, room: int) -> None:
        """Show roles where there is room for them."""
        super().fit_rows(room)
        self.files.shows_roles = room >= ROLES_FROM
        self.detail_width = SIZE + (ROLE if self.files.shows_roles else 0)

    def show_files(self, files: InventoryTree) -> None:
        """Show an inventory; a single folder at the top is opened."""
        self.files = files
        self.show(files)
        if self.row_count() == 1:
            self.open_line(0)

    def show_marks(self, marks: Marks) -> None:
        """Show other marks beside the same files."""
        self.files.set_marks(marks)
        self.refresh_nodes()

    @property
    def entry(self) -> Entry | None:
        """The entry under the cursor."""
        node = self.node
        return None if node is None else self.files.entry(node)

    def reveal_subject(self, subject: str) -> bool:
        """Put the cursor on the file that a blocker is about; False where there is no such file."""
        node = self.files.node_of_subject(subject)
        if node is None:
            return False
        self.reveal(node)
        return True

    def on_virtual_rows_row_highlighted(self, message: VirtualRows.RowHighlighted) -> None:
        """Say which file it is."""
        message.stop()
        self.post_message(self.FileHighlighted(self, self.files.entry(message.row)))

    def on_virtual_rows_row_selected(self, message: VirtualRows.RowSelected) -> None:
        """Say which file it is."""
        message.stop()
        self.post_message(self.FileSelected(self, self.files.entry(message.row)))


class Legend(Widget):
    """The lines below the tree: counts, and what the letters mean. Fill it with `show_legend(files)`."""

    DEFAULT_CSS = "Legend { height: auto; }"

    _items: tuple[Content, ...] = ()

    def show_legend(self, files: InventoryTree) -> None:
        """Show the legend of `files`."""
        self._items = tuple(content(*item) for item in files.legend())
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual calls it so
        """Return how many lines the legend takes in `width` cells."""
        return len(self._lines(width))

    def render(self) -> Content:
        """Draw the lines."""
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        """Return the items broken into lines, never between a letter and its word."""
        lines: list[Content] = []
        for item in self._items:
            longer = lines[-1] + Content("  ") + item if lines else item
            if lines and longer.cell_length <= width:
                lines[-1] = longer
            else:
                lines.append(item)
        return lines

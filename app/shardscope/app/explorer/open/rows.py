"""The rows of the lists of the Open screens, and the table that goes in and out of them."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.message import Message

from shardscope.app.explorer.open.candidates import Candidate
from shardscope.engine.source.hub_cache import Repo, Revision
from shardscope.widgets.figures import plural, size
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_table import Column, VirtualTable

CANDIDATE_COLUMNS: Final = (
    Column("name", 20, grow=1),
    Column("what names tell", 26),
    Column("size", 10, right=True),
)
REPO_COLUMNS: Final = (
    Column("repository", 16, grow=1),
    Column("kind", 7),
    Column("revisions", 9, right=True),
    Column("size", 9, right=True),
    Column("", 23),
)
REVISION_COLUMNS: Final = (
    Column("revision", 12, grow=1),
    Column("at", 14),
    Column("files", 7, right=True),
    Column("size", 9, right=True),
    Column("", 20),
)


class Levels(VirtualTable):
    """A table whose rows can be gone into, and left for what is above them."""

    BINDING_GROUP_TITLE = "The list"
    ALLOW_MAXIMIZE: ClassVar[bool] = False

    class Entered(Message):
        """The person wants to see what is in a row."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    class Left(Message):
        """The person wants to see what this is in."""

    def action_rightwards(self) -> None:
        """Go into the row."""
        if self.row is not None:
            self.post_message(self.Entered(self.row))

    def action_leftwards(self) -> None:
        """Go out of the list."""
        self.post_message(self.Left())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work: the order stays, since it says what is worth looking at."""
        return action not in ("sort", "reverse")


class CandidateRows:
    """What a folder offers."""

    def __init__(self, found: Sequence[Candidate], folder: str) -> None:
        self._found = found
        self._folder = folder

    @property
    def row_count(self) -> int:
        """How many there are."""
        return len(self._found)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        each = self._found[row]
        worth = bool(each.weights or each.steps or each.is_cache)
        if column == 0:
            return self.name(row), Tone.PLAIN if worth else Tone.MUTED
        if column == 1:
            return _words(each), Tone.PLAIN if worth else Tone.MUTED
        return size(each.bytes) if each.weights else "", Tone.PLAIN

    def name(self, row: int) -> str:
        """Return how a row is called."""
        each = self._found[row]
        if each.path == self._folder:
            return "this folder"
        name = each.path.removeprefix(f"{self._folder.rstrip('/')}/") if self._folder != "." else each.path
        return f"{name}/" if each.is_folder else name


def _words(candidate: Candidate) -> str:
    if not candidate.is_folder:
        return "weight file"
    if candidate.is_cache:
        return "Hugging Face cache"
    facts = []
    if candidate.weights:
        facts.append(plural(candidate.weights, "weight file"))
    if candidate.steps:
        facts.append(plural(candidate.steps, "step"))
    return ", ".join(facts) or "no weight files"


class RecentRows:
    """Paths that were looked at."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    @property
    def row_count(self) -> int:
        """How many there are."""
        return len(self._paths)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        return self._paths[row] if column == 0 else ""


class RepoRows:
    """The repositories of a cache."""

    def __init__(self, repos: Sequence[Repo]) -> None:
        self._repos = repos

    @property
    def row_count(self) -> int:
        """How many there are."""
        return len(self._repos)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        repo = self._repos[row]
        tone = Tone.PLAIN if repo.kind == "model" else Tone.MUTED
        match column:
            case 0:
                return repo.name, tone
            case 1:
                return repo.kind, Tone.MUTED
            case 2:
                return f"{len(repo.revisions):,}", tone
            case 3:
                return size(repo.bytes), tone
        missing = sum(each.missing for each in repo.revisions)
        return _marks(repo.incomplete, missing, 0)


class RevisionRows:
    """The revisions of a repository."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    @property
    def row_count(self) -> int:
        """How many there are."""
        return len(self._repo.revisions)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        each = self._repo.revisions[row]
        match column:
            case 0:
                return each.commit
            case 1:
                return ", ".join(each.refs), Tone.HERE
            case 2:
                return f"{each.files:,}"
            case 3:
                return size(each.bytes)
        return _marks(0, each.missing, each.foreign)


def _marks(incomplete: int, missing: int, foreign: int) -> Part:
    """Return what is wrong, in words."""
    words = [
        f"{count:,} {word}"
        for count, word in ((incomplete, "incomplete"), (missing, "missing"), (foreign, "foreign link"))
        if count
    ]
    return (", ".join(words), Tone.CAUTION) if words else ("", Tone.PLAIN)


def revision_words(revision: Revision) -> str:
    """Return what keeps a revision from being whole, as a sentence; nothing where nothing is known to."""
    if not revision.missing:
        return ""
    verb = "was" if revision.missing == 1 else "were"
    return f"{plural(revision.missing, 'file')} {verb} not downloaded"

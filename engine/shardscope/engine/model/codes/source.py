"""The source: what its directory entries are, and whether they held still."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_ALL: Final = (Blocks.INSPECT, Blocks.DECODE, Blocks.CONVERT)


def _error(
    code: str,
    message: str,
    remedy: str,
    meaning: str,
    *,
    blocks: tuple[Blocks, ...] = _ALL,
    ends: ExitCode | None = None,
) -> Code:
    return Code(f"source.{code}", Severity.ERROR, Stage.SOURCE, message, remedy, meaning, blocks, ends)


def _warning(code: str, message: str, remedy: str, meaning: str, blocks: tuple[Blocks, ...] = ()) -> Code:
    return Code(f"source.{code}", Severity.WARNING, Stage.SOURCE, message, remedy, meaning, blocks)


def _info(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(f"source.{code}", Severity.INFO, Stage.SOURCE, message, remedy, meaning)


_LINKS: Final = (
    "Links are never followed: what stands behind one can change, lie outside the folder, or be counted twice. "
    "A checkpoint that holds links is refused as a whole instead of being read in part."
)
_COPY: Final = (
    "Replace the link by the file itself (cp -rL FOLDER COPY makes a copy without links) and inspect again."
)

TABLE: Final[tuple[Code, ...]] = (
    _error(
        "missing",
        "{file:path} does not exist.",
        "Check the path: a part of it may be misspelled, or its disk not mounted.",
        "The path that was given leads to nothing: the name is not there, or a part of the way is not a folder. What is named "
        "is the first part of it that is missing.",
        ends=ExitCode.UNREADABLE,
    ),
    _error(
        "tilde",
        "{file:path} does not exist: it is a name here, and not your home folder.",
        "Leave the quotes away, or write $HOME: a shell turns ~ into your home folder only where a word begins with it, unquoted.",
        "A path that begins with ~ reached the program as it was typed, and there is nothing of this name.",
        ends=ExitCode.UNREADABLE,
    ),
    _error(
        "unreadable",
        "{file:path} cannot be read: {reason:text}.",
        "Give your user read permission (and search permission on folders), or run as the user who owns it.",
        "The system refused to list a folder, to look at an entry or to open a file. What stands there is not "
        "examined, and not examined is never taken for absent.",
        ends=ExitCode.UNREADABLE,
    ),
    _error(
        "read_failed",
        "Reading {file:path} failed at byte {offset:count}: {reason:text}.",
        "Check the disk or the network mount and its system log, then inspect again.",
        "The system reported an error while bytes of an open file were read, which points at the storage and not "
        "at the format.",
        ends=ExitCode.UNREADABLE,
    ),
    _error(
        "root_link",
        "{file:path} is itself a symbolic link.",
        "Give the folder or file that it leads to (readlink -f PATH prints it).",
        _LINKS + " The path that names the checkpoint must name it directly.",
        ends=ExitCode.UNREADABLE,
    ),
    _error(
        "link",
        "{file:path} is a symbolic link to {target:path}.",
        _COPY,
        _LINKS + " This one stays inside the folder, as far as its text tells.",
    ),
    _error(
        "link_outside",
        "{file:path} is a symbolic link out of the folder, to {target:path}.",
        _COPY,
        _LINKS
        + " This one climbs above the folder or names an absolute path, so that it reaches files which are "
        "not part of the checkpoint.",
    ),
    _error(
        "link_broken",
        "{file:path} is a symbolic link to {target:path}, where nothing is.",
        "Fetch or copy the missing file, or delete the link, and inspect again.",
        _LINKS + " This one leads to a name that does not exist: a copy or download left the target out.",
    ),
    _error(
        "link_loop",
        "{file:path} is a symbolic link to {target:path}, which leads back to where it stands.",
        "Delete the link and inspect again.",
        _LINKS
        + " This one comes back to itself, to a folder that holds it, or passes through more than 40 links.",
    ),
    _error(
        "link_hf_cache",
        "{file:path} is a link into blobs/, as in a snapshot of the Hugging Face cache.",
        "Inspect it with --hf-cache, which admits links that lead directly to a file in the blobs/ of the same "
        "repository.",
        "The Hugging Face cache keeps each file once in blobs/ and lets snapshots link there. Links are never "
        "followed by default; --hf-cache admits exactly these and no others.",
    ),
    _error(
        "link_hf_below",
        "{file:path} is a link into blobs/ of the repository {repository:path}, in a cache of the Hugging Face hub.",
        "Name one snapshot, {repository:path}/snapshots/REVISION in this folder, and add --hf-cache; `shardscope --hf-cache` shows "
        "what the cache holds.",
        "The folder holds repositories of the Hugging Face cache, each with models of its own. Links are never followed by "
        "default; --hf-cache admits those of the one repository that the path leads to or into.",
    ),
    _error(
        "link_hf_refused",
        "{file:path} links to {target:path} in the Hugging Face cache, which is {what:word} and not a regular file.",
        "Download this file again (hf download REPOSITORY FILE --force-download).",
        "--hf-cache admits a link only where it leads directly to a regular file in the blobs/ folder of the same "
        "repository. A blob that is a link, a folder or anything else was not made by the cache.",
    ),
    _warning(
        "hf_incomplete",
        "{file:path} is a download that did not finish: {size:bytes} are there.",
        "Finish it (hf download REPOSITORY) before you trust that this repository is whole.",
        "The Hugging Face cache writes a file as blobs/NAME.incomplete and renames it when it is whole. It may "
        "belong to another snapshot of the same repository, or a download may be running right now.",
    ),
    _info(
        "hf_not_cache",
        "This is not a folder of the Hugging Face cache, so that --hf-cache admits no links here.",
        "Give the snapshot folder, REPOSITORY/snapshots/REVISION, if you meant one.",
        "--hf-cache looks for a repository folder that holds snapshots/ and blobs/ at the path or above it, and "
        "found none.",
    ),
    _error(
        "hardlink_alias",
        "{file:path} is one file under {names:count} names here, {other:path} among them.",
        "Keep one name, or make real copies (cp --remove-destination A B), and inspect again.",
        "Several names of one inode look like several files, but hold the same bytes: sizes are counted twice and a "
        "write to one changes the other. Which name is meant cannot be told.",
    ),
    _info(
        "hardlink_outside",
        "{file:path} has further names outside of this folder: {outside:count}.",
        "Nothing needs to be done; know that a write through another name changes this file too.",
        "The link count of the file is higher than the number of names found here, as deduplicating stores and "
        "backups make it.",
    ),
    _error(
        "not_regular",
        "{file:path} is {what:word}, not a regular file.",
        "Remove it from the folder, or give the file or folder that you meant.",
        "Reading a FIFO can wait forever and reading a device can act on hardware; a checkpoint consists of regular "
        "files and folders alone. It was not opened.",
        ends=ExitCode.UNREADABLE,
    ),
    _error(
        "escape",
        "{file:path} leads out of the folder.",
        "Do not use this checkpoint before you know who made it: the path was written to reach other files.",
        "A path with an absolute start, an empty part, `.` or `..` in it is not the name of anything in the "
        "inventory. Everything is opened beneath the root by names that the walk itself has seen.",
    ),
    _error(
        "changed",
        "{file:path} changed during the inspection: {change:word}.",
        "Wait until nothing writes there any more (a save or download may be running) and inspect again.",
        "Identity, size and times are compared before and after each read, and folders are listed again at the end. "
        "Facts from different moments do not describe any checkpoint that ever existed.",
        ends=ExitCode.CHANGED,
    ),
    _info(
        "hole",
        "{file:path} has {size:bytes}, of which {allocated:bytes} are on disk.",
        "If you expect dense weights, compare a checksum with the origin: unwritten parts read as zeros.",
        "The file system keeps fewer blocks for the file than its size needs. Either the file has holes, as an "
        "interrupted or preallocated download leaves them, or the file system compresses.",
    ),
    _warning(
        "name_not_utf8",
        "The name {file:path} is not valid UTF-8.",
        "Rename it: tools that read names as text cannot open it.",
        "File names are bytes. These do not form text, so that the name is shown with \\xNN for each byte that is "
        "not, and its exact bytes stand beside it in the descriptor.",
    ),
    _warning(
        "name_odd",
        "The name {file:path} holds {what:word}.",
        "Rename it: what a terminal shows is not what the name is.",
        "Control, direction and invisible characters and letters of mixed alphabets make one name look like "
        "another, or act on the terminal that prints it. Names are made visible before they are shown.",
    ),
    _warning(
        "name_collision",
        "The names {file:path} and {other:path} look alike.",
        "Rename one: on file systems that ignore case or normalise Unicode they are one file.",
        "Two names in one folder differ by upper and lower case, by Unicode normalisation, or only by characters that "
        "cannot be shown. A copy to another system can silently drop one of them.",
    ),
    _info(
        "hidden",
        "{file:path} is hidden from a plain listing.",
        "Nothing needs to be done; it is part of the inventory.",
        "Its name starts with a dot, so that ls does not show it. Hidden entries are listed and counted like all "
        "others, version control folders too.",
    ),
    _info(
        "mtime_odd",
        "{file:path} claims to be modified {when:word}.",
        "Do not order saves by the times of these files.",
        "The modification time lies before 1980 or after 2099, as archives with stripped times or a wrong clock "
        "leave it.",
    ),
    _info(
        "more",
        "{count:count} more findings of the kind {code:word} are not listed.",
        "Raise the number with --limit findings=NUMBER to list them all.",
        "Each kind of finding is listed up to the limit `findings`; the rest is counted.",
    ),
)

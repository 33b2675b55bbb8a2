"""Files that are not what their name says."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage


def _wrong(code: str, message: str, remedy: str, meaning: str) -> Code:
    blocks = (Blocks.INSPECT, Blocks.DECODE, Blocks.CONVERT, Blocks.LOAD)
    return Code(code, Severity.ERROR, Stage.PARSE, message, remedy, meaning, blocks)


TABLE: Final[tuple[Code, ...]] = (
    _wrong(
        "file.empty",
        "{file:path} has no bytes.",
        "Fetch or save it again.",
        "The file exists but nothing was written to it: a save or a download that failed at its start.",
    ),
    _wrong(
        "file.lfs_pointer",
        "{file:path} is a Git LFS pointer: the real file of {size:bytes} was not downloaded.",
        "Run git lfs pull in the repository, or download the file from the model's page.",
        "A clone without Git LFS leaves a text of about 130 bytes in the place of each large file. It names the size and "
        "the SHA-256 of the real one.",
    ),
    _wrong(
        "file.html",
        "{file:path} is an HTML page, not {expected:word}.",
        "Download it again; the page is probably an error or a sign-in form of the server.",
        "A download that needed a sign-in, or met an error, saved the page that the server sent instead of the file.",
    ),
    _wrong(
        "file.text",
        "{file:path} is plain text ({found:word}), not {expected:word}.",
        "Open it to see what it says; it is often the error message of a download.",
        "A server's error message or another text file stands where the weights should be.",
    ),
    _wrong(
        "file.incomplete",
        "{file:path} is an unfinished download: its name ends in {marker:word}.",
        "Let the download finish, or start it again.",
        "Download programs write to a name with a mark of their own and rename the file when it is whole.",
    ),
    _wrong(
        "file.zeros",
        "{file:path} begins with {looked:count} zero bytes (of {size:bytes}) and holds nothing recognisable.",
        "Fetch it again; its space was reserved, but its content never arrived.",
        "Download programs and file systems reserve space as zeros. A file that begins with zeros has no header of any "
        "known format.",
    ),
    _wrong(
        "file.compressed",
        "{file:path} is compressed as a whole with {found:word}.",
        "Decompress it first.",
        "Weights are read in place, by position. A file that is compressed as a whole has no positions to read.",
    ),
    _wrong(
        "file.wrong_format",
        "{file:path} is named as {expected:word}, but its first bytes are those of {found:word}.",
        "Give the file the name of what it is, or fetch the right file.",
        "The name and the content disagree. Nothing is read by a name alone, because a loader that goes by the name "
        "could be made to run what the content holds.",
    ),
)

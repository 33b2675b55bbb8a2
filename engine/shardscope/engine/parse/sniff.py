"""What a file is by its first bytes, whatever its name says.

Signatures are those of the formats' own specifications: PKWARE APPNOTE (zip), RFC 1952 (gzip), RFC 8878 (zstd), the
xz, bzip2, GGUF, ggml, NumPy and HDF5 format documents, POSIX ustar, Python's pickle protocol, `torch/serialization.py` for
the legacy stream and the Git LFS pointer specification.
"""

import re
from collections.abc import Set as AbstractSet
from typing import Final

from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.facts import LfsPointer, Nature, Sniff

HEAD: Final = 4_096
"""How many bytes are enough."""
TAIL: Final = 22 + 0xFFFF
"""Bytes of the end record of a zip, with the longest comment."""

_MAGIC: Final = (
    (b"PK\x03\x04", Nature.ZIP),
    (b"PK\x05\x06", Nature.ZIP),
    (b"PK\x07\x08", Nature.ZIP),
    (b"GGUF", Nature.GGUF),
    *((magic, Nature.GGML) for magic in (b"lmgg", b"fmgg", b"tjgg", b"algg")),
    (b"\x1f\x8b", Nature.GZIP),
    (b"\xfd7zXZ\0", Nature.XZ),
    (b"\x28\xb5\x2f\xfd", Nature.ZSTD),
    (b"BZh", Nature.BZIP2),
    (b"\x93NUMPY", Nature.NUMPY),
    (b"\x89HDF\r\n\x1a\n", Nature.HDF5),
)

_LEGACY: Final = re.compile(
    rb"(?:\x80[\x02-\x05](?:\x95.{8})?\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19|L119547037146038801333356L?\n)",
    re.DOTALL,
)
"""A pickle of torch's ten-byte magic number, of whatever protocol the person chose: 2 unless told otherwise."""

_LFS: Final = re.compile(
    rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\r?\n(?:[^\r\n]{1,512}\r?\n){0,16}?"
    rb"oid sha256:([0-9a-f]{64})\r?\nsize (\d{1,19})\r?\n?"
)
_LFS_START: Final = re.compile(rb"version https://(?:git-lfs|hawser)\.github\.com/spec/")
_HTML: Final = re.compile(
    rb"(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta)\b", re.IGNORECASE | re.DOTALL
)
_PICKLE: Final = re.compile(
    rb"\x80[\x02-\x05][\x88-\x8f\x95\x96c}\](){XNKMJGCBUT]"  # a protocol and an opcode that can come first
    rb"|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n|\([dl]p\d+\n|[}\]]q\x00"  # protocols 0 and 1 announce nothing
)
_SCALAR_PICKLE: Final = re.compile(rb"[FILSV][^\n]*\n(?:p\d+\n)?\.")
"""The whole of a pickle of one number or text in protocol 0, which else passes for text."""
_ONNX: Final = re.compile(rb"\x08[\x01-\x20]\x12[\x01-\x40][\w. -]+[\x1a\x22\x3a]")
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BOM: Final = b"\xef\xbb\xbf"

_UNFINISHED: Final = re.compile(
    r"\.(?:incomplete|part|partial|crdownload|download|opdownload|filepart|aria2|tmp|temp|unfinished|!ut|!qB)$",
    re.IGNORECASE,
)

_COMPRESSED: Final = {Nature.GZIP, Nature.XZ, Nature.ZSTD, Nature.BZIP2}
_WORDS: Final = {
    Nature.SAFETENSORS: "a safetensors file",
    Nature.ZIP: "a zip archive",
    Nature.PICKLE: "a bare pickle",
    Nature.TORCH_LEGACY: "a legacy torch.save stream",
    Nature.JSON: "JSON",
    Nature.TEXT: "text",
    Nature.TAR: "a tar archive",
    Nature.GGUF: "a GGUF file",
    Nature.GGML: "a GGML file",
    Nature.NUMPY: "a NumPy array file",
    Nature.HDF5: "an HDF5 file",
    Nature.ONNX: "an ONNX model",
}


def sniff(head: bytes, size: int) -> Sniff:
    """Tell what a file of `size` bytes is by its first bytes; `HEAD` of them are enough, more are not looked at."""
    head = head[:HEAD]
    nature, lfs = _nature(head, size)
    return Sniff(nature, lfs, looked=len(head))


def _nature(head: bytes, size: int) -> tuple[Nature, LfsPointer | None]:
    if size == 0:
        return Nature.EMPTY, None
    if _LFS_START.match(head):
        pointer = _LFS.fullmatch(head)
        return Nature.LFS_POINTER, LfsPointer(pointer[1].decode(), int(pointer[2])) if pointer else None
    # Before the signatures: the two or three bytes of some of them may be the low bytes of a header length.
    if _looks_like_safetensors(head):
        return Nature.SAFETENSORS, None
    if _LEGACY.match(head):
        return Nature.TORCH_LEGACY, None
    for magic, nature in _MAGIC:
        if head.startswith(magic):
            return nature, None
    if head[257:262] == b"ustar":
        return Nature.TAR, None
    if not head.strip(b"\0"):
        return Nature.ZEROS, None
    if _PICKLE.match(head) or (len(head) == size and _SCALAR_PICKLE.fullmatch(head)):
        return Nature.PICKLE, None
    if _ONNX.match(head):
        return Nature.ONNX, None
    return _text_nature(head), None


def _looks_like_safetensors(head: bytes) -> bool:
    length = int.from_bytes(head[:8], "little")
    return 1 < length < 1 << 32 and head[8:].lstrip(b" \t\r\n").startswith(b"{")


def _text_nature(head: bytes) -> Nature:
    if len(head) < 2 or _BINARY.search(head):
        return Nature.UNKNOWN
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if (
            error.start < len(head) - 3 or len(head) < HEAD
        ):  # a character may be cut by the end of what was read
            return Nature.UNKNOWN
    text = head.removeprefix(_BOM).lstrip()
    if _HTML.match(text):
        return Nature.HTML
    return Nature.JSON if text.startswith((b"{", b"[")) else Nature.TEXT


def ends_as_zip(tail: bytes) -> bool:
    """Whether a file ends in the end record of a zip, whatever its first bytes say; `tail` are its last `TAIL` bytes."""
    at = tail.rfind(b"PK\x05\x06")
    return (
        at >= 0
        and len(tail) - at >= 22
        and at + 22 + int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail)
    )


def check_expected(sniffed: Sniff, expected: Nature | AbstractSet[Nature], size: int) -> Finding | None:
    """Name what a file is when it is known to be something else than `expected`.

    `expected` is what the file's name promises: one nature, or any of several. Null means that the file is what it
    should be or that its first bytes say nothing, so that the format's own parser has the word. Returns one of
    `file.empty`, `file.lfs_pointer`, `file.html`, `file.text`, `file.zeros`, `file.compressed`, `file.wrong_format`.
    """
    wanted = {expected} if isinstance(expected, Nature) else expected
    nature = sniffed.nature
    if nature in wanted or nature is Nature.UNKNOWN:
        return None
    if nature is Nature.TEXT and Nature.JSON in wanted:
        return None  # the JSON parser names the line and the column
    words: dict[str, Param] = {
        "expected": " or ".join(sorted(_WORDS.get(each, each.value) for each in wanted))
    }
    match nature:
        case Nature.EMPTY:
            return Finding("file.empty")
        case Nature.LFS_POINTER:
            return Finding("file.lfs_pointer", {"size": sniffed.lfs.size if sniffed.lfs else None})
        case Nature.ZEROS:
            return Finding("file.zeros", {"looked": sniffed.looked, "size": size})
        case Nature.HTML:
            return Finding("file.html", words)
        case Nature.TEXT | Nature.JSON:
            return Finding(
                "file.text", {"found": "JSON" if nature is Nature.JSON else "no known format", **words}
            )
        case _ if nature in _COMPRESSED:
            return Finding("file.compressed", {"found": nature.value})
        case _:
            return Finding("file.wrong_format", {"found": _WORDS.get(nature, nature.value), **words})


def unfinished_download(name: str) -> Finding | None:
    """Name a file whose name marks an unfinished download (`file.incomplete`)."""
    match = _UNFINISHED.search(name)
    return Finding("file.incomplete", {"marker": match[0]}) if match else None

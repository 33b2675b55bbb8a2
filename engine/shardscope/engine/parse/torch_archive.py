"""Archives of torch.save, by the names of their entries: no pickle byte is read.

Format: `torch/csrc` and `caffe2/serialize/inline_container` of PyTorch: one top folder named after the file (or `archive`),
`data.pkl` with the structure, `data/<key>` with a storage each, `version`, and in newer files `byteorder`, `.format_version`,
`.storage_alignment` and `.data/serialization_id`. TorchScript adds `constants.pkl` and `code/`.
"""

import zlib
from typing import Final

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.facts import TorchArchive, ZipDirectory, ZipEntry
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.parse.zip import DEFLATED, STORED

_TINY: Final = 64
"""Bytes beyond which neither a version nor a byte order is read."""
_VERSIONS: Final = range(1, 11)


def describe(reader: Reader, directory: ZipDirectory, limits: Limits) -> TorchArchive:  # noqa: ARG001 - the room's signature
    """Describe a torch.save archive from its directory; of its content only `version` and `byteorder` are read.

    Raises `Fault` `torch.no_data_pkl`, `torch.multiple_roots` or `torch.empty_pickle`.
    """
    entries = {entry.name: entry for entry in directory.entries}
    roots = {name.partition("/")[0] for name in entries}
    pickles = [name for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")]
    if not pickles:
        raise Fault("torch.no_data_pkl", entries=len(entries))
    if len(roots) > 1:
        raise Fault("torch.multiple_roots", count=len(roots))
    root = pickles[0].partition("/")[0]
    pickle = entries[pickles[0]]
    if not pickle.size:
        raise Fault("torch.empty_pickle")
    prefix = f"{root}/data/"
    storages = [entry for name, entry in entries.items() if name.startswith(prefix) and name != prefix]
    torchscript = f"{root}/constants.pkl" in entries or any(
        name.startswith(f"{root}/code/") for name in entries
    )
    notes = _version_notes(reader, entries.get(f"{root}/version") or entries.get(f"{root}/.data/version"))
    byteorder = _small_text(reader, entries.get(f"{root}/byteorder"))
    if byteorder == "big":
        notes.append(Finding("torch.big_endian"))
    elif byteorder not in ("little", None):
        notes.append(Finding("torch.byteorder"))
        byteorder = None
    if torchscript:
        notes.append(Finding("torch.torchscript"))
    return TorchArchive(
        root=root,
        pickle=pickle,
        storages=len(storages),
        storage_bytes=sum(entry.size for entry in storages),
        byteorder=byteorder,
        stored=all(entry.method == STORED for entry in storages),
        torchscript=torchscript,
        crc_recorded=any(entry.crc for entry in directory.entries),
        notes=tuple(notes),
    )


def _version_notes(reader: Reader, entry: ZipEntry | None) -> list[Finding]:
    text = _small_text(reader, entry)
    if text is None:
        return [Finding("torch.version", {"found": "there is none"})]
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 4 and int(digits) in _VERSIONS:
        return []
    return [
        Finding(
            "torch.version",
            {"found": digits[:_TINY] if digits.isascii() and digits.isdigit() else "not a number"},
        )
    ]


def _small_text(reader: Reader, entry: ZipEntry | None) -> str | None:
    """Return the text of a tiny entry; empty where it is neither tiny nor readable, null where it is absent."""
    if entry is None:
        return None
    if max(entry.size, entry.compressed) > _TINY or entry.data_offset is None:
        return ""
    data = reader.pread(entry.data_offset, entry.compressed)
    if entry.method == DEFLATED:
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _TINY)
        except zlib.error:
            return ""
    elif entry.method != STORED:
        return ""
    return data.decode("ascii", "replace")

"""Every pickle of every fixture, as bytes: of archives, of items of distributed checkpoints, of legacy streams, `.metadata`."""

import io
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FIXTURES = Path(__file__).parents[1] / "fixtures"
LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
_LOCAL = struct.Struct("<4sHHHHHIIIHH")


class Found(NamedTuple):
    """One stream of pickles."""

    file: str
    """Relative to the fixtures."""
    data: bytes
    pickles: int
    """How many it has: five in a legacy stream."""


def fixture_pickles() -> Iterator[Found]:
    """Yield all of them, in order of files."""
    for path in sorted(FIXTURES.rglob("*")):
        if path.is_file() and path.suffix not in (".safetensors", ".json", ".dat", ".py", ".md"):
            name = str(path.relative_to(FIXTURES))
            for data in _of_file(path):
                yield Found(name, data, 5 if data.startswith(LEGACY) else 1)


def _of_file(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    if path.name.endswith(".metadata") or data.startswith(LEGACY):
        yield data
    elif path.suffix == ".distcp":
        yield from _of_items(data)
    elif data.startswith(b"PK\x03\x04"):
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile:
            return
        with archive:
            for entry in archive.infolist():
                if entry.filename.endswith("/data.pkl"):
                    with archive.open(entry) as file:
                        file._expected_crc = None  # type: ignore[attr-defined]  # one fixture records none
                        yield file.read()


def _of_items(data: bytes) -> Iterator[bytes]:
    """Yield the pickle of each archive in a row of them: it is the first record of its archive."""
    begin = data.find(b"PK\x03\x04")
    while 0 <= begin <= len(data) - _LOCAL.size:
        _, _, _, method, _, _, _, _, _, name, extra = _LOCAL.unpack_from(data, begin)
        at = begin + _LOCAL.size
        if data[at : at + name].endswith(b"/data.pkl") and method == 0:
            end = data.find(b"PK\x07\x08", at)  # what follows the bytes of a record
            if end >= 0:
                yield data[at + name + extra : end]
        begin = data.find(b"PK\x03\x04", at)

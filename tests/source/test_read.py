"""Opening and reading one file: beneath the root, regular, still the same, and by position only."""

import errno
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.source import Entry, Identity, Kind, Reader
from shardscope.engine.source import openat2
from shardscope.engine.source.beneath import open_folder
from shardscope.engine.source.source import Source
from tests.source.trees import as_nobody, make, open_to_all, socket_at

CONTENT = bytes(range(256)) * 8


def fault_of(work: Callable[[], object]) -> Finding:
    """Return the finding that `work` raises."""
    with pytest.raises(Fault) as caught:
        work()
    return caught.value.finding


def test_reads_are_by_position_and_end_with_the_file(tmp_path: Path, resolution: str) -> None:
    make(tmp_path, {"a/b/model.bin": CONTENT})
    with Source(tmp_path) as source, source.open(source.walk().by_path[b"a/b/model.bin"]) as file:
        reader: Reader = file
        buffer = memoryview(bytearray(100))

        assert reader.size == len(CONTENT)
        assert reader.pread(10, 5) == CONTENT[10:15]
        assert reader.pread(0, 1 << 40) == CONTENT
        assert reader.pread(len(CONTENT) - 3, 10) == CONTENT[-3:]
        assert reader.pread(len(CONTENT), 10) == b""
        assert reader.pread(len(CONTENT) + 50, 10) == b""
        assert reader.pread(0, 0) == b""
        assert file.pread_into(len(CONTENT) - 60, buffer) == 60
        assert buffer[:60] == CONTENT[-60:]


def test_calls_that_give_less_are_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"model.bin": CONTENT})
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda file, length, offset: pread(file, min(length, 7), offset))

    def one_short(file: int, buffers: Sequence[memoryview], offset: int) -> int:
        return preadv(file, [buffers[0][:7]], offset)

    monkeypatch.setattr(os, "preadv", one_short)
    buffer = memoryview(bytearray(100))
    with Source(tmp_path) as source, source.open(source.walk().entries[0]) as file:
        assert file.pread(3, 50) == CONTENT[3:53]
        assert file.pread_into(3, buffer) == 100
        assert buffer == CONTENT[3:103]


@pytest.mark.parametrize("name", ["model.bin", "a/model.bin", "a/b/model.bin"])
def test_files_are_opened_to_read_and_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolution: str, name: str
) -> None:
    make(tmp_path, {name: b"1"})
    real, seen = os.open, []

    def recording(path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        seen.append(flags)
        return real(path, flags, mode, dir_fd=dir_fd)

    with Source(tmp_path) as source:
        entry = source.walk().files[0]
        monkeypatch.setattr(os, "open", recording)
        source.open(entry).close()

    wanted = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    assert seen[-1] & wanted == wanted
    assert all(flags & os.O_NOFOLLOW and flags & os.O_ACCMODE == os.O_RDONLY for flags in seen)


# R142
@pytest.mark.parametrize(
    "path", ["../outside.bin", "a/../../outside.bin", "/etc/passwd", "a//b.bin", "./a/b.bin", "a/.", "..", ""]
)
def test_paths_that_are_not_plain_names_lead_nowhere(tmp_path: Path, resolution: str, path: str) -> None:
    make(tmp_path, {"outside.bin": b"secret", "root/a/b.bin": b"1"})
    with Source(tmp_path / "root") as source:
        entry = msgspec.structs.replace(source.walk().files[0], path=path.encode())

        assert fault_of(lambda: source.open(entry)).code == "source.escape"


# R142
def test_a_folder_that_became_a_link_is_not_passed(tmp_path: Path, resolution: str) -> None:
    make(tmp_path, {"root/a/b/c.bin": b"1", "outside/b/c.bin": b"1"})
    with Source(tmp_path / "root") as source:
        entry = source.walk().files[0]
        (tmp_path / "root/a").rename(tmp_path / "root/was")
        (tmp_path / "root/a").symlink_to("was")  # the very same file, and still not by way of a link

        assert fault_of(lambda: source.open(entry)).code == "source.changed"


# R142
def test_openat2_refuses_links_and_escapes_in_the_kernel(tmp_path: Path) -> None:
    call = openat2.openat2()
    if call is None:
        pytest.skip("this kernel has no openat2, or this container forbids it")
    make(tmp_path, {"root/a/b/c.bin": b"1", "outside/x": b""})
    (tmp_path / "root/link").symlink_to("a")
    folder = os.open(tmp_path / "root", os.O_RDONLY | os.O_DIRECTORY)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        os.close(call(folder, b"a/b", flags))
        for path, number in (
            (b"link/b", errno.ELOOP),
            (b"../outside", errno.EXDEV),
            (b"a/../../outside", errno.EXDEV),
            (os.fsencode(tmp_path), errno.EXDEV),
        ):
            with pytest.raises(OSError, match=re.escape(os.strerror(number))):
                call(folder, path, flags)
        os.symlink("/proc/self/root", tmp_path / "root/magic")
        with pytest.raises(OSError, match=re.escape(os.strerror(errno.ELOOP))):
            call(folder, b"magic/etc", flags)
    finally:
        os.close(folder)


def test_both_ways_to_open_a_folder_lead_to_the_same(tmp_path: Path, resolution: str) -> None:
    make(tmp_path, {"a/b/c/d.bin": b"1"})
    base = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for path in (b"", b"a", b"a/b", b"a/b/c"):
            opened = open_folder(base, path)
            assert os.path.samestat(os.fstat(opened), (tmp_path / os.fsdecode(path)).stat())
            os.close(opened)
        with pytest.raises(NotADirectoryError):
            open_folder(base, b"a/b/c/d.bin")
        with pytest.raises(FileNotFoundError):
            open_folder(base, b"a/x/c")
    finally:
        os.close(base)


@pytest.mark.parametrize("kind", [Kind.LINK, Kind.FIFO, Kind.DIRECTORY, Kind.SOCKET, Kind.UNKNOWN])
def test_only_files_are_opened(tmp_path: Path, kind: Kind) -> None:
    make(tmp_path, {"a.bin": b"1"})
    with Source(tmp_path) as source:
        entry = msgspec.structs.replace(source.walk().files[0], kind=kind)

        assert fault_of(lambda: source.open(entry)).code == "source.not_regular"


def test_a_file_without_read_permission_is_unreadable(tmp_path: Path) -> None:
    make(tmp_path, {"a.bin": b"1"})
    (tmp_path / "a.bin").chmod(0)
    tmp_path.chmod(0o755)
    open_to_all(tmp_path)
    with as_nobody(), Source(tmp_path) as source:
        finding = fault_of(lambda: source.open(source.walk().files[0]))

    assert finding.code == "source.unreadable"
    assert blocker(finding).message == "a.bin cannot be read: Permission denied."
    assert CODES[finding.code].exit is ExitCode.UNREADABLE


def test_a_failing_disk_is_named_with_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a.bin": CONTENT})

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "whatever")

    with Source(tmp_path) as source, source.open(source.walk().files[0]) as file:
        monkeypatch.setattr(os, "pread", fail)
        monkeypatch.setattr(os, "preadv", fail)
        finding = fault_of(lambda: file.pread(1024, 8))
        again = fault_of(lambda: file.pread_into(1024, memoryview(bytearray(8))))

    assert finding == again
    assert blocker(finding).message == "Reading a.bin failed at byte 1,024: Input/output error."
    assert CODES[finding.code].exit is ExitCode.UNREADABLE


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"X")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_socket(path: Path) -> None:
    path.unlink()
    socket_at(path)


def to_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "grow": (append, "it grew from 2,048 to 2,052 bytes"),
    "shrink": (lambda path: os.truncate(path, 3), "it shrank from 2,048 to 3 bytes"),
    "write": (overwrite, "it was written to"),
    "replace": (replace, "another one took its place"),
    "remove": (Path.unlink, "it vanished"),
    "link": (to_link, "a symbolic link took its place"),
    "fifo": (to_fifo, "a FIFO took its place"),
    "socket": (to_socket, "a socket took its place"),
    "folder": (to_folder, "a folder took its place"),
    "permissions": (lambda path: path.chmod(0o640), "its status changed"),
}


# R043
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_walk_and_open_is_noticed(tmp_path: Path, resolution: str, change: str) -> None:
    make(tmp_path, {"a/b/model.bin": CONTENT})
    act, words = CHANGES[change]
    with Source(tmp_path) as source:
        entry = source.walk().files[0]
        act(tmp_path / "a/b/model.bin")
        finding = fault_of(lambda: source.open(entry))

    assert finding.code == "source.changed"
    assert words in blocker(finding).message
    assert CODES[finding.code].exit is ExitCode.CHANGED


# R043
@pytest.mark.parametrize("change", ["link", "fifo", "socket", "folder", "remove"])
def test_a_change_between_the_two_looks_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = make(tmp_path, {"model.bin": CONTENT}) / "model.bin"
    real = os.open

    def change_then_open(name: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        CHANGES[change][0](path)
        return real(name, flags, mode, dir_fd=dir_fd)

    with Source(tmp_path) as source:
        entry = source.walk().files[0]
        monkeypatch.setattr(os, "open", change_then_open)
        finding = fault_of(lambda: source.open(entry))

    assert finding.code == "source.changed"


# R043
@pytest.mark.parametrize("change", ["grow", "shrink", "write", "replace", "remove", "permissions"])
def test_a_change_while_it_is_open_is_noticed(tmp_path: Path, change: str) -> None:
    path = make(tmp_path, {"model.bin": CONTENT}) / "model.bin"

    def read() -> None:
        with Source(tmp_path) as source, source.open(source.walk().files[0]) as file:
            file.pread(0, 1)
            CHANGES[change][0](path)

    assert fault_of(read).code == "source.changed"


# R043
def test_a_read_past_a_new_end_is_a_change_and_not_a_short_answer(tmp_path: Path) -> None:
    path = make(tmp_path, {"model.bin": CONTENT}) / "model.bin"
    with Source(tmp_path) as source:
        file = source.open(source.walk().files[0])
        os.truncate(path, 100)
        finding = fault_of(lambda: file.pread(50, 100))
        again = fault_of(lambda: file.pread_into(50, memoryview(bytearray(100))))
        file.close()

    assert finding == again
    assert finding.code == "source.changed"
    assert "shrank from 2,048 bytes to 100" in blocker(finding).message


# R043
def test_a_change_explains_the_fault_that_it_caused(tmp_path: Path) -> None:
    path = make(tmp_path, {"model.bin": CONTENT}) / "model.bin"

    def read(*, change: bool) -> None:
        with Source(tmp_path) as source, source.open(source.walk().files[0]):
            if change:
                append(path)
            raise Fault("source.read_failed", offset=0, reason="nonsense")

    assert fault_of(lambda: read(change=False)).code == "source.read_failed"
    assert fault_of(lambda: read(change=True)).code == "source.changed"


def test_a_stale_handle_of_a_network_disk_is_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"model.bin": CONTENT})

    def stale(*_: object) -> bytes:
        raise OSError(errno.ESTALE, "")

    with Source(tmp_path) as source, source.open(source.walk().files[0]) as file:
        monkeypatch.setattr(os, "pread", stale)

        assert fault_of(lambda: file.pread(0, 1)).code == "source.changed"


def test_the_reader_of_a_forged_entry_gets_nothing(tmp_path: Path) -> None:
    make(tmp_path, {"model.bin": CONTENT})
    entry = Entry(b"model.bin", Kind.FILE, Identity(0, 0, 5, 0, 0), 0, 1)
    with Source(tmp_path) as source:
        assert fault_of(lambda: source.open(entry)).code == "source.changed"

"""What commands ask of the kernel, as strace sees it: no write, no network, no file beyond the checkpoint and the interpreter's own.

An audit hook (tests/test_inert.py) hears what Python does. This hears what libraries do as well, and the contained worker.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import shardscope
from tests.app.terminal import environment

FIXTURES = Path(__file__).resolve().parent / "fixtures"
STRACE = shutil.which("strace")
TRACED = "%file,%network,memfd_create,ftruncate,fallocate,copy_file_range"

INTERPRETER = tuple(
    os.path.realpath(folder) + os.sep
    for folder in (
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        *(os.path.dirname(part) for part in shardscope.__path__),
    )
)
SYSTEM = re.compile(
    r"/etc/(?:ld\.so\.cache|localtime|locale\.alias|os-release|ssl/openssl\.cnf)\Z|/usr/lib/os-release\Z|(?:/usr)?/lib(?:64|32)?/[\w./+-]+\Z"
    r"|/usr/(?:share/(?:zoneinfo|locale)|lib/locale)/[\w./+-]+\Z|/dev/(?:null|urandom)\Z"
)
"""What the loader and the C library open for any program."""
HOST = re.compile(
    r"/proc/(?:self|\d+)/[\w./]+\Z|/proc/(?:meminfo|sys/kernel/[\w/]+)\Z|/sys/fs/cgroup[\w./-]*\Z|/sys/devices/system/cpu/\w+\Z|/proc/\d+\Z"
)
"""Figures of this machine, where a command compares a plan with them, and what a contained worker is held against."""
IDENTITY = re.compile(r"/etc/(?:passwd|nsswitch\.conf|hosts|host\.conf|resolv\.conf)\Z")
"""Who and where we are: what a finished report is searched for."""
CHANGES = re.compile(
    r"mkdir|unlink|rmdir|rename|link|symlink|chmod|fchmod|chown|lchown|fchown|truncate|ftruncate|fallocate|utime|futime|setxattr"
    r"|lsetxattr|fsetxattr|removexattr|mknod|mount|umount|chroot|pivot_root|copy_file_range|memfd_create|creat"
)
"""Names of calls that change something begin like this."""
NETWORK = re.compile(r"socket|connect|bind|listen|accept|send|recv")
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<([^>]*)>)?")


class Call(NamedTuple):
    """One call that the kernel carried out."""

    name: str
    arguments: str
    leads_to: str
    """The path of the descriptor that it returned; empty where it returned none."""


def calls(folder: Path, *words: str) -> list[Call]:
    """Run `shardscope` under strace in `folder` and return every call of it and its children that succeeded."""
    log = folder / "log"
    ran = subprocess.run(
        [STRACE or "strace", "-ff", "-y", "-qq", "-s", "256", "-e", f"trace={TRACED}", "-o", str(log),
         sys.executable, "-B", "-P", "-m", "shardscope", *words],
        cwd=folder,
        env=environment(HOME=str(folder), TMPDIR=str(folder)),
        capture_output=True,
        check=False,
        timeout=100,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr.decode()  # 1: something stands in the way
    return list(_succeeded(folder))


def _succeeded(folder: Path) -> Iterator[Call]:
    for log in sorted(folder.glob("log.*")):
        for line in log.read_text(errors="replace").splitlines():
            match = _CALL.search(line)
            if match is not None and not match[3].startswith("-"):
                yield Call(match[1], match[2], match[4] or "")


def trespasses(found: list[Call], *allowed: "str | re.Pattern[str]") -> list[str]:
    """Return the calls that no command for looking has any business to make."""
    return [
        f"{each.name}({each.arguments}) -> {each.leads_to}" for each in found if _is_trespass(each, allowed)
    ]


def _is_trespass(call: Call, allowed: "tuple[str | re.Pattern[str], ...]") -> bool:
    if call.name == "socket" and IDENTITY in allowed and call.arguments.startswith("AF_UNIX"):
        return False  # the C library asks the name service cache of this machine for the user
    if NETWORK.match(call.name) or CHANGES.match(call.name):
        return True
    if not call.name.startswith("open"):
        return False
    if re.search(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)", call.arguments):
        return call.leads_to != "/dev/null"
    return not _is_ours(call.leads_to, allowed)


def _is_ours(path: str, allowed: "tuple[str | re.Pattern[str], ...]") -> bool:
    if f"{path}/".startswith(INTERPRETER) or SYSTEM.match(path):
        return True
    return any(
        f"{path}/".startswith(each + "/") if isinstance(each, str) else each.match(path) for each in allowed
    )


def can_trace() -> str:
    """Return why strace cannot be used here; empty where it can."""
    if STRACE is None:
        return "strace is not installed"
    ran = subprocess.run([STRACE, "-qq", "-e", "trace=none", "true"], capture_output=True, check=False)
    return "" if ran.returncode == 0 else "strace may not trace here"


pytestmark = pytest.mark.skipif(bool(can_trace()), reason=can_trace() or "it can")

PICKLED = FIXTURES / "torch" / "zip_skip_data" / "checkpoint"
PLAIN = FIXTURES / "hf" / "llama_sharded" / "checkpoint"


# R031 R033 R034 R035 R036
@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("inspect", "ROOT", "--json"), ()),
        (("inspect", "ROOT", "--digest", "all", "--json", "--decode"), (HOST,)),
        (("tensors", "ROOT", "--json"), ()),
        (("inspect", "ROOT"), (HOST,)),
        (("plan", "ROOT", "--json", "--decode"), (HOST,)),
        (("report", "ROOT", "--preview"), (HOST, IDENTITY)),
    ],
    ids=lambda each: " ".join(each) if each and isinstance(each[0], str) else "",
)
def test_looking_writes_nothing_speaks_to_nobody_and_opens_nothing_else(
    tmp_path: Path, words: tuple[str, ...], allowed: tuple["re.Pattern[str]", ...]
) -> None:
    source = shutil.copytree(PICKLED if "--decode" in words else PLAIN, tmp_path / "ckpt")
    found = calls(tmp_path, *(str(source) if word == "ROOT" else word for word in words))

    assert trespasses(found, str(source), str(tmp_path) if "plan" in words else str(source), *allowed) == []
    assert any(each.leads_to.startswith(str(source)) for each in found)
    assert {each.name for each in tmp_path.iterdir() if not each.name.startswith("log.")} == {"ckpt"}


def test_watching_opens_what_it_watches_and_nothing_else(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(PLAIN, run / "checkpoint-1")
    (run / "latest").write_text("checkpoint-1")

    found = calls(tmp_path, "watch", str(run), "--once", "--settle", "0", "--interval", "0.05", "--json")

    assert trespasses(found, str(run)) == []
    assert any(each.leads_to.endswith("checkpoint-1/config.json") for each in found)
    assert {each.name for each in tmp_path.iterdir() if not each.name.startswith("log.")} == {"run"}


# R034
def test_a_report_is_written_where_it_was_asked_for_and_nowhere_else(tmp_path: Path) -> None:
    source = shutil.copytree(PLAIN, tmp_path / "ckpt")
    out = tmp_path / "out"
    out.mkdir()

    found = trespasses(
        calls(tmp_path, "report", str(source), "-o", str(out / "r.zip")), str(source), HOST, IDENTITY
    )

    assert found
    assert all(str(out) in each for each in found), found
    assert [path.name for path in out.iterdir()] == ["r.zip"]


def test_the_trace_sees_each_trespass(tmp_path: Path) -> None:
    """What would be found if a command did it: the checks above are able to fail."""
    program = (
        "import os, socket; os.mkdir('made'); open('written', 'w').close(); open('/etc/hostname').close(); "
        "socket.socket().close()"
    )
    subprocess.run(
        [STRACE or "strace", "-ff", "-y", "-qq", "-e", f"trace={TRACED}", "-o", str(tmp_path / "log"),
         sys.executable, "-B", "-c", program],
        cwd=tmp_path,
        check=True,
    )  # fmt: skip

    seen = {each.partition("(")[0] for each in trespasses(list(_succeeded(tmp_path)))}

    assert {"mkdir", "openat", "socket"} <= seen
    told = trespasses(list(_succeeded(tmp_path)))
    assert any("/etc/hostname" in each for each in told)
    assert any("written" in each for each in told)

"""Reports on file systems that are full or read-only: a code, nothing left, and a checkpoint that is looked at all the same."""

import os
from pathlib import Path

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.checkpoints import write_sharded
from tests.convert.targets import mounted, needs_root


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@needs_root
@pytest.mark.parametrize("name", ["r.zip", "r"])
def test_a_full_disk_ends_in_a_code_and_keeps_nothing(command: Command, tmp_path: Path, name: str) -> None:
    source = write_sharded(tmp_path / "ckpt")
    with mounted(tmp_path / "full", "tmpfs", "size=16k") as disk:
        (disk / "others").write_bytes(os.urandom(16 << 10))

        said = command("report", str(source), "-o", str(disk / name))

        assert said.code == ExitCode.OUTPUT
        assert "[report.write_failed]" in said.err
        assert "no space" in said.err
        assert [path.name for path in disk.iterdir()] == ["others"]


@needs_root
def test_a_read_only_disk_is_reported_about_and_not_written_to(command: Command, tmp_path: Path) -> None:
    import subprocess

    with mounted(tmp_path / "disk", "tmpfs", "size=1m") as disk:
        write_sharded(disk / "ckpt")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        refused = command("report", str(disk / "ckpt"), "-o", str(disk / "r.zip"))
        made = command("report", str(disk / "ckpt"), "-o", str(tmp_path / "r.zip"))
        looked = command("inspect", str(disk / "ckpt"), "--json", "--digest", "all")
        planned = command("plan", str(disk / "ckpt"), "--json")

        assert refused.code == ExitCode.OUTPUT
        assert "[report.write_failed]" in refused.err
        assert "read-only" in refused.err
        assert (made.code, looked.code, planned.code) == (ExitCode.OK, ExitCode.OK, ExitCode.OK)
        assert [path.name for path in disk.iterdir()] == ["ckpt"]

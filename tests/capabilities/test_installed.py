"""Installed versions come from metadata alone, whatever the distribution would do when it is imported."""

import sys
from pathlib import Path

import pytest

from shardscope.engine.capabilities.installed import UNREADABLE, Installed, installed, installed_version
from shardscope.engine.capabilities.registry import REGISTRY
from shardscope.engine.model.text import UNSAFE


def install(site: Path, name: str, metadata: str) -> None:
    """Put a distribution in place whose import fails."""
    info = site / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(f"[shardscope]\nadapter = {name}:main\n")
    (site / f"{name}.py").write_text("raise RuntimeError('imported')\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


# R052 R056 R058
def test_a_distribution_that_cannot_be_imported_is_diagnosed(site: Path) -> None:
    install(site, "explosive", "Metadata-Version: 2.1\nName: explosive\nVersion: 3.4.5\n")

    assert installed_version("explosive") == "3.4.5"
    assert installed_version("Explosive") == "3.4.5"
    assert "explosive" not in sys.modules
    with pytest.raises(RuntimeError):
        __import__("explosive")


def test_what_is_not_installed_has_no_version() -> None:
    assert installed_version("no-such-distribution-anywhere") is None


# R053
@pytest.mark.parametrize(
    "version",
    ["\x1b[2J", "1.0 (run me)", "/home/alice/torch", "\u202e1.2.3", "1" * 65, "1.2\x9b", ""],
)
def test_a_version_that_is_none_is_not_repeated(site: Path, version: str) -> None:
    install(site, "odd", f"Metadata-Version: 2.1\nName: odd\nVersion: {version}\n")

    told = installed_version("odd")

    assert told == UNREADABLE
    assert not UNSAFE.search(told)


def test_metadata_without_a_version_is_unreadable(site: Path) -> None:
    install(site, "bare", "Metadata-Version: 2.1\nName: bare\n")

    assert installed_version("bare") == UNREADABLE


def test_the_working_folder_is_not_where_things_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "planted", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    monkeypatch.chdir(tmp_path)
    for entry in ("", ".", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [entry, *sys.path])

        assert installed_version("planted") is None


# R050
def test_what_offers_itself_as_an_adapter_is_not_discovered(site: Path) -> None:
    install(site, "eager", "Metadata-Version: 2.1\nName: eager\nVersion: 1\n")

    assert REGISTRY == ()
    assert "eager" not in sys.modules


# R101
def test_a_report_reads_the_same_without_the_library(site: Path) -> None:
    install(
        site, "megatron_core", "Metadata-Version: 2.1\nName: megatron-core\nVersion: 0.9.1\n\nVersion: 7\n"
    )
    install(site, "odd", "Name: odd\nVersion: 1.0 (run me)\n")
    commit = "0123456789abcdef0123456789abcdef01234567"
    (site / "odd-1.dist-info" / "direct_url.json").write_text(
        f'{{"url": "https://x.example/r", "vcs_info": {{"vcs": "git", "commit_id": "{commit}"}}}}'
    )
    egg = site / "Old.Style-2.egg-info"
    egg.write_text("Name: Old.Style\nVersion: 2.0\n")

    found = installed(("megatron-core", "odd", "old-style", "numpy", "absent"))

    assert found["megatron-core"] == Installed("0.9.1", None)
    assert found["odd"] == Installed(UNREADABLE, commit)
    assert found["old-style"].version == installed_version("old-style") == "2.0"
    assert found["numpy"].version == installed_version("numpy")
    assert "absent" not in found


def test_a_report_takes_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "planted", "Name: planted\nVersion: 1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path), *sys.path])

    assert installed(("planted",)) == {}

"""Inspection runs nothing, imports nothing, sends nothing and writes nothing, whatever it is pointed at.

tests/watched.py inspects in a child interpreter under an audit hook. That the hook hears is proved first.
"""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.watched import FRAMEWORKS, TRESPASSES

HERE = Path(__file__).resolve().parent
CHECKPOINTS = sorted((HERE / "fixtures").glob("*/*/checkpoint"))

COMMAND = Path(sys.executable).with_name("shardscope")

CANARY = "PICKLE_WAS_EXECUTED"
BOMB = f"cos\nmkdir\n(S'{CANARY}'\ntR.".encode()
"""Makes a folder in the working folder when it is unpickled, in protocol 0, which every unpickler reads."""

BOMBS = (
    "pytorch_model.bin", "adapter_model.bin", "training_args.bin", "model.pt", "optimizer.pt", "scheduler.pt",
    "rng_state.pth", "consolidated.00.pth", "epoch.ckpt", ".metadata", "__0_0.distcp", "model.pkl", "data.pickle",
    "mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt", "latest", "common.pt", "weights.npy",
    "model.joblib", "tokenizer.model", "model.safetensors",
)  # fmt: skip


def watched(what: str, *names: str, elsewhere: Path) -> dict[str, Any]:
    """Run tests/watched.py in a folder and with a home of its own that nothing may be written to."""
    home = elsewhere / "home"
    home.mkdir(exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-B", "-P", str(HERE / "watched.py"), what, *names],
        cwd=elsewhere,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def trespasses(report: dict[str, Any]) -> dict[str, list[str]]:
    return {name: told["seen"] for name, told in report["told"].items() if told["seen"]}


def beyond_the_worker(report: dict[str, Any]) -> dict[str, list[str]]:
    """What occurred besides the start of the contained worker, in so many words."""
    worker = (
        f"subprocess.Popen ('{sys.executable}', ['{sys.executable}', '-I', '-S', '-B', '-X', 'utf8', '-c'"
    )
    others = {
        name: [e for e in seen if not e.startswith(worker)] for name, seen in trespasses(report).items()
    }
    return {name: seen for name, seen in others.items() if seen}


def picture(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Everything about a tree that writing to it would change."""
    seen = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        facts = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[path.relative_to(folder).as_posix()] = (
            facts.st_ino,
            facts.st_mtime_ns,
            facts.st_ctime_ns,
            content,
        )
    return seen


@pytest.mark.parametrize("name", sorted(TRESPASSES))
def test_the_watch_hears_each_trespass(name: str, tmp_path: Path) -> None:
    report = watched("trespass", name, elsewhere=tmp_path)

    assert trespasses(report).keys() == {name}


# R031 R032 R033 R034 R035 R036 R047
def test_inspecting_what_producers_wrote_trespasses_nowhere(tmp_path: Path) -> None:
    report = watched("inspect", *map(str, CHECKPOINTS), elsewhere=tmp_path)

    assert trespasses(report) == {}
    assert len(report["told"]) == len(CHECKPOINTS)
    assert not {name.partition(".")[0] for name in report["modules"]} & set(FRAMEWORKS)
    assert [path.name for path in tmp_path.rglob("*")] == ["home"]


# R031 R032 R033 R034 R035 R036 R047
def test_decoding_starts_its_worker_and_nothing_else(tmp_path: Path) -> None:
    report = watched("decode", *map(str, CHECKPOINTS), elsewhere=tmp_path)

    assert len(report["told"]) == len(CHECKPOINTS)
    assert beyond_the_worker(report) == {}
    assert trespasses(report)
    assert sum(told["result"].get("tensors") or 0 for told in report["told"].values()) > 1_000
    assert not {name.partition(".")[0] for name in report["modules"]} & set(FRAMEWORKS)
    assert [path.name for path in tmp_path.rglob("*")] == ["home"]


# R032 R038 R039
def test_the_bomb_goes_off_when_it_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pickle.loads(BOMB)

    assert (tmp_path / CANARY).is_dir()


# R032 R035 R038 R039 R047
@pytest.mark.parametrize("what", ["inspect", "decode"])
def test_no_bomb_goes_off(tmp_path: Path, what: str) -> None:
    bombs = tmp_path / "bombs"
    for name in BOMBS:
        bare = bombs / "bare" / name
        zipped = bombs / "zipped" / name
        for path in (bare, zipped):
            path.parent.mkdir(parents=True, exist_ok=True)
        bare.write_bytes(BOMB)
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("archive/data.pkl", BOMB)
            archive.writestr("archive/version", "3\n")
            archive.writestr("archive/byteorder", "little")
            archive.writestr("archive/data/0", bytes(64))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    each = [path for kind in ("bare", "zipped") for path in (bombs / kind, *(bombs / kind).iterdir())]

    report = watched(what, *map(str, each), elsewhere=elsewhere)

    assert beyond_the_worker(report) == {}
    assert bool(trespasses(report)) == (what == "decode")
    assert len(report["told"]) == 2 * (len(BOMBS) + 1)
    assert not list(tmp_path.rglob(CANARY))
    assert [path.name for path in elsewhere.rglob("*")] == ["home"]


# R035
def test_code_beside_a_checkpoint_is_only_reported(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(HERE / "fixtures/hf/llama_single_bf16/checkpoint", folder)
    config = json.loads((folder / "config.json").read_bytes())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_evil.Evil"}
    (folder / "config.json").write_text(json.dumps(config))
    for name in (
        "modeling_evil.py",
        "__init__.py",
        "sitecustomize.py",
        "conftest.py",
        "numpy.py",
        "msgspec.py",
    ):
        (folder / name).write_text(f"import os\nos.mkdir({CANARY!r})\n")
    (folder / "tokenizer_config.json").write_text(
        '{"chat_template": "{{ cycler.__init__.__globals__.os.mkdir(1) }}"}'
    )

    report = watched("inspect", str(folder), elsewhere=folder)  # the folder is the working folder, too
    (told,) = report["told"].values()

    assert told["seen"] == []
    assert told["result"]["format"] == "hf_safetensors"
    subprocess.run(
        [COMMAND, "inspect", "--json", "."], cwd=folder, capture_output=True, check=True, timeout=60
    )
    assert not list(tmp_path.rglob(CANARY))
    assert not list(tmp_path.rglob("__pycache__"))


# R046
def test_inspection_leaves_the_source_as_it_was(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    for checkpoint in CHECKPOINTS:
        shutil.copytree(checkpoint, sources / checkpoint.parent.parent.name / checkpoint.parent.name)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = picture(sources)

    watched("inspect", str(sources), *map(str, sorted(sources.glob("*/*"))), elsewhere=elsewhere)

    assert picture(sources) == before

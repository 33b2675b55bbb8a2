"""A folder that is watched while PyTorch and transformers save into it, whole and killed before the last of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.engine.model.watch import WatchEvent
from tests.watching.test_watching import QUIET, seen, words

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")
filesystem = pytest.importorskip("torch.distributed.checkpoint.filesystem")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def save(folder: Path) -> None:
    """Save a small state with torch.distributed.checkpoint, in this process alone."""
    dcp.save({"weight": torch.arange(64.0), "step": torch.tensor(3)}, checkpoint_id=str(folder))


def killed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The same, ended where the metadata would get its name."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(filesystem.FileSystem, "rename", die)
        with pytest.raises(BaseException):  # noqa: B017, PT011 - torch wraps it
            save(folder)


def test_a_dcp_is_told_when_it_is_saved_and_one_that_was_killed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Callable[[], object] | None] = [
        lambda: save(tmp_path / "step_10"),
        *QUIET,
        lambda: killed(monkeypatch, tmp_path / "step_20"),
        *QUIET,
        lambda: save(tmp_path / "step_30"),
        *QUIET,
    ]

    events: list[WatchEvent] = seen(tmp_path, steps)

    assert words(events) == [("complete", "step_10"), ("complete", "step_30"), ("incomplete", "step_20")]
    assert "dcp.save_interrupted" in events[2].codes


def test_a_model_of_transformers_is_told_with_its_shards(tmp_path: Path) -> None:
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
        )
    )
    target = tmp_path / "checkpoint-7"

    events = seen(tmp_path, [lambda: model.save_pretrained(target, max_shard_size="40KB"), *QUIET])

    assert words(events) == [("complete", "checkpoint-7")]
    assert len(list(target.glob("*.safetensors"))) > 1

"""What must hold whatever the files are: names that do not matter change nothing, and strangers convince nobody."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shardscope.engine.model.descriptor import Descriptor
from tests.formats.looking import FIXTURES, look

SAMPLES = (
    "accelerate/fsdp2_sharded_world2",
    "accelerate/offload_folder",
    "dcp/fsdp2_flat_world2",
    "dcp/hf_writer_sharded_world2",
    "deepspeed/zero2-w4-bf16",
    "deepspeed/uc-from-zero1-w2-bf16",
    "hf/bin_sharded",
    "hf/llama_sharded",
    "hf/meta_consolidated_mp2",
    "hf/mistral_consolidated",
    "hf/vllm_sharded_state_tp2",
    "megatron/legacy_tp2_pp2",
    "megatron/torch_dist_tp2_pp2",
    "peft/lora_llama",
    "torch/zip_views",
)
"""One fixture of each family."""
STRANGERS: dict[str, bytes] = {
    "README.md": b"# A model\n",
    "notes.txt": b"loss went down\n",
    "run.log": b"step 1\n",
    "logo.png": b"\x89PNG\r\n\x1a\n" + bytes(32),
    "events.out.tfevents.1": bytes(32),
    ".gitattributes": b"*.bin filter=lfs\n",
    "logs/rank0.txt": b"ok\n",
    "wandb/debug.yaml": b"a: 1\n",
    "data.csv": b"a,b\n1,2\n",
    "unnamed": b"\x00\x01\x02",
}
"""Files that no format has anything to say about, by name."""
NAME = st.text("abcdefgh_-ÄÖ é\u202e\x1b", min_size=1, max_size=20).filter(str.strip)

quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def copied(name: str, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(FIXTURES / name / "checkpoint", folder))


def kernel(descriptor: Descriptor) -> tuple[object, ...]:
    """What must not change: format, confidence, evidence, topology and what is in the way."""
    found = descriptor.classification
    return (
        found.format,
        found.status,
        found.confidence,
        found.evidence,
        descriptor.topology,
        descriptor.tensors,
        descriptor.blockers,
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_strangers_change_nothing(name: str, tmp_path: Path) -> None:
    folder = copied(name, tmp_path / "checkpoint")
    before = kernel(look(folder))
    for path, content in STRANGERS.items():
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    assert kernel(look(folder)) == before


@pytest.mark.parametrize("name", SAMPLES)
def test_the_order_in_which_files_were_written_changes_nothing(name: str, tmp_path: Path) -> None:
    source = FIXTURES / name / "checkpoint"
    files = sorted((path for path in source.rglob("*") if path.is_file()), reverse=True)
    for file in files:
        target = tmp_path / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    assert kernel(look(tmp_path)) == kernel(look(source))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_name_of_the_folder_changes_nothing(name: str, tmp_path: Path) -> None:
    folder = copied(name, tmp_path / "global_step7 [bold]gguf.safetensors")
    assert kernel(look(folder)) == kernel(look(FIXTURES / name / "checkpoint"))


@given(data=st.data())
@quick
def test_an_unrelated_file_never_raises_confidence(data: st.DataObject, tmp_path: Path) -> None:
    name = data.draw(st.sampled_from(SAMPLES))
    folder = copied(name, tmp_path / "checkpoint")
    before = look(folder).classification
    other = data.draw(st.sampled_from(SAMPLES))
    strangers = sorted(path for path in (FIXTURES / other / "checkpoint").rglob("*") if path.is_file())
    stranger = data.draw(st.sampled_from(strangers))
    target = folder / stranger.name
    if not target.exists():
        shutil.copy(stranger, target)
    after = look(folder).classification
    assert after.confidence.rank <= before.confidence.rank


@given(names=st.lists(NAME, min_size=1, max_size=4, unique=True))
@quick
def test_files_of_any_meaningless_name_change_nothing(names: list[str], tmp_path: Path) -> None:
    folder = copied("hf/llama_sharded", tmp_path / "checkpoint")
    before = look(folder)
    for name in names:
        (folder / name).write_bytes(b"\xff\x00")
    after = look(folder)
    known = {(item.code, item.subject) for item in before.blockers}
    added = {item.code for item in after.blockers if (item.code, item.subject) not in known}
    assert {code.partition(".")[0] for code in added} <= {"source"}, "a hostile name is reported as such"
    assert kernel(after)[:-1] == kernel(before)[:-1]


@pytest.mark.parametrize("name", ["hf/llama_sharded", "dcp/fsdp2_flat_world2", "megatron/legacy_tp2_pp2"])
def test_inspecting_twice_gives_the_same_document(name: str) -> None:
    folder = FIXTURES / name / "checkpoint"
    assert look(folder) == look(folder)

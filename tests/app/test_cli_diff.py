"""`shardscope diff` as a person or a script calls it."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.checkpoints import LLAMA, write_json, write_safetensors
from tests.comparing.test_differences import changed
from tests.schemas import validate

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ZERO = FIXTURES / "deepspeed/zero3-w2-bf16"


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Two checkpoints: one tensor has another number, one another type, one is gone, and a layer came."""
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    write_safetensors(here, {**LLAMA, "model.layers.0.bias": ("F32", (4,))})
    kinds = {
        **LLAMA,
        "model.embed_tokens.weight": ("BF16", (16, 4)),
        "model.layers.1.mlp.up_proj.weight": ("F32", (8, 8)),
        "model.layers.1.mlp.down_proj.weight": ("F32", (8, 8)),
    }
    write_safetensors(there, kinds)
    changed(there, "model.norm.weight", 2)
    return str(here), str(there)


def document(text: str) -> Any:
    found = json.loads(text)
    assert found["schema"] == "shardscope.diff/1"
    validate(found, "shardscope.diff/1")
    return found


def test_the_text_tells_what_is_different_and_where(command: Command, two: tuple[str, str]) -> None:
    said = command("diff", *two, "--values")

    assert said.code == ExitCode.BLOCKED
    assert all(len(line) <= 80 for line in said.out.splitlines() if not line.startswith(("A", "B")))
    lines = said.out.splitlines()
    assert "Different: 2 changed, 1 missing, 2 extra, 2 the same; 464 B of values compared" in lines
    assert "~ model.embed_tokens.weight  F32 → BF16 [16, 4]" in lines
    assert "- model.layers.0.bias  F32 [4]" in lines
    assert "+ model.layers.1.*  2 tensors, 512 B" in lines
    start = lines.index("~ model.norm.weight  F32 [4]")
    assert lines[start + 1].startswith("    1 of 4 elements differs, max abs 2.35")
    assert lines[start + 2].startswith("    first at [2]: 0 in A, 2.3509887e-38 in B")
    assert lines[start + 3].startswith("      A here.safetensors, byte ")
    assert lines[start + 4].startswith("      B there.safetensors, byte ")


def test_structure_alone_says_that_values_were_not_compared(command: Command, two: tuple[str, str]) -> None:
    said = command("diff", two[0], two[0])
    assert said.code == ExitCode.OK
    assert "The same in structure; values were not compared: 5 the same" in said.out
    assert "The same, every bit: 5 the same" in command("diff", two[0], two[0], "--values").out


def test_what_could_not_be_compared_is_never_called_the_same(command: Command) -> None:
    quantised = str(FIXTURES / "gguf/llama_mixed/checkpoint/tiny-q4.gguf")
    said = command("diff", quantised, quantised, "--values", "--only", "same", "--json")
    found = document(said.out)
    left = [item for item in found["tensors"] if item["values"] is None]

    assert said.code == ExitCode.UNSUPPORTED
    assert (found["same"], found["uncompared"]) == (True, len(left))
    assert 0 < len(left) < len(found["tensors"])
    assert all("were not compared" in item["note"] for item in left)
    assert command("diff", quantised, quantised).code == ExitCode.OK


def test_what_a_damaged_side_lacks_is_not_said_to_be_gone(command: Command) -> None:
    """Inspection refuses two tensors of A, which the export has."""
    folder = FIXTURES / "deepspeed/edited-codegen-unsupported-tp2"
    export, whole = str(folder / "expected.safetensors"), str(FIXTURES / "hf/llama_sharded/checkpoint")

    said = command("diff", str(folder / "checkpoint"), export, "--decode")
    assert "What A lacks may be in what was not read there" in " ".join(said.out.split())
    assert "may be in what was not read" not in command("diff", export, whole).out


def test_the_document_holds_to_its_schema_and_to_what_was_asked_for(
    command: Command, two: tuple[str, str]
) -> None:
    found = document(command("diff", *two, "--values", "--json").out)
    assert [item["state"] for item in found["tensors"]] == ["changed", "changed", "missing", "extra", "extra"]
    assert found["counts"]["same"] == 2
    only = document(command("diff", *two, "--only", "missing", "--only", "same", "--format", "json").out)
    assert {item["state"] for item in only["tensors"]} == {"missing", "same"}
    assert two[0] not in json.dumps(found)
    assert document(command("diff", two[0], two[0], "--json").out)["same"]


def test_markdown_has_no_path_of_this_machine(command: Command, two: tuple[str, str]) -> None:
    said = command("diff", *two, "--values", "--format", "markdown")
    assert said.code == ExitCode.BLOCKED
    assert "| \\~ | model.norm.weight | F32 \\[4\\] | 1 of 4 elements differs" in said.out
    assert str(Path(two[0]).parent) not in said.out


def test_decoding_is_asked_for_and_topologies_are_told(command: Command) -> None:
    checkpoint, other = str(ZERO / "checkpoint"), str(FIXTURES / "deepspeed/zero3-w3-fp32/checkpoint")
    refused = command("diff", checkpoint, other)
    assert (refused.code, refused.out) == (ExitCode.NEEDS_DECODING, "")
    assert "--decode" in refused.err
    said = command("diff", checkpoint, other, "--decode", "--values", "--component", "optimizer")
    assert said.code == ExitCode.BLOCKED
    assert "A tp 0 pp 0 dp 0," in said.out
    assert command("diff", checkpoint, checkpoint, "--decode", "--values").code == ExitCode.OK


def test_rules_and_mappings_are_taken(command: Command, tmp_path: Path) -> None:
    one = write_safetensors(tmp_path / "one.safetensors", LLAMA)
    other = write_safetensors(
        tmp_path / "other.safetensors", {name.replace("model.", "net."): kind for name, kind in LLAMA.items()}
    )
    guessed = command("diff", str(one), str(other))
    assert guessed.code == ExitCode.BLOCKED
    assert "> model.norm.weight  F32 [4]" in guessed.out
    assert "suggested: the same end of the name, the same shape" in " ".join(guessed.out.split())
    rules = write_json(
        tmp_path / "rules.json",
        {"schema": "shardscope.renames/1", "rules": [{"prefix": "model.", "to": "net."}]},
    )
    assert command("diff", str(one), str(other), "--rename", str(rules)).code == ExitCode.OK
    megatron = FIXTURES / "megatron/torch_dist_tp2_pp2"
    both = str(megatron / "checkpoint"), str(megatron / "expected_hf.safetensors")
    assert command("diff", *both, "--decode", "--mapping", "none").code == ExitCode.BLOCKED
    said = command("diff", *both, "--decode", "--values", "--mapping", "megatron-llama")
    assert (said.code, "names of A by the mapping table megatron-llama" in said.out) == (ExitCode.OK, True)
    unknown = command("diff", *both, "--decode", "--mapping", "nonsense")
    assert "convert.mapping_unknown" in unknown.err


def test_hostile_names_reach_the_terminal_as_text(command: Command, tmp_path: Path) -> None:
    names = ["\x1b[31mred", "a\nb", "[bold]x[/]", "\u202ertl", "n" * 5000, "|pipe|"]
    one = write_safetensors(tmp_path / "one.safetensors", dict.fromkeys(names, ("F32", (2,))))
    other = write_safetensors(tmp_path / "other.safetensors", dict.fromkeys(names, ("F16", (2,))))
    for form in ("text", "markdown", "json"):
        said = command("diff", str(one), str(other), "--values", "--format", form)
        assert said.code == ExitCode.BLOCKED
        assert not set("\x1b\u202e") & set(said.out)
        assert max(map(len, said.out.splitlines())) < 6000
    assert "␛[31mred" in command("diff", str(one), str(other)).out


def test_long_lists_are_cut_until_all_is_asked_for(command: Command, tmp_path: Path) -> None:
    names = [f"t{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60)]
    one = write_safetensors(tmp_path / "one.safetensors", dict.fromkeys(names, ("F32", (2,))))
    other = write_safetensors(tmp_path / "other.safetensors", dict.fromkeys(names, ("F16", (2,))))
    assert "... and 20 more rows (-v shows all" in command("diff", str(one), str(other)).out
    everything = command("diff", str(one), str(other), "-v").out
    assert sum(line.startswith("~ ") for line in everything.splitlines()) == 60


def test_a_missing_path_and_a_wrong_choice_end_as_they_do_everywhere(
    command: Command, tmp_path: Path
) -> None:
    assert command("diff", str(tmp_path / "no"), str(tmp_path)).code == ExitCode.UNREADABLE
    assert command("diff", str(tmp_path)).code == ExitCode.USAGE
    assert (
        command("diff", str(tmp_path), str(tmp_path), "--json", "--format", "markdown").code == ExitCode.USAGE
    )


def test_a_merge_is_told_with_what_became_of_each_update(command: Command) -> None:
    folder = FIXTURES / "peft/lora_llama"
    base, merged, lora = map(str, (folder / "base", folder / "merged.safetensors", folder / "checkpoint"))
    said = command("diff", base, merged, "--adapter", lora, "--values")
    assert said.code == ExitCode.OK
    assert "PEFT adapter, 9 tensors" in said.out
    assert "B is A with the adapter merged: 21 as they should be, 5 for the adapter to change" in " ".join(
        said.out.split()
    )
    assert "values were not compared" in command("diff", base, merged, "--adapter", lora).out

    said = command("diff", base, base, "--adapter", lora, "--values")
    assert said.code == ExitCode.BLOCKED
    lines = said.out.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith(("A", "B", "+")))
    row = lines.index("~ model.layers.{0-1}.self_attn.q_proj.weight  x2  F32 [32, 32]")
    assert lines[row + 1] == "    update of rank 4, scale 2: not in B, which is A"
    assert "in A with the update," in " ".join(said.out.split())
    assert "taken from the adapter whole: 3,072 of 3,072 elements further off" in " ".join(said.out.split())

    found = document(command("diff", base, base, "--adapter", lora, "--values", "--json").out)
    assert (found["kind"], found["counts"]["targets"], len(found["adapters"])) == ("merge", 5, 1)
    first = next(item for item in found["tensors"] if item["name"].endswith("q_proj.weight"))
    assert (first["merge"]["verdict"], first["merge"]["share"]) == ("unmerged", 0.0)
    text = command("diff", base, base, "--adapter", lora, "--values", "--format", "markdown").out
    assert "not in B" in text
    assert str(folder) not in text


def test_a_merge_that_cannot_be_told_ends_apart(command: Command) -> None:
    folder = FIXTURES / "peft/lora_llama"
    words = ("diff", str(folder / "base"), str(folder / "merged.safetensors"), "--adapter")
    little = command(*words, str(folder / "checkpoint"), "--values", "--memory", "1")
    assert little.code == ExitCode.UNSUPPORTED
    assert "but for the values of 4 tensors" in " ".join(little.out.split())
    said = command(*words, str(folder / "checkpoint"), "--component", "optimizer")
    assert said.code == ExitCode.USAGE
    said = command(*words, str(folder / "base"), "--values")
    assert said.code == ExitCode.UNSUPPORTED
    assert "diff.adapter_none" in said.err

"""How the explorer shows each family: the checkpoints that real producers wrote, through the whole engine.

Only the figures of the machine are made up. The paths are relative, so that no screen tells where the repository lies.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.engine import ENGINE
from shardscope.engine.host import Host
from shardscope.widgets.rank_map import RankMap
from tests import demo
from tests.app.fakes import GIB
from tests.checkpoints import write_sharded
from tests.conftest import SIZES, Snap, settle
from tests.parse.gguf_files import Row, word
from tests.parse.gguf_files import gguf as gguf_file
from tests.parse.gguf_files import number as whole_number

FIXTURES: Final = Path(__file__).resolve().parents[1] / "fixtures"
SMALL, USUAL = SIZES


def app(path: str) -> Explorer:
    """Return the explorer on a checkpoint, on a machine that never changes."""
    host = Host(412 * GIB, 96 * GIB, 80 * GIB, 64 * GIB, 2 * GIB)
    return Explorer(path, replace(ENGINE, host=lambda _: host), theme="shardscope-dark")


# Checkpoints that no fixture holds


def gguf(root: Path) -> None:
    """A model of llama.cpp, of two layers."""
    rows = [Row("token_embd.weight", (256, 32), 12), Row("output_norm.weight", (256,), 0, 32 * 144)]
    for layer in range(2):
        at = 32 * 144 + 1024 + layer * 144 * 48
        rows += [Row(f"blk.{layer}.attn_q.weight", (256, 16), 12, at)]
        rows += [Row(f"blk.{layer}.ffn_up.weight", (256, 32), 12, at + 16 * 144)]
    pairs = [word("general.architecture", "llama"), whole_number("llama.block_count", 2)]
    (root / "llama-q4_k_m.gguf").write_bytes(gguf_file(rows, pairs, data=32 * 144 + 1024 + 2 * 48 * 144))


def saves(root: Path) -> None:
    """Several steps of one run, with the tracker that DeepSpeed leaves."""
    step = FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint/global_step3"
    for number in (20, 100, 200):
        shutil.copytree(step, root / f"global_step{number}")
    (root / "latest").write_text("global_step100")


def ambiguous(root: Path) -> None:
    """A distributed checkpoint that Megatron Core or PyTorch may have written."""
    shutil.copytree(
        FIXTURES / "megatron/torch_dist_tp2_pp2/checkpoint/iter_0000010", root, dirs_exist_ok=True
    )
    (root / "metadata.json").unlink()


def missing_rank(root: Path) -> None:
    """A ZeRO save of four ranks without the partition of one of them."""
    step = FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint"
    shutil.copytree(step, root, dirs_exist_ok=True)
    next(root.glob("global_step*/*_rank_2_mp_rank_00_optim_states.pt")).unlink()


def trainer_output(root: Path) -> None:
    """What a trainer leaves: a final model, and beside it the state of its last step."""
    write_sharded(root)
    shutil.copytree(FIXTURES / "accelerate/fsdp1_sharded_world2/checkpoint", root / "checkpoint-500")


def many_ranks(root: Path) -> None:
    """A ZeRO save of 1,024 ranks, three of which never finished."""
    step = root / "global_step9000"
    step.mkdir()
    (root / "latest").write_text("global_step9000")
    head = next((FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint").glob("global_step*/*optim_states.pt"))
    model = next((FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint").glob("global_step*/mp_rank*"))
    content = head.read_bytes()
    for mp in range(8):
        (step / f"mp_rank_{mp:02}_model_states.pt").write_bytes(model.read_bytes())
        for dp in range(128):
            if (mp, dp) not in {(2, 77), (5, 3), (5, 4)}:
                (step / f"bf16_zero_pp_rank_{dp}_mp_rank_{mp:02}_optim_states.pt").write_bytes(content)


def damaged(root: Path) -> None:
    """A small Llama that a download left unfinished."""
    root.rmdir()
    demo.make_whole(root)
    demo.damage(root)


MADE: Final[dict[str, Callable[[Path], None]]] = {
    "tiny-llama-damaged": damaged,
    "llama-gguf": gguf,
    "run42": saves,
    "iter_0000010": ambiguous,
    "zero2-incomplete": missing_rank,
    "trainer-output": trainer_output,
    "zero2-1024-ranks": many_ranks,
}

SCREENS: Final[dict[str, tuple[str, tuple[int, int], tuple[str, ...]]]] = {
    "torch_dcp": ("dcp/fsdp2_flat_world2/checkpoint", SMALL, ()),
    "torch_dcp_safetensors": ("dcp/hf_writer_sharded_world2/checkpoint", SMALL, ()),
    "fsdp": ("torch/fsdp2_dtensor_torch_save_world2/checkpoint", SMALL, ("4",)),
    "accelerate": ("accelerate/fsdp1_sharded_world2/checkpoint", SMALL, ()),
    "megatron legacy": ("megatron/legacy_tp2_pp2/checkpoint", SMALL, ("4",)),
    "megatron dist": ("megatron/torch_dist_tp2_pp2/checkpoint", SMALL, ("2",)),
    "megatron zarr": ("megatron/dist_zarr_tp2/checkpoint", SMALL, ("4",)),
    "zero 2": ("deepspeed/zero2-w4-bf16/checkpoint", SMALL, ()),
    "zero 2 without a rank": ("zero2-incomplete", SMALL, ("4",)),
    "zero 2 of 1024 ranks": ("zero2-1024-ranks", SMALL, ("4",)),
    "zero 3": ("deepspeed/zero3-w3-fp32/checkpoint", SMALL, ("4",)),
    "universal": ("deepspeed/uc-from-zero1-w2-bf16/checkpoint", SMALL, ()),
    "pipeline": ("deepspeed/pipe2-zero1-fp32/checkpoint", SMALL, ("4", "l")),
    "experts": ("deepspeed/moe-ep2-zero2-bf16/checkpoint", SMALL, ("4",)),
    "experts wide": ("deepspeed/moe-ep2-zero2-bf16/checkpoint", USUAL, ("4", "l", "l")),
    "meta": ("hf/meta_consolidated_mp2/checkpoint", SMALL, ()),
    "mistral": ("hf/mistral_consolidated/checkpoint", SMALL, ()),
    "vllm": ("hf/vllm_sharded_state_tp2/checkpoint", SMALL, ("4",)),
    "download unfinished": ("tiny-llama-damaged", USUAL, ("3",)),
    "gguf": ("llama-gguf", SMALL, ()),
    "ambiguous": ("iter_0000010", SMALL, ("2",)),
    "saves": ("run42", SMALL, ()),
    "saves to choose from": ("run42", SMALL, ("o",)),
    "composite": ("trainer-output", USUAL, ()),
    "composite parts": ("trainer-output", USUAL, ("o",)),
    "matrix": ("deepspeed/zero2-w4-bf16/checkpoint", SMALL, ("f2",)),
    "matrix wide": ("deepspeed/zero2-w4-bf16/checkpoint", USUAL, ("f2",)),
    "glossary": ("deepspeed/zero2-w4-bf16/checkpoint", SMALL, ("f3", "slash", *"offload", "enter")),
}


@pytest.fixture
def at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that makes a checkpoint be there under a relative path, and returns that."""

    def there(path: str) -> str:
        if path in MADE:
            (tmp_path / path).mkdir()
            MADE[path](tmp_path / path)
            monkeypatch.chdir(tmp_path)
        else:
            monkeypatch.chdir(FIXTURES)
        return path

    return there


@pytest.mark.parametrize("screen", SCREENS)
async def test_screen(screen: str, at_hand: Callable[[str], str], snap: Snap) -> None:
    path, size, keys = SCREENS[screen]
    shown = app(at_hand(path))
    async with shown.run_test(size=size) as pilot:
        await settle(pilot)
        await settle(pilot)  # the digests begin when the facts are drawn
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        snap(shown)


async def test_a_save_is_chosen_opened_and_left_again(at_hand: Callable[[str], str]) -> None:
    shown = app(at_hand("run42"))
    async with shown.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("o", "enter")  # the cursor starts on what the tracker names
        await settle(pilot)
        assert isinstance(shown.screen, Explore)
        assert shown.screen.target.path == "run42/global_step100"
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert shown.screen.target.path == "run42"
        await pilot.press("o", *"step20", "up", "enter")
        await settle(pilot)
        assert isinstance(shown.screen, Explore)
        assert shown.screen.target.path == "run42/global_step20"
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("o", "down", "down", "enter")
        await settle(pilot)
        assert shown.screen.target.path == "run42/global_step200"


async def test_a_part_that_cannot_stand_alone_says_so(at_hand: Callable[[str], str]) -> None:
    shown = app(at_hand("trainer-output"))
    async with shown.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("o", "enter")
        await settle(pilot)
        said = shown.screen.query_one("#said").render()
        assert "shares its folder" in str(said)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(shown.screen, Explore)
        assert shown.screen.target.path == "trainer-output"


async def test_enter_on_a_rank_goes_to_its_file(at_hand: Callable[[str], str]) -> None:
    shown = app(at_hand("deepspeed/zero2-w4-bf16/checkpoint"))
    async with shown.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("4", "l", "enter")
        await settle(pilot)
        assert isinstance(shown.screen, Explore)
        workspace = shown.screen.workspace
        assert workspace is not None
        assert workspace.file_tree.has_focus
        row = workspace.file_tree.source_row(workspace.file_tree.cursor)
        assert b"zero_pp_rank_1_mp_rank_00" in workspace.file_tree.files.entry(row).path
        await pilot.press("escape")
        assert shown.screen.query_one(RankMap).has_focus


async def test_matrix_and_glossary_are_there_before_anything_is_opened(at_hand: Callable[[str], str]) -> None:
    at_hand("llama-gguf")
    shown = Explorer(None, ENGINE, theme="shardscope-dark")
    async with shown.run_test(size=SMALL) as pilot:
        await settle(pilot)
        first = shown.screen
        await pilot.press("f2")
        await settle(pilot)
        matrix = shown.screen
        await pilot.press("f2", "f3", "f3")
        await settle(pilot)
        assert shown.screen is not matrix
        await pilot.press("escape")
        assert shown.screen is first


async def test_what_is_found_in_a_page_is_gone_through_and_left_before_the_page(
    at_hand: Callable[[str], str],
) -> None:
    shown = app(at_hand("llama-gguf"))
    async with shown.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("f3", "slash", *"rank", "enter", "n")
        await settle(pilot)
        page = shown.screen
        assert "2 of" in str(page.query_one("#hits").render())
        await pilot.press("escape")
        assert shown.screen is page
        await pilot.press("escape")
        assert isinstance(shown.screen, Explore)

"""Saves of several ranks, made by the producers themselves on this machine: `python -m tests.producers.saves KIND FOLDER` is one rank.

Every kind saves the same model: a small Llama whose weights follow from a seed.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
LLAMA: Final = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def save(kind: str, folder: Path, world: int) -> Path:
    """Let `world` processes save into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    meeting = folder.with_name(folder.name + ".meeting")
    environment = os.environ | {
        "WORLD_SIZE": str(world),
        "LOCAL_SIZE": str(world),
        "MEETING": str(meeting),
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-W", "ignore", "-m", "tests.producers.saves", kind, str(folder)]
    started = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    told = [child.communicate()[1] for child in started]
    failed = [text[-3000:] for child, text in zip(started, told, strict=True) if child.returncode]
    assert not failed, "\n".join(failed)
    return folder


def model(dtype: Any = None) -> Any:
    """Return the model that every kind saves, in a type of torch."""
    import torch
    import transformers

    torch.manual_seed(0)
    made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    return made if dtype is None else made.to(dtype)


def rank_and_world() -> tuple[int, int]:
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def begin() -> None:
    import torch.distributed as dist

    rank, world = rank_and_world()
    dist.init_process_group(
        "gloo", init_method=f"file://{os.environ['MEETING']}", rank=rank, world_size=world
    )


def fsdp2(folder: Path) -> None:
    """Save a model that `fully_shard` cuts, and its optimizer after a step, with torch.distributed.checkpoint."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    begin()
    _, world = rank_and_world()
    made = model()
    mesh = init_device_mesh("cpu", (world,))
    for layer in made.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(made, mesh=mesh)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.0, momentum=0.9)
    made(torch.arange(12)[None], labels=torch.arange(12)[None]).loss.backward()
    optimizer.step()
    state, moments = get_state_dict(made, optimizer)
    dcp.save({"model": state, "optimizer": moments}, checkpoint_id=str(folder))
    torch.distributed.destroy_process_group()


def zero(stage: int) -> Callable[[Path], None]:
    """Return what saves a model that DeepSpeed trains at a stage of ZeRO: `before` a step that changes it, and `after`."""

    def run(folder: Path) -> None:
        import deepspeed
        import torch

        rank, world = rank_and_world()
        # an extension that would be compiled first, and leaves its buffers in /dev/shm
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed(
            "gloo",
            init_method=f"file://{os.environ['MEETING']}",
            rank=rank,
            world_size=world,
            auto_mpi_discovery=False,
        )
        made = model()
        config = {
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
        }
        optimizer = torch.optim.AdamW(made.parameters(), lr=0.0, weight_decay=0.0)
        engine, *_ = deepspeed.initialize(model=made, optimizer=optimizer, config=config)
        for name, rate in (("before", 0.0), ("after", 0.01)):
            for group in engine.optimizer.param_groups:
                group["lr"] = rate
            tokens = torch.arange(12)[None]
            engine.backward(engine(tokens, labels=tokens).loss)
            engine.step()
            engine.save_checkpoint(str(folder / name), tag="step")
        torch.distributed.destroy_process_group()

    return run


KINDS: Final[dict[str, Callable[[Path], None]]] = {
    "fsdp2": fsdp2,
    "zero1": zero(1),
    "zero2": zero(2),
    "zero3": zero(3),
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](Path(sys.argv[2]))

"""What torch itself saves of distributed tensors, decoded without it: layouts that no fixture has."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.decoding import Found, decode, value

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


@contextmanager
def rank_of(rank: int, world: int) -> Iterator[None]:
    """Make this process one rank of a world whose collectives do nothing: tensors are cut without any."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def saved(folder: Path, world: int, state: Callable[[int], dict[str, Any]], stem: str = "model") -> Path:
    """Write the rank files of a state, as verl names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(world):
        with rank_of(rank, world):
            torch.save(state(rank), folder / f"{stem}_world_size_{world}_rank_{rank}.pt")
    (folder / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": world}))
    return folder


def full(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype or torch.float32)


def bits(tensor: Any) -> bytes:
    data: bytes = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return data


def assert_holds(found: Found, want: dict[str, Any], prefix: str = "") -> None:
    got = {tensor.name: tensor for tensor in found.tensors}
    assert got.keys() == {prefix + name for name in want}
    for name, tensor in want.items():
        assert got[prefix + name].shape == tuple(tensor.shape)
        assert value(found, got[prefix + name]) == bits(tensor), name


def placed(tensor: Any, mesh: Any, placements: Sequence[Any]) -> Any:
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, mesh, placements, src_data_rank=None)


MESHES = [((4,), ("dp",)), ((2, 2), ("replica", "shard")), ((2, 2, 2), ("pp", "dp", "tp")), ((3, 2), None)]


@pytest.mark.parametrize(("sizes", "names"), MESHES)
def test_every_placement_on_every_mesh(
    tmp_path: Path, sizes: tuple[int, ...], names: tuple[str, ...] | None
) -> None:
    from itertools import product

    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard

    kinds = [Replicate(), Shard(0), Shard(1)]
    whole = {
        "_".join(str(getattr(item, "dim", "r")) for item in placements): (full(7, 5, seed=number), placements)
        for number, placements in enumerate(product(kinds, repeat=len(sizes)))
    }

    def state(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        found = {name: placed(tensor, mesh, placements) for name, (tensor, placements) in whole.items()}
        return OrderedDict(found)

    world = int(np.prod(sizes))
    found = decode(saved(tmp_path / "save", world, state))
    assert not found.blockers
    assert_holds(found, {name: tensor for name, (tensor, _) in whole.items()})
    axes = [axis.name for axis in found.facts[0].topology.meshes[0].axes]
    assert axes == ["world", *(names or [f"axis{number}" for number in range(len(sizes))])]


def test_a_dimension_cut_in_another_order_than_the_axes(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta

    whole = full(11, 3)

    def state(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (2, 3), mesh_dim_names=("a", "b"))
        by_b = torch.chunk(whole, 3)[rank % 3]
        parts = torch.chunk(by_b, 2)
        order = (ShardOrderEntry(tensor_dim=0, mesh_dims=(1, 0)),)
        meta = TensorMeta(whole.shape, whole.stride(), whole.dtype)
        spec = DTensorSpec(mesh, (Shard(0), Shard(0)), tensor_meta=meta, shard_order=order)
        return {"w": DTensor(parts[rank // 3].clone(), spec, requires_grad=False)}

    found = decode(saved(tmp_path / "save", 6, state))
    assert not found.blockers
    assert_holds(found, {"w": whole})


def test_a_state_of_accelerate_without_dcp(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard

    weight = full(7, 4)
    for rank in range(2):
        with rank_of(rank, 2):
            mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
            model = OrderedDict({"l1.weight": placed(weight, mesh, [Shard(0)])})
            moments = {"exp_avg": placed(weight * 2, mesh, [Shard(0)]), "step": torch.tensor(2.0)}
            optimizer = {"state": {"l1.weight": moments}, "param_groups": [{"lr": 0.1}]}
            torch.save(model, tmp_path / f"pytorch_model_fsdp_0_rank{rank}.bin")
            torch.save(optimizer, tmp_path / f"optimizer_0_rank{rank}.bin")
            torch.save(
                {"step": 2, "torch_manual_seed": torch.get_rng_state()},
                tmp_path / f"random_states_{rank}.pkl",
            )
    found = decode(tmp_path)
    assert found.facts[0].state.rng.presence == "present"
    assert not found.blockers
    want = {
        "l1.weight": weight,
        "optimizer.state.l1.weight.exp_avg": weight * 2,
        "optimizer.state.l1.weight.step": torch.tensor(2.0),
    }
    assert_holds(found, want)


def test_sub_meshes_and_flattened_meshes(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard

    whole = {
        name: full(9, 6, seed=seed) for seed, name in enumerate(("dp", "tp", "joined", "outer", "plain"))
    }

    def state(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        joined = mesh["pp", "dp"]._flatten("pp_dp")
        return {
            "dp": placed(whole["dp"], mesh["dp"], [Shard(0)]),
            "tp": placed(whole["tp"], mesh["tp"], [Shard(1)]),
            "joined": placed(whole["joined"], joined, [Shard(0)]),
            "outer": placed(whole["outer"], mesh["pp", "tp"], [Shard(0), Replicate()]),
            "plain": whole["plain"],
        }

    found = decode(saved(tmp_path / "save", 8, state))
    assert not found.blockers
    assert_holds(found, whole)
    assert len(found.named("dp").replicas) == 6
    assert len(found.named("plain").replicas) == 7


def test_dtypes_empty_shards_and_ties(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard

    whole = {
        "bf16": full(5, 3, dtype=torch.bfloat16),
        "fp8": full(6, 4).to(torch.float8_e4m3fn),
        "int": torch.arange(10),
        "few": full(2, 3, seed=3),
        "none": torch.zeros(0, 3),
        "tied": full(4, 4, seed=4),
    }
    whole["tied_too"] = whole["tied"]

    def state(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
        found = {
            name: placed(tensor, mesh, [Shard(0)]) for name, tensor in whole.items() if name != "tied_too"
        }
        found["tied_too"] = found["tied"]
        return found

    found = decode(saved(tmp_path / "save", 4, state))
    assert not found.blockers
    assert_holds(found, whole)
    assert found.named("tied_too").alias_of == "tied"


def test_strided_shards_and_partial_sums(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    from torch.distributed.tensor.placement_types import Shard, _StridedShard

    whole = full(10, 3)

    def state(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        by_tp = torch.chunk(whole, 2)[rank % 2]
        local = torch.chunk(by_tp, 2)[rank // 2].clone()  # torch cannot save one that is a view

        def spec(on: Any, *placements: Any) -> Any:
            return DTensorSpec(
                on, placements, tensor_meta=TensorMeta(whole.shape, whole.stride(), whole.dtype)
            )

        strided = spec(mesh, _StridedShard(0, split_factor=2), Shard(0))
        made = DTensor(local, strided, requires_grad=False)
        partial = DTensor(whole, spec(mesh["tp"], Partial()), requires_grad=False)
        return {"strided": made, "partial": partial}

    found = decode(saved(tmp_path / "save", 4, state))
    assert found.errors == {"fsdp.partial"}
    assert_holds(found, {"strided": whole})


def test_an_optimizer_of_dtensors(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard

    weights = {"a.weight": full(6, 4), "b.bias": full(7, seed=1)}

    def model(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("fsdp",))
        return {name: placed(tensor, mesh, [Shard(0)]) for name, tensor in weights.items()}

    def optimizer(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("fsdp",))  # torch remembers the mesh of results
        state = {
            name: {
                "step": torch.tensor(3.0),
                "exp_avg": placed(tensor * 2, mesh, [Shard(0)]),
                "exp_avg_sq": placed(tensor * 3, mesh, [Shard(0)]),
            }
            for name, tensor in weights.items()
        }
        return {"state": state, "param_groups": [{"lr": 0.1, "params": list(weights)}]}

    def extra(rank: int) -> dict[str, Any]:
        return {"lr_scheduler": {"last_epoch": 3}, "rng": {"cpu": torch.get_rng_state(), "rank": rank}}

    folder = tmp_path / "actor"
    for stem, make in (("model", model), ("optim", optimizer), ("extra_state", extra)):
        saved(folder, 2, make, stem)
    found = decode(folder)
    assert not found.errors
    want: dict[str, Any] = dict(weights)
    for name, tensor in weights.items():
        want[f"optimizer.state.{name}.step"] = torch.tensor(3.0)
        want[f"optimizer.state.{name}.exp_avg"] = tensor * 2
        want[f"optimizer.state.{name}.exp_avg_sq"] = tensor * 3
    assert_holds(found, want)
    state = found.facts[0].state
    assert [state.optimizer.presence, state.scheduler.presence, state.rng.presence] == ["present"] * 3


def test_a_missing_rank_names_the_shard(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard

    def state(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (3,), mesh_dim_names=("fsdp",))
        return {"w": placed(full(9, 2), mesh, [Shard(0)]), "few": placed(full(2, 2), mesh, [Shard(0)])}

    folder = saved(tmp_path / "save", 3, state)
    (folder / "model_world_size_3_rank_1.pt").unlink()
    found = decode(folder)
    assert found.errors == {"fsdp.rank_missing", "fsdp.shard_missing"}
    (item,) = (item for item in found.blockers if item.code == "fsdp.shard_missing")
    assert item.params["rank"] == 1
    assert item.params["count"] == 2
    (folder / "model_world_size_3_rank_2.pt").rename(folder / "model_world_size_3_rank_1.pt")
    assert "fsdp.rank_differs" in decode(folder).errors


# --- distributed checkpoints by torch's own writer


def test_a_nested_state_is_listed_as_torch_reads_it(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import FileSystemReader

    state = {
        "model": {
            "conv": full(4, 3, 5, 5).to(memory_format=torch.channels_last),
            "turned": full(6, 8, seed=1).T,
            "every_other": full(10, 4, seed=2)[::2],
            "nothing": torch.zeros(0, 7),
            "scalar": torch.tensor(2.5, dtype=torch.float64),
            "flags": torch.tensor([True, False]),
            "half": full(3, 3, dtype=torch.float16),
        },
        "optimizer": {
            "state": {"w": {"exp_avg": full(3, 4)}},
            "param_groups": [{"lr": 0.1, "params": ["w"]}],
        },
        "lr_scheduler": {"last_epoch": 7},
        "misc": {"words": ["a", "b"], "none": None},
    }
    folder = tmp_path / "save"
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    found = decode(folder)
    assert not found.blockers
    theirs = FileSystemReader(folder).read_metadata().state_dict_metadata
    tensors = {name: item for name, item in theirs.items() if hasattr(item, "size")}
    assert {tensor.name: tensor.shape for tensor in found.tensors} == {
        name: tuple(item.size) for name, item in tensors.items()
    }
    for name, tensor in state["model"].items():
        assert value(found, found.named(f"model.{name}")) == bits(tensor), name
    strides = {item.name: item.fragments[0].strides for item in found.tensors}
    assert strides["model.conv"] is not None or strides["model.turned"] is not None


def test_objects_with_tensors_in_them_are_listed(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import DefaultSavePlanner

    state = {"model": {"w": full(3, 4), "deep": {"b": full(2)}}, "epoch": 3, "plain": full(5)}
    folder = tmp_path / "save"
    dcp.save(state, checkpoint_id=folder, no_dist=True, planner=DefaultSavePlanner(flatten_state_dict=False))
    found = decode(folder)
    assert not found.blockers
    want = {
        "model.w": state["model"]["w"],
        "model.deep.b": state["model"]["deep"]["b"],
        "plain": state["plain"],
    }
    assert_holds(found, want)
    assert {tensor.component for tensor in found.tensors} == {"model"}


@pytest.mark.parametrize("options", [{"thread_count": 3}, {"single_file_per_rank": False}])
def test_the_options_of_the_writer(tmp_path: Path, options: dict[str, Any]) -> None:
    import torch.distributed.checkpoint as dcp

    state = {f"layer{number}.weight": full(number + 1, 3, seed=number) for number in range(9)}
    folder = tmp_path / "save"
    dcp.save(state, storage_writer=dcp.FileSystemWriter(folder, **options), no_dist=True)
    found = decode(folder)
    assert not found.blockers
    assert_holds(found, state)


def test_archives_without_checksums(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.serialization import get_crc32_options, set_crc32_options

    before = get_crc32_options()
    set_crc32_options(False)
    state = {"a.weight": full(3, 3), "b.weight": full(3, 3, seed=1)}
    try:
        dcp.save(state, checkpoint_id=tmp_path / "save", no_dist=True)
    finally:
        set_crc32_options(before)
    found = decode(tmp_path / "save")
    assert not found.errors
    assert_holds(found, state)
    assert {item.record.crc for tensor in found.tensors for item in tensor.fragments} == {None}

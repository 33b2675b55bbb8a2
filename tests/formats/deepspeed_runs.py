"""DeepSpeed saves made on the spot by the training side's own rules, for layouts of which no small real save is at hand.

Nothing of the decoder is used: tensors are cut, laid end to end and padded here as deepspeed 0.19.8 does it (`runtime/zero`,
`runtime/engine.py`). Padding is never zero, so that a byte of it that reaches a tensor is noticed.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tests.torchfiles import Called, Tensor, save

Array: TypeAlias = NDArray[Any]
Named: TypeAlias = Mapping[str, Array]

GARBAGE = np.float32(-3.6e31)
NAMES = {"float32": "F32", "float16": "F16", "int64": "I64", "bool": "BOOL", "uint16": "BF16"}


class File:
    """One file of torch.save while it is put together."""

    def __init__(self) -> None:
        self.storages: dict[str, bytes] = {}

    def tensor(self, array: Array) -> Tensor:
        """Return a tensor in a storage of its own."""
        key = str(len(self.storages))
        self.storages[key] = np.ascontiguousarray(array).tobytes()
        return Tensor(key, array.size, array.shape, dtype=NAMES[array.dtype.name])

    def views(self, arrays: Named) -> dict[str, Tensor]:
        """Return tensors that are views into one storage, as modules of ZeRO stage 1 and 2 keep them."""
        found: dict[str, Tensor] = {}
        by_dtype: dict[str, list[str]] = {}
        for name, array in arrays.items():
            by_dtype.setdefault(array.dtype.name, []).append(name)
        for dtype, names in by_dtype.items():
            key = str(len(self.storages))
            total = sum(arrays[name].size for name in names)
            self.storages[key] = b"".join(np.ascontiguousarray(arrays[name]).tobytes() for name in names)
            offset = 0
            for name in names:
                array = arrays[name]
                found[name] = Tensor(key, total, array.shape, offset=offset, dtype=NAMES[dtype])
                offset += array.size
        return {name: found[name] for name in arrays}

    def write(self, path: Path, value: Any) -> Path:
        """Write the file around `value`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        return save(path, value, self.storages)


class Group(msgspec.Struct):
    """One parameter group of one model-parallel rank: its parameters in the order of the flat buffer."""

    parameters: dict[str, Array]
    among: int | None = None
    """Data-parallel ranks that it is cut among; null for all."""
    experts: bool = False
    paddings: list[int] | None = None
    """Elements behind each parameter."""


def partitions(group: Group, ranks: int, *, strip: bool = True) -> list[Array]:
    """Return what each rank keeps of a group of stage 1 or 2; `strip` takes trailing padding off, as most writers do."""
    pieces = []
    for number, array in enumerate(group.parameters.values()):
        pieces.append(array.reshape(-1))
        padding = group.paddings[number] if group.paddings else 0
        pieces.append(np.full(padding, GARBAGE, np.float32))
    flat = np.concatenate([*pieces, np.empty(0, np.float32)])
    used = flat.size
    flat = np.concatenate([flat, np.full(-used % (2 * ranks), GARBAGE, np.float32)])
    size = flat.size // ranks
    cut = [flat[rank * size : (rank + 1) * size] for rank in range(ranks)]
    if not strip:
        return cut
    return [part[: max(0, min(size, used - rank * size))] for rank, part in enumerate(cut)]


def sub_group(parameters: Named, ranks: int) -> list[Array]:
    """Return what each rank keeps of a sub-group of stage 3."""
    found: list[list[Array]] = [[] for _ in range(ranks)]
    for array in parameters.values():
        each = -(-array.size // ranks)
        flat = np.concatenate([array.reshape(-1), np.full(each * ranks - array.size, np.inf, array.dtype)])
        for rank in range(ranks):
            found[rank].append(flat[rank * each : (rank + 1) * each])
    return [np.concatenate(parts) for parts in found]


def moments(part: Array) -> dict[str, Array]:
    """Return states of an optimizer that follow from the weights, so that a test knows them."""
    return {"exp_avg": part * np.float32(0.5), "exp_avg_sq": part * np.float32(-2)}


def write_partition(
    path: Path,
    parts: Sequence[Array],
    stage: int | None,
    counts: Sequence[int],
    *,
    moe: Sequence[bool] = (),
    paddings: Sequence[list[int]] | None = None,
    slices: Sequence[dict[str, tuple[int, int]]] | None = None,
    ranks_of: Sequence[dict[str, int]] | None = None,
    elastic: bool = False,
) -> Path:
    """Write one `*_optim_states.pt` file."""
    file = File()
    weights = [file.tensor(part) for part in parts]
    state: dict[int, Any] = {
        number: {
            "step": file.tensor(np.full((), 7, np.float32)),
            **{k: file.tensor(v) for k, v in moments(part).items()},
        }
        for number, part in enumerate(parts)
    }
    groups = [
        {"lr": 0.1, "params": [number], **({"moe": True, "name": "ep_size_2"} if flag else {})}
        for number, flag in enumerate([*moe, *[False] * (len(parts) - len(moe))])
    ]
    inner: dict[str, Any] = {}
    if stage is not None:
        inner["zero_stage"] = Called("deepspeed.runtime.zero.config", "ZeroStageEnum", (stage,))
    if stage == 3:
        inner |= {
            "partition_count": counts[0],
            "optimizer_state_dict": {"state": state, "param_groups": groups},
            "fp32_flat_groups": weights,
        }
        if ranks_of is not None:
            inner["ds_zero_partition_groups"] = list(ranks_of)
    else:
        base = {"state": state, "param_groups": groups}
        inner |= {
            "base_optimizer_state": [base] if elastic else base,
            "single_partition_of_fp32_groups": weights,
            "partition_count": list(counts),
            "group_paddings": [999] * len(parts),
        }
        if paddings is not None:
            inner["param_alignment_paddings"] = [list(row) for row in paddings]
        if slices is not None:
            inner["param_slice_mappings"] = [
                {
                    name: Called(
                        "deepspeed.utils.tensor_fragment",
                        "fragment_address",
                        (),
                        {"start": start, "numel": count},
                    )
                    for name, (start, count) in row.items()
                }
                for row in slices
            ]
    return file.write(path, {"optimizer_state_dict": inner, "ds_version": "0.19.8"})


def sizes(shapes: Mapping[str, Sequence[int]]) -> dict[str, Called]:
    """Return shapes as torch pickles them: its own converters ask them for their number of elements."""
    return {name: Called("torch", "Size", (tuple(shape),)) for name, shape in shapes.items()}


def write_states(
    path: Path,
    module: Named | None,
    shapes: Sequence[Mapping[str, Sequence[int]]] | None,
    *,
    stage: int,
    dp: int,
    pp: int = 1,
    tp: int = 1,
    info: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    fragments: Named | None = None,
    **more: Any,
) -> Path:
    """Write one file of model states; `more` are further keys of the top."""
    file = File()
    value: dict[str, Any] = {
        "module": None if module is None else file.views(module),
        "buffer_names": [],
        "optimizer": None,
        "param_shapes": None if shapes is None else [sizes(row) for row in shapes],
        "frozen_param_shapes": None,
        "shared_params": {},
        "frozen_param_fragments": None
        if fragments is None
        else {name: file.tensor(array) for name, array in fragments.items()},
        "lr_scheduler": None,
        "global_steps": 5,
        "dp_world_size": dp,
        "mp_world_size": pp * tp,
        "checkpoint_parallel_dimensions": {"pp_degree": pp, "tp_degree": tp},
        "ds_config": {"zero_optimization": {"stage": stage}} | (config or {}),
        "ds_version": "0.19.8",
    }
    if info is not None:
        value["universal_checkpoint_info"] = info
    return file.write(path, value | more)


def half(arrays: Named) -> dict[str, Array]:
    """Return parameters as a module in fp16 holds them."""
    return {name: array.astype(np.float16) for name, array in arrays.items()}


def weights(seed: int, **shapes: Sequence[int]) -> dict[str, Array]:
    """Return distinct numbers of these shapes; double underscores in names stand for dots."""
    random = np.random.default_rng(seed)
    return {
        name.replace("__", "."): random.standard_normal(tuple(shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_zero(
    root: Path,
    ranks: Mapping[tuple[int, int], Sequence[Group]],
    *,
    dp: int,
    stage: int = 1,
    strip: bool = True,
    buffers: Named | None = None,
    info: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    tied: Mapping[str, str] | None = None,
    extra: Named | None = None,
    **more: Any,
) -> Path:
    """Write a save of dense parameters below stage 3, `ranks` by pipeline stage and tensor-parallel rank; return its root.

    `extra` are names of the module that no group trains.
    """
    tag = root / "global_step5"
    pp, tp = (1 + max(at[axis] for at in ranks) for axis in (0, 1))
    for (stage_number, tp_rank), groups in ranks.items():
        mp = stage_number * tp + tp_rank
        module = half({k: v for group in groups for k, v in group.parameters.items()})
        write_states(
            tag / f"mp_rank_{mp:02d}_model_states.pt",
            module | dict(extra or {}) | dict(buffers or {}),
            [{k: v.shape for k, v in group.parameters.items()} for group in groups],
            stage=stage,
            dp=dp,
            pp=pp,
            tp=tp,
            info=info,
            config=config,
            **({"buffer_names": list(buffers or {}), "shared_params": dict(tied or {})} | more),
        )
        cut = [partitions(group, dp, strip=strip) for group in groups]
        for rank in range(dp):
            write_partition(
                tag / f"zero_pp_rank_{rank}_mp_rank_{mp:02d}_optim_states.pt",
                [parts[rank] for parts in cut],
                stage,
                [dp] * len(groups),
                paddings=[group.paddings or [0] * len(group.parameters) for group in groups],
            )
    (root / "latest").write_text("global_step5")
    return root


def write_three(
    root: Path,
    ranks: Mapping[int, Sequence[Named]],
    *,
    dp: int,
    info: dict[str, Any] | None = None,
    frozen: Named | None = None,
    buffers: Named | None = None,
    tied: Mapping[str, str] | None = None,
) -> Path:
    """Write a save of stage 3, sub-groups by tensor-parallel rank; return its root."""
    tag = root / "global_step5"
    parts = {name: sub_group({name: array}, dp) for name, array in (frozen or {}).items()}
    for tp, groups in ranks.items():
        cut = [sub_group(group, dp) for group in groups]
        names = [name for group in groups for name in group] + list(frozen or {}) + list(tied or {})
        for rank in range(dp):
            write_states(
                tag / f"zero_pp_rank_{rank}_mp_rank_{tp:02d}_model_states.pt",
                {name: np.empty(0, np.float16) for name in names} | dict(buffers or {}),
                [{k: v.shape for k, v in group.items()} for group in groups],
                stage=3,
                dp=dp,
                tp=len(ranks),
                info=info,
                frozen_param_shapes=sizes({name: array.shape for name, array in (frozen or {}).items()}),
                fragments={name: part[rank] for name, part in parts.items()},
                shared_params=dict(tied or {}) if rank == 0 else {},
                buffer_names=list(buffers or {}),
            )
            write_partition(
                tag / f"zero_pp_rank_{rank}_mp_rank_{tp:02d}_optim_states.pt",
                [one[rank] for one in cut],
                3,
                [dp],
            )
    (root / "latest").write_text("global_step5")
    return root


def cut_rows(array: Array, widths: Sequence[int], dim: int = 0) -> list[Array]:
    """Return consecutive slices of these widths."""
    ends = np.cumsum(widths)
    return [np.ascontiguousarray(part) for part in np.split(array, ends[:-1], axis=dim)]


def contiguous_map(shape: Sequence[int], widths: Sequence[int], dim: int = 0) -> dict[str, Any]:
    """Return the affine map entry of a plain cut, written out by hand."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    ranks = {}
    for rank, width in enumerate(widths):
        own = [width if axis == dim else extent for axis, extent in enumerate(shape)]
        inner = [math.prod(own[axis + 1 :]) for axis in range(len(own))]
        source = [sum(widths[:rank]) * strides[dim], strides]
        piece = {"shape": own, "source": source, "dest": [0, inner], "locations": [rank]}
        ranks[rank] = {"shard_shape": own, "pieces": [piece]}
    return {"logical_shape": list(shape), "ranks": ranks}


def replicated_map(shape: Sequence[int], ranks: int) -> dict[str, Any]:
    """Return the affine map entry of what all ranks hold whole."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    piece = {
        "shape": list(shape),
        "source": [0, strides],
        "dest": [0, strides],
        "locations": list(range(ranks)),
    }
    return {
        "logical_shape": list(shape),
        "ranks": {rank: {"shard_shape": list(shape), "pieces": [piece]} for rank in range(ranks)},
    }


def info_of(maps: Mapping[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return `universal_checkpoint_info` with affine maps by plain names of letters, digits and dots."""
    params = {"^" + name.replace(".", "\\.").replace("_", "_") + "$": entry for name, entry in maps.items()}
    return {"universal_checkpoint_version": 0.4, "affine_map": {"version": 1, "params": params}} | more

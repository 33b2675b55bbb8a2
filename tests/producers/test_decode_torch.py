"""Random files of torch.save, decoded here and loaded by torch itself: names, types, shapes, strides, aliases and every byte."""

import math
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from shardscope.engine.model.piece import row_major
from tests.formats.decoding import Found, decode, value

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]

DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}
KEYS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=8), st.integers(0, 9)
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=9),
    st.sampled_from([torch.float32, torch.device("cpu"), torch.Size([2, 3])]),
)


def views(draw: Any, tensor: Any) -> Any:
    """Return a random view of a tensor."""
    for _ in range(draw(st.integers(0, 3))):
        axes = tensor.dim()
        axis = draw(st.integers(0, axes - 1)) if axes else 0
        match draw(
            st.sampled_from(
                ["narrow", "step", "transpose", "select", "unsqueeze", "expand", "same", "strided"]
            )
        ):
            case "narrow" if axes:
                start = draw(st.integers(0, tensor.shape[axis]))
                tensor = tensor.narrow(axis, start, draw(st.integers(0, tensor.shape[axis] - start)))
            case "step" if axes:
                tensor = tensor[(slice(None),) * axis + (slice(None, None, 2),)]
            case "transpose" if axes > 1:
                tensor = tensor.transpose(axis, axes - 1 - axis)
            case "select" if axes and tensor.shape[axis]:
                tensor = tensor.select(axis, draw(st.integers(0, tensor.shape[axis] - 1)))
            case "unsqueeze" if axes < 4:
                tensor = tensor.unsqueeze(axis)
            case "expand" if axes and tensor.shape[axis] == 1:
                tensor = tensor.expand(*tensor.shape[:axis], 3, *tensor.shape[axis + 1 :])
            case "strided" if math.prod(tensor.shape) > 6 and tensor.is_contiguous():
                tensor = tensor.as_strided((2, 3), (draw(st.integers(0, 3)), 1), tensor.storage_offset())
            case _:
                pass
    return tensor


@st.composite
def saved(draw: Any) -> Any:
    """Return an object as people save it: nested, shared, with views of common storages."""
    bases = []
    for _ in range(draw(st.integers(1, 4))):
        dtype = getattr(torch, draw(st.sampled_from(sorted(DTYPES))))
        shape = draw(st.lists(st.integers(0, 5), max_size=3))
        numbers = torch.arange(math.prod(shape)) % draw(st.integers(2, 9))
        bases.append(numbers.to(torch.float32).to(dtype).reshape(shape))
    made: list[Any] = []

    def leaf() -> Any:
        match draw(st.integers(0, 9)):
            case 0 | 1:
                return draw(PLAIN)
            case 2 if made:
                return draw(st.sampled_from(made))  # the same object, container or tensor
            case kind:
                tensor = views(draw, draw(st.sampled_from(bases)))
                if kind == 3 and tensor.is_floating_point():
                    tensor = torch.nn.Parameter(tensor, requires_grad=draw(st.booleans()))
                if kind == 4:
                    tensor = tensor[...]
                    tensor.mark = "an attribute"
                made.append(tensor)
                return tensor

    def container(depth: int) -> Any:
        count = draw(st.integers(0, 4))
        inner = [container(depth - 1) if depth and draw(st.booleans()) else leaf() for _ in range(count)]
        match draw(st.sampled_from(["dict", "ordered", "list", "tuple"])):
            case "list":
                found: Any = inner
            case "tuple":
                found = tuple(inner)
            case kind:
                keys = draw(st.lists(KEYS, min_size=count, max_size=count, unique_by=str))
                found = (OrderedDict if kind == "ordered" else dict)(zip(keys, inner, strict=True))
        made.append(found)
        return found

    return container(3)


def tensors_of(loaded: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every tensor of what torch loaded, by the keys that lead to it."""
    if isinstance(loaded, torch.Tensor):
        yield name or "tensor", loaded
    elif isinstance(loaded, torch.Size):
        return
    elif isinstance(loaded, dict | list | tuple):
        items = loaded.items() if isinstance(loaded, dict) else enumerate(loaded)
        for key, inner in items:
            yield from tensors_of(inner, f"{name}.{key}" if name else str(key))


def seen(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides without those that no element shows."""
    if 0 in shape:
        return ()
    return tuple(stride for extent, stride in zip(shape, strides, strict=True) if extent > 1)


def raw(tensor: Any) -> bytes:
    """Return the bytes of a tensor's elements, row-major."""
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype)
    flat.copy_(tensor.detach().reshape(-1))
    return bytes(flat.view(torch.uint8).numpy().tobytes())


def compare(found: Found, theirs: list[tuple[str, Any]]) -> None:
    assert [tensor.name for tensor in found.tensors] == [name for name, _ in theirs]
    first: dict[tuple[Any, ...], str] = {}
    for ours, (name, tensor) in zip(found.tensors, theirs, strict=True):
        assert ours.dtype == DTYPES[str(tensor.dtype).removeprefix("torch.")], name
        shape = tuple(tensor.shape)
        assert ours.shape == shape, name
        (fragment,) = ours.fragments
        strides = fragment.strides or row_major(shape)
        assert seen(shape, strides) == seen(shape, tensor.stride()), name
        key = (
            tensor.untyped_storage().data_ptr(),
            tensor.storage_offset(),
            shape,
            seen(shape, tensor.stride()),
            tensor.dtype,
        )
        alias = None if 0 in shape else first.setdefault(key, name)
        assert ours.alias_of == (None if alias == name else alias), name
        assert value(found, ours) == raw(tensor), name


def loaded(path: Path, made: Any, protocol: int, *, zipped: bool) -> Any:
    """Return what torch reads back: by its restricted reader where that knows the protocol, as the file was made here.

    Torch cannot read streams with its newest types, which it writes: what was saved is then what should be found.
    """
    newest = ("F8_", "U16", "U32", "U64")
    types = {DTYPES[str(tensor.dtype).removeprefix("torch.")] for _, tensor in tensors_of(made)}
    if not zipped and any(dtype.startswith(newest) for dtype in types):
        return made
    return torch.load(path, weights_only=protocol in (2, 3))


# R078 R081 R084
@given(saved(), st.sampled_from([1, 2, 3, 4, 5]), st.booleans())
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_files_are_listed_as_torch_loads_them(
    tmp_path_factory: pytest.TempPathFactory, made: Any, protocol: int, zipped: bool
) -> None:
    path = tmp_path_factory.mktemp("saved") / "model.pt"
    torch.save(made, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    theirs = list(tensors_of(loaded(path, made, protocol, zipped=zipped)))
    found = decode(path)
    event(f"{'zip' if zipped else 'stream'}, {min(len(theirs), 8)} tensors")
    assert not found.errors
    compare(found, theirs)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_saved_module_is_listed_as_its_state_dict(tmp_path: Path, zipped: bool) -> None:
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(4, 2, bias=False),
    )
    module.register_buffer("kept", torch.arange(3))
    module.register_buffer("passing", torch.arange(3), persistent=False)
    module[3].weight.requires_grad = False
    path = tmp_path / "module.pt"
    torch.save(module, path, _use_new_zipfile_serialization=zipped)
    found = decode(path)
    theirs = dict(module.state_dict())
    assert {tensor.name for tensor in found.tensors} == set(theirs)
    for name, tensor in theirs.items():
        assert value(found, found.named(name)) == raw(tensor)
    assert {tensor.name: tensor.role for tensor in found.tensors if tensor.role != "parameter"} == {
        "3.weight": "frozen",
        **dict.fromkeys(("kept", "1.running_mean", "1.running_var", "1.num_batches_tracked"), "buffer"),
    }


def test_a_tied_model_and_its_optimizer_are_read_from_one_file(tmp_path: Path) -> None:
    model = torch.nn.ModuleDict(
        {"embed": torch.nn.Embedding(7, 4), "head": torch.nn.Linear(4, 7, bias=False)}
    )
    model["head"].weight = model["embed"].weight
    optimizer = torch.optim.Adam(model.parameters())
    model["head"](model["embed"](torch.tensor([1, 2]))).sum().backward()
    optimizer.step()
    path = tmp_path / "last.ckpt"
    torch.save(
        {
            "state_dict": model.state_dict(),
            "optimizer_states": [optimizer.state_dict()],
            "rng": torch.get_rng_state(),
            "epoch": 1,
        },
        path,
    )
    found = decode(path)
    compare(found, list(tensors_of(torch.load(path, weights_only=True))))
    assert found.named("state_dict.head.weight").alias_of == "state_dict.embed.weight"
    components = {tensor.name: tensor.component for tensor in found.tensors}
    assert components["optimizer_states.0.state.0.exp_avg"] == "optimizer"
    assert components["rng"] == "other"


def test_what_torch_writes_and_safetensors_cannot_hold_is_named(tmp_path: Path) -> None:
    torch.save(
        {
            "good": torch.ones(2),
            "conj": torch.ones(2, dtype=torch.complex64).conj(),
            "neg": torch.ones(2, dtype=torch.complex64).conj().imag,
            "csr": torch.eye(3).to_sparse_csr(),
            "coo": torch.eye(3).to_sparse(),
            "half": torch.zeros(2, dtype=torch.complex32),
            "four": torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
            "meta": torch.zeros(3, device="meta"),
        },
        tmp_path / "odd.pt",
    )
    found = decode(tmp_path / "odd.pt")
    assert {tensor.name for tensor in found.tensors if not tensor.note} == {"good"}
    named = {(item.code, item.params["tensor"]) for item in found.blockers if item.severity == "error"}
    assert named == {
        ("torch.tensor_pending", "conj"),
        ("torch.tensor_pending", "neg"),
        ("torch.tensor_kind", "csr"),
        ("torch.tensor_dtype", "half"),
        ("torch.tensor_dtype", "four"),
        ("torch.tensor_meta", "meta"),
    }


def test_plain_pickles_and_programs(tmp_path: Path) -> None:
    import pickle

    module = torch.nn.Sequential(torch.nn.Linear(2, 3)).eval()
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(module.state_dict()))
    torch.jit.save(torch.jit.trace(module, torch.zeros(1, 2)), tmp_path / "traced.pt")
    plain = decode(tmp_path / "plain.pkl")
    assert not plain.tensors
    assert "torch.plain_pickle" in plain.errors
    traced = decode(tmp_path / "traced.pt")
    for name, tensor in module.state_dict().items():
        assert value(traced, traced.named(name)) == raw(tensor)


def test_records_of_torch_match_their_checksums(tmp_path: Path) -> None:
    from shardscope.engine.formats.decode.record_checks import check_records
    from shardscope.engine.formats.probe import Probe
    from shardscope.engine.model.limits import Limits
    from shardscope.engine.source.source import Source

    path = tmp_path / "model.pt"
    torch.save({"a": torch.randn(1000, 1000), "b": torch.arange(10)}, path)
    with Source(path, limits=Limits(), hf_cache=False) as source:
        probe = Probe(source, source.walk(), Limits())
        result = check_records(probe, decode(path).tensors)
    assert (result.records, result.damaged, result.unrecorded) == (2, (), 0)
    assert result.bytes == 4_000_080

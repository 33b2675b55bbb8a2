"""numpy's arrays, scalars and dtypes as they pickle themselves (`numpy/_core/multiarray`, `arraydescr_reduce`)."""

from struct import Struct as Layout
from typing import Final

from msgspec.structs import replace

from shardscope.engine.model.pickled import Bytes, Items, Node, PickledTensor, Plain, Record
from shardscope.engine.parse.pickle_stream.records import Call, Dict
from shardscope.engine.parse.pickled.facts import Facts
from shardscope.engine.parse.pickled.shapes import Odd
from shardscope.engine.parse.pickled.tensors import boolean, inner_tensor, integer, nothing_more, size
from shardscope.engine.parse.pickled.tensors import dtype as torch_dtype

SCALARS: Final = {
    "f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u2": "H",
    "u1": "B", "b1": "?",
}  # fmt: skip
"""numpy's codes of types, and the standard library's."""


def raw_bytes(value: object) -> bytes:
    """Return bytes in any of their spellings: as they are, by `_codecs.encode`, or as a string of Python 2."""
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode()
    if type(value) is Call and len(value.args) == 2 and isinstance(value.args[0], str):
        return _encoded(value.args[0])
    if type(value) is Call and not value.args:
        return b""
    raise Odd


def _encoded(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise Odd from None


def encoded(facts: Facts, call: Call) -> Bytes:
    """`_codecs.encode(text, "latin1")`: how protocols below 3 write bytes."""
    text, encoding = nothing_more(call, 2)
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise Odd
    return Bytes(_encoded(text))


def dtype_code(value: object) -> str:
    """Return the code of a dtype with its byte order: `<f4`, `|b1`. Raises `Odd` for structured ones and other values."""
    if type(value) is not Call or not value.args or type(value.args[0]) is not str:
        raise Odd
    code = value.args[0]
    if value.states:
        state = value.states[-1]
        if type(state) is not tuple or len(state) < 5 or type(state[1]) is not str or state[4] is not None:
            raise Odd
        return state[1] + code
    return code


def dtype(facts: Facts, call: Call) -> Record:
    """`numpy.dtype(code, align, copy)` and its state."""
    try:
        return Record("numpy.dtype", ("code",), (facts.plain(dtype_code(call)),))
    except Odd:
        state = call.states[-1] if call.states else None
        return Record("numpy.dtype", ("arguments", "state"), facts.numbers([call.args, state]))


def scalar(facts: Facts, call: Call) -> Node:
    """`numpy.core.multiarray.scalar(dtype, bytes)`: the value itself, where the standard library can read it."""
    kind, *data = nothing_more(call, 1, 2)
    try:
        code = dtype_code(kind)
    except Odd:
        code = ""
    order, letter = ("<", code[0:]) if code[:1].isalnum() else (code[:1].replace("|", "<"), code[1:])
    if data and letter in SCALARS and order in ("<", ">", "="):
        raw, layout = raw_bytes(data[0]), Layout(order.replace("=", "<") + SCALARS[letter])
        if len(raw) != layout.size:
            raise Odd
        return Plain(layout.unpack(raw)[0])
    return Record("numpy.scalar", ("dtype", "data"), facts.numbers([kind, data[0] if data else None]))


def array_shape(value: object) -> tuple[int, ...]:
    """Return the shape of an array. Raises `Odd` where it is none."""
    if type(value) is not Call or not value.states:
        raise Odd
    state = value.states[-1]
    if type(state) is not tuple or len(state) != 5:
        raise Odd
    return size(state[1])


def array(facts: Facts, call: Call) -> Record:
    """`numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b"b")` and its state: version, shape, dtype, order, data."""
    nothing_more(call, 3)
    shape = array_shape(call)
    _, _, kind, fortran, data = call.states[-1]  # type: ignore[index,misc]  # `array_shape` has looked
    content = facts.number(data) if type(data) is list else facts.plain(raw_bytes(data))
    return Record(
        "numpy.ndarray",
        ("shape", "dtype", "fortran", "data"),
        (_shape(facts, shape), facts.number(kind), facts.number(fortran), content),
    )


def _shape(facts: Facts, shape: tuple[int, ...]) -> int:
    return facts.fresh(Items("tuple", [facts.plain(length) for length in shape]))


def frombuffer(facts: Facts, call: Call) -> Record:
    """`numpy._core.numeric._frombuffer(data, dtype, shape, order)`: how protocol 5 writes arrays."""
    data, kind, shape, order = nothing_more(call, 4)
    return Record(
        "numpy.ndarray",
        ("shape", "dtype", "fortran", "data"),
        (
            _shape(facts, size(shape)),
            facts.number(kind),
            facts.plain(order == "F"),
            facts.plain(raw_bytes(data)),
        ),
    )


def bytes_io(facts: Facts, call: Call) -> Record:
    """`io.BytesIO()` and its state: contents, position, attributes."""
    if call.states:
        state = call.states[-1]
        if type(state) is not tuple or len(state) != 3 or type(state[2]) not in (type(None), Dict):
            raise Odd
        value, position = raw_bytes(state[0]), integer(state[1])
    else:
        value, position = raw_bytes(call.args[0]) if call.args else b"", 0
    return Record("BytesIO", ("value", "position"), (facts.plain(value), facts.plain(position)))


def from_array(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad)`: the bytes are an array's, in the pickle."""
    data, kind, _, grad = nothing_more(call, 4)
    return PickledTensor(
        "strided",
        torch_dtype(kind),
        array_shape(data),
        (),
        0,
        None,
        requires_grad=boolean(grad),
        parts={"data": facts.number(data)},
    )


def from_tensor(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad)`."""
    data, _, _, grad = nothing_more(call, 4)
    return replace(inner_tensor(facts, data), requires_grad=boolean(grad))

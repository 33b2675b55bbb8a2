"""The case that the arithmetic on memory is done for, and how keys change it. Pure."""

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.model.anatomy import Memory
from shardscope.widgets.model_memory import Grid, Setting

if TYPE_CHECKING:
    from shardscope.engine.modelling import ModelOptions, Studied

Field = Literal["context", "batch", "dtype", "cache_dtype", "devices"]
DTYPES: Final = ("F32", "BF16", "F16", "F8_E4M3", "F8_E5M2", "I8", "I4", "F4")
"""As `shardscope model --dtype` takes them."""
CONTEXTS: Final = tuple(1 << bits for bits in range(9, 21))
"""Tokens, from 512 to a million."""
POWERS: Final = tuple(1 << bits for bits in range(11))
"""Of batches and of devices, from 1 to 1,024."""
FIRST: Final = 4_096
"""The context that keys begin with where none is declared."""
MOST: Final = 1 << 40
"""Tokens, at most: what `--context` takes."""
_GRID_DTYPES: Final = (("32 bits", "F32"), ("16 bits", "BF16"), ("8 bits", "I8"), ("4 bits", "I4"))
_GRID_DEVICES: Final = (1, 2, 4, 8)
_GRID_CONTEXTS: Final = (4_096, 32_768, 131_072)


class Case(Struct, frozen=True):
    """What weights and cache are counted for."""

    context: int | None = None
    """Null takes what the configuration declares."""
    batch: int = 1
    dtype: str = "BF16"
    cache_dtype: str = "BF16"
    devices: int = 1

    def options(self) -> "ModelOptions":
        """Return it as the engine takes it."""
        from shardscope.engine.modelling import ModelOptions

        return ModelOptions(
            (self.dtype,), self.context, batch=self.batch, cache_dtype=self.cache_dtype, devices=self.devices
        )

    def words(self) -> list[str]:
        """Return it in options of `shardscope model`: those that are not its defaults."""
        words = [] if self.dtype == "BF16" else ["--dtype", self.dtype]
        words += [] if self.context is None else ["--context", str(self.context)]
        words += [] if self.batch == 1 else ["--batch", str(self.batch)]
        words += [] if self.cache_dtype == "BF16" else ["--cache-dtype", self.cache_dtype]
        return words if self.devices == 1 else [*words, "--devices", str(self.devices)]


def stepped(case: Case, field: Field, by: int, declared: int | None) -> Case:
    """Return the next case, or the one before: types go around, counts stop at their ends."""
    match field:
        case "dtype" | "cache_dtype":
            at = (DTYPES.index(getattr(case, field)) + by) % len(DTYPES)
            return replace(case, **{field: DTYPES[at]})
        case "batch" | "devices":
            return replace(case, **{field: _next(POWERS, getattr(case, field), by)})
    steps = CONTEXTS if declared is None else tuple(sorted({*CONTEXTS, declared}))
    now = case.context if case.context is not None else declared
    context = FIRST if now is None else _next(steps, now, by)
    return replace(case, context=None if context == declared else context)


def _next(steps: tuple[int, ...], now: int, by: int) -> int:
    """Return the step above or below a number, which may be none itself."""
    at = bisect_left(steps, now)
    if by > 0:
        at += at < len(steps) and steps[at] == now
        return steps[at] if at < len(steps) else now
    return steps[at - 1] if at else now


def typed(text: str) -> int | str:
    """Return the number of tokens that a text means, `32k` and `32,768` alike, or what is wrong with it."""
    plain = text.strip().lower().replace(",", "").replace("_", "")
    factor = {"k": 1 << 10, "m": 1 << 20}.get(plain[-1:], 1)
    digits = plain[:-1] if factor > 1 else plain
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 13):
        return "A number of tokens, such as 32768, 32,768 or 32k."
    count = int(digits) * factor
    return count if 1 <= count <= MOST else f"From 1 to {MOST:,} tokens."


def settings(case: Case, memory: Memory, keys: dict[Field, str]) -> tuple[Setting, ...]:
    """Return what a case is made of; `keys` are those that change it."""
    context = "not declared" if memory.context is None else f"{memory.context:,}"
    return (
        Setting(keys.get("context", ""), "context", context),
        Setting(keys.get("batch", ""), "batch", f"{case.batch:,}"),
        Setting(keys.get("dtype", ""), "weights", case.dtype),
        Setting(keys.get("cache_dtype", ""), "cache", case.cache_dtype),
        Setting(keys.get("devices", ""), "devices", f"{case.devices:,}"),
    )


def grids(studied: "Studied", case: Case) -> tuple[Grid, ...]:
    """Return the figures of other cases around this one: weights by type, cache by context, both by devices."""
    from shardscope.engine.modelling import ModelOptions

    columns = tuple("1 device" if each == 1 else f"{each} devices" for each in _GRID_DEVICES)
    by_devices = [
        studied.figures(ModelOptions(tuple(dtype for _, dtype in _GRID_DTYPES), devices=devices))
        for devices in _GRID_DEVICES
    ]
    labels = ("as stored", *(label for label, _ in _GRID_DTYPES))
    weights = tuple(
        (label, tuple(found.weights[row].bytes for found in by_devices)) for row, label in enumerate(labels)
    )
    found = [Grid("Weights, on each device", columns, weights)]
    declared = () if studied.sizes is None or studied.sizes.context is None else (studied.sizes.context,)
    rows = []
    for context in sorted({*_GRID_CONTEXTS, *declared}):
        wanted = replace(case, context=context)
        lines = [studied.figures(replace(wanted, devices=each).options()).cache for each in _GRID_DEVICES]
        rows.append((f"{context:,}", tuple(None if line is None else line.bytes for line in lines)))
    if any(cell is not None for _, cells in rows for cell in cells):
        title = f"Cache in {case.cache_dtype} by tokens, on each device"
        found.append(
            Grid(title if case.batch == 1 else f"{title}, batch {case.batch:,}", columns, tuple(rows))
        )
    return tuple(found)

"""What a model is made of, from a checkpoint: its tensors counted, held against its configuration, its packing and its adapter explained.

The tensors are those that inspection lists. Of the files beside them `config.json`, `params.json` and `adapter_config.json` are read
again, and the metadata of a GGUF file; nothing they name is followed.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.anatomy import adapters, architecture, counting, layers, packing
from shardscope.engine.anatomy.items import of_catalogue, of_table
from shardscope.engine.anatomy.memory import CACHE, DEFAULT, memory
from shardscope.engine.anatomy.rules import STACKS
from shardscope.engine.diffing.adapter import fits
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.model import schemas
from shardscope.engine.model.anatomy import Memory, ModelDocument, Packing, Sizes
from shardscope.engine.model.blocker import Fault, Finding, Param, blocker
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.config import AdapterFacts
from shardscope.engine.model.format_names import HEADERS_ONLY
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress, check
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import display_name
from shardscope.engine.parse import gguf, json
from shardscope.engine.parse.config import check_adapter_config, check_config
from shardscope.engine.parse.model_sizes import read_metadata, read_packing, read_params, read_sizes
from shardscope.engine.source.source import Source

CONFIG: Final = "config.json"
PARAMS: Final = "params.json"
ADAPTER: Final = "adapter_config.json"
_PARTS: Final = frozenset({"vllm_sharded_state"})
"""Formats whose tensors are parts that ranks hold, under the names of the whole."""
FRAGMENTS: Final = frozenset({"torch_dcp_safetensors", "composite"})
"""Formats whose headers describe fragments: the catalogue has whole tensors."""
_SEVERAL: Final = frozenset({"layout.weight_sets", "layout.composite", "layout.several_candidates"})


class ModelOptions(Struct, frozen=True):
    """What arithmetic is asked for."""

    dtypes: tuple[str, ...] = DEFAULT
    """Types that weights are counted in, beside the stored one: names of `anatomy.memory.WIDTHS`."""
    context: int | None = None
    """Tokens of one sequence; null takes what the configuration declares."""
    batch: int = 1
    """Sequences at one time."""
    cache_dtype: str = CACHE
    devices: int = 1


class Declared(Struct, frozen=True):
    """What the files beside the weights declare."""

    title: str | None = None
    file: str | None = None
    sizes: Sizes | None = None
    packing: Packing | None = None
    adapter: AdapterFacts | None = None


class Studied(Struct, frozen=True):
    """A model that was looked at once, with what its arithmetic needs: figures for another case are then a matter of microseconds."""

    document: ModelDocument
    """With the figures of `ModelOptions()`."""
    stored: int
    """Bytes of all tensors."""
    sizes: Sizes | None
    """What is declared."""

    def figures(self, options: ModelOptions) -> Memory:
        """Return the arithmetic for a case."""
        return memory(
            self.stored,
            self.document.parameters,
            self.sizes,
            dtypes=options.dtypes,
            context=options.context,
            batch=options.batch,
            cache_dtype=options.cache_dtype,
            devices=options.devices,
        )


def explain_model(
    path: str | os.PathLike[str],
    options: ModelOptions | None = None,
    *,
    base: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    decoding: Decoding | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> ModelDocument:
    """Return what the model at `path` is made of. `base` is the model that an adapter is for.

    Raises `Fault`: those of `inspect`; `Cancelled`.
    """

    def look(where: str | os.PathLike[str], *, with_catalogue: bool) -> Inspection:
        return inspect(
            where,
            limits=limits,
            digest="none",
            hf_cache=hf_cache,
            decoding=decoding,
            with_catalogue=with_catalogue,
            cancel=cancel,
            progress=progress,
        )

    found = look(path, with_catalogue=base is not None)
    if wants_catalogue(found):
        found = look(path, with_catalogue=True)
    other = None if base is None else look(base, with_catalogue=True)
    return describe_model(found, options, base=other, cancel=cancel)


def wants_catalogue(found: Inspection) -> bool:
    """Tell whether an inspection lists fragments, so that it has to be made again with its catalogue. Others would only take longer."""
    return found.catalogue is None and found.descriptor.classification.format in FRAGMENTS


def describe_model(
    found: Inspection,
    options: ModelOptions | None = None,
    *,
    base: Inspection | None = None,
    cancel: threading.Event | None = None,
) -> ModelDocument:
    """Return what the model of an inspection is made of. `base` was inspected with its catalogue. Raises `Cancelled`."""
    studied = study_model(found, base=base, cancel=cancel)
    return studied.document if options is None else replace(studied.document, memory=studied.figures(options))


def study_model(
    found: Inspection, *, base: Inspection | None = None, cancel: threading.Event | None = None
) -> Studied:
    """Look at the model of an inspection once, for figures of any case. `base` was inspected with its catalogue. Raises `Cancelled`."""
    check(cancel)
    descriptor = found.descriptor
    tensors = _tensors(found)
    items = [*of_catalogue(tensors)] if tensors else of_table(found.tensors)
    declared = _declared(found)
    check(cancel)
    packed = packing.find(items, declared.packing)
    stacks = layers.stacks(items)
    own = _own(stacks)
    weights = architecture.weights(items, packed.weights, packed.elements.keys() | packed.companions)
    parts = descriptor.classification.format in _PARTS or any(
        tensor.part_of is not None for tensor in tensors
    )
    told = any(tensor.role == "frozen" for tensor in tensors)
    counts = counting.parameters(items, packed.elements, packed.companions, declared.sizes, told=told)
    stored = sum(item.bytes for item in items if item.alias_of is None)
    fit = _fit(found, base)
    facts = declared.adapter if _adapters(found) < 2 else None  # no configuration is that of several
    findings = [
        *_about(found, len(items)),
        *((Finding("model.parts"),) if parts else ()),
        *(
            each
            for stack in stacks
            for each in layers.check_stack(stack, declared.sizes if stack is own else None)
        ),
        *(
            architecture.check_sizes(declared.sizes, weights, own)
            if declared.sizes is not None and not parts
            else ()
        ),
        *packed.findings,
        *adapters.check_adapter(items, facts),
        *fit.findings,
    ]
    check(cancel)
    adapter = adapters.adapter(items, facts, fitting=fit.fitting, unfitting=fit.unfitting)
    document = ModelDocument(
        schema=schemas.MODEL,
        format=descriptor.classification.format,
        title=declared.title,
        configuration=declared.file,
        tensors=len(items),
        opaque_files=descriptor.tensors.files_opaque,
        parameters=counts,
        dtypes=counting.dtypes(items),
        families=tuple(layers.families(stacks)),
        facts=architecture.facts(declared.sizes, weights, own) if adapter is None and not parts else (),
        packed=packed.groups,
        declared_packing=_packing_words(declared.packing),
        adapter=adapter,
        memory=memory(stored, counts, declared.sizes),
        findings=tuple(blocker(each) for each in findings),
    )
    return Studied(document, stored, declared.sizes)


def _tensors(found: Inspection) -> tuple[LogicalTensor, ...]:
    """Return the catalogue's tensors, whole; none where the rows of the table say more: it has types that safetensors has not."""
    if found.catalogue is None or found.descriptor.classification.format in HEADERS_ONLY:
        return ()
    return found.catalogue.tensors


def _own(stacks: Sequence[layers.Stack]) -> layers.Stack | None:
    """Return the stack that a configuration counts: the one of a known name, the longest where there are several."""
    known = [stack for stack in stacks if stack.prefix in STACKS]
    return max(known, key=lambda stack: len(stack.layers), default=None)


def _about(found: Inspection, tensors: int) -> Iterator[Finding]:
    if any(item.code in _SEVERAL for item in found.descriptor.blockers) or _adapters(found) > 1:
        yield Finding("model.several")
    errors = [item.code for item in found.descriptor.blockers if item.in_the_way]
    if errors:
        yield Finding("model.damaged", {"count": len(errors), "first": errors[0]})
    opaque = found.descriptor.tensors.files_opaque
    if opaque and tensors:
        yield Finding("model.partial", {"files": opaque})


def _adapters(found: Inspection) -> int:
    """Return how many adapters stand in one folder or below it: peft saves each further one in a folder of its name."""
    return sum(part.kind == "adapter" for part in found.descriptor.components)


class _Fit(Struct, frozen=True):
    fitting: int | None = None
    unfitting: int | None = None
    findings: tuple[Finding, ...] = ()


def _fit(found: Inspection, base: Inspection | None) -> _Fit:
    """Return how many tensors of an adapter fit a base, by its names and shapes."""
    if base is None or base.catalogue is None or found.catalogue is None:
        return _Fit()
    ours = found.catalogue.tensors
    held = list(fits(ours, base.catalogue.tensors))
    wrong = [each for each in held if each.state != "same"]
    findings: tuple[Finding, ...] = ()
    if wrong:
        params: dict[str, Param] = {
            "count": len(wrong),
            "tensor": ours[wrong[0].tensor].name,
            "reason": wrong[0].note or "unknown",
        }
        findings = (Finding("model.adapter_base", params),)
    return _Fit(len(held) - len(wrong), len(wrong), findings)


def _packing_words(declared: Packing | None) -> str | None:
    if declared is None:
        return None
    words = [declared.method or "a method without a name"]
    if declared.bits is not None:
        words.append(f"{declared.bits:,} bits")
    if declared.group is not None:
        words.append("a row" if declared.group == -1 else f"groups of {declared.group:,}")
    if declared.block is not None:
        words.append(f"blocks of {declared.block[0]:,}x{declared.block[1]:,}")
    if declared.left_out:
        words.append(f"{declared.left_out:,} modules left out")
    return ", ".join(words)


def _declared(found: Inspection) -> Declared:
    """Return what configurations beside the weights declare; one that cannot be read declares nothing, as inspection has said."""
    beside = _beside(found)
    with Source(found.path, limits=found.descriptor.limits, hf_cache=found.hf_cache) as source:
        reading = _Reading(source, found.descriptor.limits)
        adapter = reading.adapter(beside[ADAPTER]) if ADAPTER in beside else None
        if CONFIG in beside and (known := reading.config(beside[CONFIG], adapter)) is not None:
            return known
        if PARAMS in beside and (value := reading.json(beside[PARAMS])) is not None:
            return Declared(None, beside[PARAMS].text, read_params(value), None, adapter)
        ggufs = [entry for entry in found.inventory.files if entry.name.casefold().endswith(".gguf")]
        if ggufs and (known := reading.gguf(ggufs[0])) is not None:
            return known
    return Declared(adapter=adapter, sizes=_of_save(found))


def _of_save(found: Inspection) -> Sizes | None:
    """Return the sizes that the save itself declares, where a family knows them."""
    model = found.model
    if model is None:
        return None
    return Sizes(
        layers=model.layers,
        heads=model.heads,
        kv_heads=model.groups,
        head=model.head_size,
        value_head=model.head_size,
        experts=model.experts,
        vocabulary=model.vocabulary,
    )


def _beside(found: Inspection) -> dict[str, Entry]:
    """Return the configurations in the folder of the weights, and those of the nearest folder above it."""
    weights = next((part.files[0] for part in found.descriptor.components if part.files), "")
    by_text = {entry.text: entry for entry in found.inventory.files}
    held: dict[str, Entry] = {}
    folder = weights.rpartition("/")[0]
    while True:
        for name in (CONFIG, PARAMS, ADAPTER):
            entry = by_text.get(f"{folder}/{name}" if folder else name)
            if entry is not None:
                held.setdefault(name, entry)
        if not folder:
            return held
        folder = folder.rpartition("/")[0]


def packing_of(found: Inspection) -> Packing | None:
    """Return what the configuration beside the weights declares of quantisation; null where it declares nothing."""
    return _declared(found).packing


class _Reading:
    """Configurations of one source, read within its limits."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source = source
        self._limits = limits

    def json(self, entry: Entry) -> dict[str, Any] | None:
        """Return an object; null where the file holds none."""
        with suppress(Fault), self._source.open(entry) as reader:
            value = json.read_json(reader, self._limits).value
            return value if isinstance(value, dict) else None
        return None

    def config(self, entry: Entry, adapter: AdapterFacts | None) -> Declared | None:
        """Return what a `config.json` declares."""
        value = self.json(entry)
        if value is None:
            return None
        facts = check_config(value, self._limits)
        title = facts.architectures[0] if facts.architectures else facts.model_type
        return Declared(title, entry.text, read_sizes(value), read_packing(value), adapter)

    def adapter(self, entry: Entry) -> AdapterFacts | None:
        """Return what an `adapter_config.json` declares."""
        value = self.json(entry)
        return None if value is None else check_adapter_config(value)

    def gguf(self, entry: Entry) -> Declared | None:
        """Return what the metadata of a GGUF file declares."""
        with suppress(Fault), self._source.open(entry) as reader:
            header = gguf.read_header(reader, self._limits)
            title = header.metadata.get("general.architecture")
            words = display_name(title, 60) if isinstance(title, str) else None
            return Declared(words, entry.text, read_metadata(header.metadata))
        return None

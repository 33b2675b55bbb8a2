"""How far one checkpoint can go on the way to a loaded model, and what stops the next step.

The six steps stand in a fixed order. Reading with a producer's own code stays unavailable, whatever is asked for: what is opaque is
read as data, when a person asks for it. Adapting and materializing are experimental: they are tested, and qualified for no
producer.
"""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.model.blocker import Blocker, Blocks, Severity
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import AdapterMatch, AdapterStatus, Trust
from shardscope.engine.model.evidence import Classification, Status
from shardscope.engine.model.format_names import HEADERS_ONLY, NOT_CONVERTED
from shardscope.engine.model.state import Presence, StateScope
from shardscope.engine.model.tensors import TensorSummary
from shardscope.engine.model.text import counted
from shardscope.engine.model.workflow import Step, StepName, StepState, Workflow

CANONICAL: Final = "hf_safetensors"
"""The format that the stock Hugging Face loader reads as it is."""
ADAPTER: Final = "peft_adapter"
COMPOSITE: Final = "composite"
_EXAMINED: Final = "names, JSON, headers and containers were examined"
_UNKNOWN: Final = ("layout.ambiguous", "layout.several_candidates", "layout.unknown", "layout.empty")


def workflow_of(
    classification: Classification,
    state: StateScope,
    tensors: TensorSummary,
    trust: Trust,
    adapter: AdapterMatch,
    blockers: Sequence[Blocker],
    *,
    decoded: DecodedPlane | None = None,
) -> Workflow:
    """Return the six steps for one checkpoint. `blockers` are ordered, the worst first; `decoded`: what decoding read, where it was asked for."""
    readable = decoded is not None or state.weights.presence is Presence.PRESENT
    if classification.status is not Status.CONDITIONAL:
        steps = _nothing_beyond(classification, blockers)
    else:
        steps = (
            Step(StepName.INSPECT, StepState.CURRENT, None, _EXAMINED),
            _escalate(classification.format, state, trust, blockers, decoded=decoded),
            _adapt(classification.format, adapter, readable=readable),
            _validate(tensors, trust, blockers, decoded=decoded is not None),
            _materialize(classification.format, blockers, readable=readable),
            _load(classification.format, blockers),
        )
    ends = (StepState.STOPPED, StepState.NOT_AVAILABLE, StepState.ON_REQUEST)
    return Workflow(steps, next((step.name for step in steps if step.state in ends), None))


def _nothing_beyond(classification: Classification, blockers: Sequence[Blocker]) -> tuple[Step, ...]:
    """Return the steps where inspection leaves no checkpoint to take the later ones with."""
    first, *rest = StepName
    if classification.status is Status.REFUSED:
        code = _first(blockers, Blocks.INSPECT)
        inspect = Step(first, StepState.STOPPED, code, "what was found cannot be relied on")
        says = "waits for inspection"
    else:
        code = next((item.code for item in blockers if item.code in _UNKNOWN), None)
        inspect = Step(first, StepState.CURRENT, None, _EXAMINED)
        says = "waits for one known layout"
    return (inspect, *(Step(name, StepState.STOPPED, code, says) for name in rest))


def _escalate(
    format_name: str,
    state: StateScope,
    trust: Trust,
    blockers: Sequence[Blocker],
    *,
    decoded: DecodedPlane | None,
) -> Step:
    opaque = len(trust.opaque_files)
    left = counted(opaque, "opaque file")
    if decoded is not None and opaque and state.weights.presence is not Presence.PRESENT:
        says = f"{left} could not be read as data"
        return Step(StepName.ESCALATE, StepState.STOPPED, _any_code(blockers), says)
    if decoded is not None and decoded.streams:
        says = "pickles were read as data by a contained worker, in this run alone"
        return Step(StepName.ESCALATE, StepState.CURRENT, None, says)
    if not opaque:
        return Step(StepName.ESCALATE, StepState.NOT_NEEDED, None, "nothing here is opaque")
    if state.weights.presence is Presence.PRESENT:
        return Step(StepName.ESCALATE, StepState.NOT_NEEDED, None, f"weights are readable; {left} beside")
    if format_name in NOT_CONVERTED:
        says = f"{left}; nothing here reads more of the format"
        return Step(StepName.ESCALATE, StepState.NOT_AVAILABLE, _opaque_code(blockers), says)
    says = f"{left}; --decode reads pickles as data, for one run"
    return Step(StepName.ESCALATE, StepState.ON_REQUEST, _opaque_code(blockers), says)


def _adapt(format_name: str, adapter: AdapterMatch, *, readable: bool) -> Step:
    if format_name == CANONICAL:
        return Step(StepName.ADAPT, StepState.NOT_NEEDED, None, "whole named tensors, canonical as they are")
    if format_name == ADAPTER:
        return Step(StepName.ADAPT, StepState.NOT_NEEDED, None, "whole named tensors of an adapter")
    if format_name == COMPOSITE:
        says = "one part at a time: inspect its folder"
        return Step(StepName.ADAPT, StepState.NOT_AVAILABLE, "layout.composite", says)
    if format_name in HEADERS_ONLY:
        says = "listed from headers; nothing here converts the format"
        return Step(StepName.ADAPT, StepState.NOT_AVAILABLE, None, says)
    if format_name in NOT_CONVERTED:
        return Step(StepName.ADAPT, StepState.NOT_AVAILABLE, None, "the format is recognised only")
    if adapter.status is AdapterStatus.AMBIGUOUS:
        says = "a capability was named; no adapter is here"
        return Step(StepName.ADAPT, StepState.NOT_AVAILABLE, "capability.ambiguous", says)
    if readable:
        says = "by the maps of its own files; no adapter is qualified for what wrote it"
        return Step(StepName.ADAPT, StepState.EXPERIMENTAL, None, says)
    return Step(StepName.ADAPT, StepState.ON_REQUEST, None, "waits for decoding")


def _validate(tensors: TensorSummary, trust: Trust, blockers: Sequence[Blocker], *, decoded: bool) -> Step:
    broken = _first(blockers, Blocks.CONVERT, errors_only=True) or _first(
        blockers, Blocks.LOAD, errors_only=True
    )
    if broken is not None:
        return Step(StepName.VALIDATE, StepState.STOPPED, broken, "files or shapes do not hold")
    if decoded and tensors.count:
        says = f"shapes, ranges and coverage hold for {counted(tensors.count, 'tensor')}"
        return Step(StepName.VALIDATE, StepState.CURRENT, None, says)
    if tensors.files_examined:
        says = f"shapes and ranges hold in {counted(tensors.files_examined, 'header')}"
        return Step(StepName.VALIDATE, StepState.CURRENT, None, says)
    opaque = _opaque_code(blockers)
    if trust.opaque_files and opaque is not None:
        return Step(StepName.VALIDATE, StepState.STOPPED, opaque, "the tensors are opaque")
    return Step(StepName.VALIDATE, StepState.NOT_AVAILABLE, None, "recognised only; tensors are not read")


def _materialize(format_name: str, blockers: Sequence[Blocker], *, readable: bool) -> Step:
    if format_name == CANONICAL:
        return Step(StepName.MATERIALIZE, StepState.NOT_NEEDED, None, "it is canonical already")
    if format_name == ADAPTER:
        return Step(StepName.MATERIALIZE, StepState.NOT_NEEDED, None, "an adapter stays an adapter")
    if format_name in NOT_CONVERTED or format_name == COMPOSITE:
        return Step(StepName.MATERIALIZE, StepState.NOT_AVAILABLE, None, "nothing here converts it as it is")
    code = _first(blockers, Blocks.CONVERT, errors_only=True)
    if code is not None:
        return Step(StepName.MATERIALIZE, StepState.STOPPED, code, "nothing would be written")
    if readable:
        says = "shardscope convert: staged, verified, and there whole or not at all"
        return Step(StepName.MATERIALIZE, StepState.EXPERIMENTAL, None, says)
    return Step(StepName.MATERIALIZE, StepState.ON_REQUEST, None, "waits for decoding")


def _load(format_name: str, blockers: Sequence[Blocker]) -> Step:
    code = _first(blockers, Blocks.LOAD)
    if format_name not in (CANONICAL, ADAPTER):
        says = "it is not canonical safetensors"
        return Step(StepName.LOAD, StepState.STOPPED if code else StepState.NOT_AVAILABLE, code, says)
    if code is not None:
        return Step(StepName.LOAD, StepState.STOPPED, code, "before the loader")
    return Step(StepName.LOAD, StepState.CURRENT, None, "by the stock Hugging Face loader")


def _first(blockers: Sequence[Blocker], what: Blocks, *, errors_only: bool = False) -> str | None:
    return next(
        (
            item.code
            for item in blockers
            if what in item.blocks and (item.severity is Severity.ERROR or not errors_only)
        ),
        None,
    )


def _any_code(blockers: Sequence[Blocker]) -> str | None:
    """Return the code of what stopped decoding: the first error, or that files are opaque."""
    return next((item.code for item in blockers if item.severity is Severity.ERROR), _opaque_code(blockers))


def _opaque_code(blockers: Sequence[Blocker]) -> str | None:
    return next((item.code for item in blockers if item.code.startswith("trust.opaque")), None)

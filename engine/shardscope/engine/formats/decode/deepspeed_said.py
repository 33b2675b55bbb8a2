"""What the model states say of how tensors are cut: categories and affine maps by stage, placements of experts."""

from collections.abc import Iterable, Mapping

from shardscope.engine.formats.decode.deepspeed_states import ModelStates, there
from shardscope.engine.formats.decode.plain import plain
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.geometry.constructors.experts import Placement
from shardscope.engine.geometry.interchange.expert_layers import read_expert_layers
from shardscope.engine.geometry.interchange.universal import unused
from shardscope.engine.geometry.interchange.universal_info import UniversalInfo, read_universal
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import Number

PACKED = ("w1", "w2", "w3")
"""The packed tensors of a layer of experts (deepspeed `module_inject/auto_ep_layer.py`)."""


def read_infos(decoder: Decoder, by_stage: Mapping[int, Iterable[ModelStates]]) -> dict[int, UniversalInfo]:
    """Return `universal_checkpoint_info` of each pipeline stage that has one; what cannot be read or differs is reported."""
    found = {}
    for stage, ranks in by_stage.items():
        said: list[tuple[ModelStates, object]] = []
        for states in ranks:
            number = there(states.tree, states.tree.get(states.tree.root, "universal_checkpoint_info"))
            try:
                value = plain(states.tree, number, "universal_checkpoint_info")
            except Fault as fault:
                decoder.probe.note(fault.finding, states.file.entry)
                continue
            if isinstance(value, dict):
                # Where experts are is said for each rank on its own.
                said.append((states, {key: one for key, one in value.items() if key != "ds_autoep_layers"}))
        if not said:
            continue
        first, value = said[0]
        if any(other != value for _, other in said[1:]):
            decoder.probe.report("deepspeed.info_differs", first.file.entry, stage=stage)
            continue
        try:
            found[stage] = read_universal(value)
        except Fault as fault:
            decoder.probe.note(fault.finding, first.file.entry)
    return found


def read_placements(decoder: Decoder, states: ModelStates) -> dict[str, Placement]:
    """Return the placements of packed expert tensors by their names; what cannot be read is reported."""
    number = _layers(states)
    if number is None:
        return {}
    try:
        layers = read_expert_layers(plain(states.tree, number, "ds_autoep_layers"))
    except Fault as fault:
        decoder.probe.note(fault.finding, states.file.entry)
        return {}
    return {f"{prefix}.{part}": layer.placement for prefix, layer in layers.items() for part in PACKED}


def _layers(states: ModelStates) -> Number | None:
    """Return where the layers of experts stand, under either of the names that were in use."""
    for path in (
        ("ds_autoep_layers",),
        ("autoep_layers",),
        ("universal_checkpoint_info", "ds_autoep_layers"),
    ):
        number = there(states.tree, states.tree.get(states.tree.root, *path))
        if number is not None:
            return number
    return None


def report_unused(
    decoder: Decoder, infos: Mapping[int, UniversalInfo], names: Iterable[str], first: ModelStates
) -> None:
    """Report the patterns that match no tensor of the save, as DeepSpeed's converter refuses them."""
    listed = list(names)
    seen = set()
    for info in infos.values():
        for finding in unused(info, listed):
            if finding.params["pattern"] not in seen:
                seen.add(finding.params["pattern"])
                decoder.probe.note(finding, first.file.entry)

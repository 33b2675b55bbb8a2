"""DeepSpeed saves decoded: ZeRO stage 0 to 3, pipelines, experts, automatic tensor parallelism.

Weights are listed from the fp32 masters, states of the optimizer as `exp_avg::name`. What the metadata does not let be put
together is refused by name.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_experts import check_experts
from shardscope.engine.formats.decode.deepspeed_facts import facts_of
from shardscope.engine.formats.decode.deepspeed_gather import Gathered, Item, gather
from shardscope.engine.formats.decode.deepspeed_oracle import twins_of
from shardscope.engine.formats.decode.deepspeed_partitions import WEIGHT
from shardscope.engine.formats.decode.deepspeed_place import BY_CONVENTION, CutUnknown, Layout, Placed, place
from shardscope.engine.formats.decode.deepspeed_said import read_infos, read_placements, report_unused
from shardscope.engine.formats.decode.deepspeed_save import Save, read_save
from shardscope.engine.formats.decode.twins import checked
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.deepspeed_names import DeepSpeedFiles, sorted_files
from shardscope.engine.formats.deepspeed_zero import OFFLOADED
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.oracle import Compared, Oracle

_OWN_PRECISION: Final = "in the precision of the module"
_NAMED: Final = 16
"""Tensors that are named one by one where they are refused for the same reason."""


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of one save."""
    files = sorted_files(claim.files)
    if _contradictory(files) or OFFLOADED in decoder.probe.folder(claim.folder).folders:
        return facts  # reported in the safe plane, with the code of what it is
    save = read_save(decoder, files)
    if save is not None:
        what = save.any.nvme
        if what is not None:
            decoder.probe.report("deepspeed.on_nvme", save.any.file.entry, what=what)
            save = None
    compared = None
    if save is not None:
        compared = _list(decoder, save)
        _settle_layers(decoder, claim, save)
    read = {use.entry.path for use in decoder.used}
    opaque = tuple(entry for entry in facts.opaque if entry.path not in read)
    decoder.settle(claim, "trust.opaque_pickle")
    report_opaque(decoder.probe, opaque)
    facts = replace(facts, opaque=opaque)
    return facts if save is None else facts_of(facts, files, save, compared)


def _contradictory(files: DeepSpeedFiles) -> bool:
    """Tell whether names alone say that two saves lie over each other."""
    places = [
        (file.at, field) for field in ("model", "partitioned", "optimizer") for file in getattr(files, field)
    ]
    return (
        (bool(files.model) and bool(files.partitioned))
        or len({file.prefix for file in files.optimizer}) > 1
        or len(set(places)) != len(places)
    )


def _list(decoder: Decoder, save: Save) -> Compared | None:
    """Add the tensors of a save to the catalogue; return how the masters compare with the module, where they can."""
    first = save.any
    placements = read_placements(decoder, first)
    stages = {
        stage: [
            states
            for tp in range(save.degrees.tp)
            if (states := save.first(stage * save.degrees.tp + tp)) is not None
        ]
        for stage in range(save.degrees.pp)
    }
    infos = read_infos(decoder, stages)
    found = gather(decoder, save, placements)
    if save.degrees.tp > 1:
        report_unused(decoder, infos, found.items, first)
    _report(decoder, "deepspeed.slice_mappings", save, found.misplaced)
    _report(decoder, "deepspeed.extra_states", save, found.extra)
    listing = _Listing(decoder, save, Layout(save.degrees, infos, placements))
    listing.add_all(found)
    check_experts(decoder, (each for each in decoder.tensors if each.component == "model"), first.file.entry)
    _add_plain_states(decoder, save)
    twins = twins_of(decoder, save, found)
    if not twins:
        return None
    return checked(decoder, Oracle("deepspeed.masters_differ", first.file.entry.text, tuple(twins)))


class _Listing:
    """Adds tensors one by one, and gathers what is said once for all of them."""

    def __init__(self, decoder: Decoder, save: Save, layout: Layout) -> None:
        self.decoder = decoder
        self.save = save
        self.layout = layout
        self.placed: dict[str, Placed] = {}
        self.refusals: dict[str, list[Finding]] = {}

    def add_all(self, found: Gathered) -> None:
        """Add the model's tensors in the order of the module, then the states of the optimizer."""
        unknown: list[str] = []
        refused: set[str] = set()
        for name, item in found.items.items():
            if item.alias_of is not None or not item.shards.get(WEIGHT):
                continue
            where = self._placed(name, item, WEIGHT, unknown)
            if where is None:
                refused.add(name)
            else:
                self.placed[name] = where
        self._refuse()
        _report(self.decoder, "deepspeed.cut_unknown", self.save, unknown, ranks=self.save.degrees.tp)
        by_convention = [
            name
            for name, where in self.placed.items()
            if where.translation is not None and where.translation.decided == BY_CONVENTION
        ]
        _report(self.decoder, "deepspeed.cut_by_convention", self.save, by_convention)
        absent = [
            name
            for name, item in found.items.items()
            if name not in self.placed and name not in refused and item.alias_of is None
        ]
        _report(self.decoder, "deepspeed.tensor_absent", self.save, absent)
        for name, item in found.items.items():
            self._add_model(name, item)
        self._add_states(found)
        own = [name for name, item in found.items.items() if not item.exact and item.role != "buffer"]
        _report(self.decoder, "deepspeed.module_precision", self.save, own)

    def _placed(self, name: str, item: Item, state: str, unknown: list[str]) -> Placed | None:
        try:
            where = place(
                name,
                self.layout,
                item.shards[state],
                copies=item.role == "buffer",
                single=not item.exact,
            )
        except CutUnknown:
            unknown.append(name)
            return None
        except Fault as fault:
            if state == WEIGHT:
                self.refusals.setdefault(fault.finding.code, []).append(fault.finding)
            return None
        if state == WEIGHT and where.translation is not None:
            for finding in where.translation.warnings:
                self.decoder.probe.note(finding, self.save.any.file.entry)
        return where

    def _refuse(self) -> None:
        """Report what was refused, each tensor by name; of very many alike the first, and how many more."""
        entry = self.save.any.file.entry
        for code, findings in self.refusals.items():
            for finding in findings[:_NAMED]:
                self.decoder.probe.note(finding, entry)
            if len(findings) > _NAMED:
                self.decoder.probe.report(
                    "deepspeed.refused_alike", entry, count=len(findings) - _NAMED, refusal=code
                )

    def _add_model(self, name: str, item: Item) -> None:
        where = self.placed.get(item.alias_of or name)
        if where is None:
            return
        notes = []
        if item.alias_of is None and not item.exact and item.role != "buffer":
            notes.append(_OWN_PRECISION)
        translation = where.translation
        if translation is not None and translation.decided:
            notes.append(translation.decided)
        padded = translation.padded_rows if translation is not None else None
        self.decoder.add(
            LogicalTensor(
                name=name,
                dtype=where.dtype,
                shape=where.shape,
                map=where.map,
                mesh=where.mesh,
                fragments=where.fragments,
                role=item.role,
                alias_of=item.alias_of,
                stored_shape=None if padded is None else (padded, *where.shape[1:]),
                note="; ".join(notes) or None,
            )
        )

    def _add_states(self, found: Gathered) -> None:
        scaled = []
        for name, item in found.items.items():
            model = self.placed.get(name)
            if model is None or len(item.shards) < 2:
                continue
            if model.scaled:
                scaled.append(name)
                continue
            for state in item.shards:
                where = None if state == WEIGHT else self._placed(name, item, state, [])
                if where is not None:
                    self.decoder.add(
                        LogicalTensor(
                            name=f"{state}::{name}",
                            dtype=where.dtype,
                            shape=where.shape,
                            map=where.map,
                            mesh=where.mesh,
                            fragments=where.fragments,
                            component="optimizer",
                            role="state",
                            apart=True,
                        )
                    )
        _report(self.decoder, "deepspeed.scaled_states", self.save, scaled)


def _add_plain_states(decoder: Decoder, save: Save) -> None:
    """Add the optimizer's tensors of a save without partitions: they go by numbers, and stay named by them."""
    for at, states in sorted(save.states.items()):
        if states.optimizer is None:
            continue
        prefix = "" if len(save.states) == 1 else f"mp_rank_{at[0]:02d}."
        for path, leaf in states.tree.leaves(states.optimizer):
            tensor = states.tree.tensor(leaf)
            fragment = None if tensor is None else decoder.fragment(states.file, tensor)
            if tensor is not None and fragment is not None:
                name = prefix + ".".join(("optimizer", *map(str, path)))
                shape = tuple(tensor.shape)
                state = whole(name, tensor.dtype, shape, fragment, component="optimizer", role="state")
                decoder.add(replace(state, apart=True))


def _report(decoder: Decoder, code: str, save: Save, names: Iterable[str], **params: int) -> None:
    """Report something of several tensors once, with the first of them."""
    listed = list(dict.fromkeys(names))
    if listed:
        decoder.probe.report(code, save.any.file.entry, count=len(listed), first=listed[0], **params)


def _settle_layers(decoder: Decoder, claim: Claim, save: Save) -> None:
    """Take the doubt about a gap between layer files back, where every trained parameter of a layer has its file.

    Stage 0 names no trained parameters anywhere: there the doubt stays.
    """
    numbers = {str(layer.at[0]) for layer in save.layers}
    trained = {name.partition(".")[0] for states in save.states.values() for name in states.names}
    if save.layers and trained and {number for number in trained if number.isdigit()} <= numbers:
        decoder.settle(claim, "deepspeed.layer_gap")

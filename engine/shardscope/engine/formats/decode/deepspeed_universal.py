"""DeepSpeed Universal checkpoints decoded: a tensor in each state file, held against the model states that were copied beside them.

The tree gives weights and moments. The copies give shapes that flat files lost, the types of buffers that the converter turned
into floats, ties, and frozen tensors that it left out; and they are the witness: a converter that wrote fewer rows or other
values than the module has is found out here.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_copies import Copies, read_copies
from shardscope.engine.formats.decode.deepspeed_facts import compared_evidence, examined, producers, scope_of
from shardscope.engine.formats.decode.deepspeed_payload import Payload, read_payload
from shardscope.engine.formats.decode.deepspeed_place import Placed
from shardscope.engine.formats.decode.twins import EXACT, checked, twin
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.deepspeed_universal import WEIGHT, Tree, tree_in
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.oracle import Compared, Oracle, Twin
from shardscope.engine.model.piece import ONE, Lowered
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted

_STEP: Final = "step"
_SHOWN: Final = 8


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of a Universal checkpoint."""
    folder = decoder.probe.folder(claim.folder)
    tree = tree_in(decoder.probe, folder)
    copies = read_copies(decoder, claim)
    listing = _Listing(decoder, tree, copies)
    listing.add_all()
    if tree.optimizer is not None:
        decoder.torch(tree.optimizer)
    compared = None
    if listing.twins:
        oracle = Oracle("deepspeed.universal_values", listing.tree_name, tuple(listing.twins))
        compared = checked(decoder, oracle)
    _settle_moments(decoder, claim, listing)
    read = {use.entry.path for use in decoder.used}
    opaque = tuple(entry for entry in facts.opaque if entry.path not in read)
    decoder.settle(claim, "trust.opaque_pickle")
    report_opaque(decoder.probe, opaque)
    return _facts(facts, opaque, listing, compared)


class _Files(Struct, frozen=True):
    """The files of one parameter, decoded."""

    weight: Payload | None
    states: dict[str, Payload]


class _Listing:
    """Adds the tensors of the tree, and of the copies what the tree lacks."""

    def __init__(self, decoder: Decoder, tree: Tree, copies: Copies) -> None:
        self.decoder = decoder
        self.tree = tree
        self.copies = copies
        self.files: dict[str, _Files] = {}
        self.twins: list[Twin] = []
        self.borrowed: list[str] = []

    def add_all(self) -> None:
        """Add the model's tensors in the order of the module, then those that only the tree has, then moments and steps."""
        for number, (name, held) in enumerate(self.tree.parameters.items()):
            self.decoder.probe.checkpoint("decode", number, len(self.tree.parameters))
            self.files[name] = self._read(held)
        order = [*self.copies.names, *(name for name in self.files if name not in self.copies.names)]
        unknown = [name for name in order if self.copies.names and name not in self.copies.names]
        for name in order:
            self._add_model(name)
        for name in order:
            self._add_states(name)
        self._say("deepspeed.universal_copies", self.borrowed)
        self._say("deepspeed.universal_unknown", unknown)

    def _read(self, held: dict[str, Entry]) -> _Files:
        found: dict[str, Payload] = {}
        for name, entry in held.items():
            payload = read_payload(self.decoder, entry)
            if payload is not None:
                found[name.removesuffix(".pt")] = payload
        weight = found.pop(WEIGHT.removesuffix(".pt"), None)
        return _Files(weight, found)

    def _add_model(self, name: str) -> None:
        target = self.copies.aliases.get(name)
        role = self.copies.roles.get(name, "parameter")
        weight = self._weight(name)
        if weight is not None and role != "buffer":
            self._check(name, weight, target or name)
        if target is not None:
            source = self._tensor(target)
            if source is not None:
                self.decoder.add(replace(source, name=name, alias_of=target, role=role))
            return
        tensor = self._tensor(name)
        if tensor is not None:
            self.decoder.add(tensor)

    def _weight(self, name: str) -> Payload | None:
        files = self.files.get(name)
        return files.weight if files is not None else None

    def _tensor(self, name: str) -> LogicalTensor | None:
        """Return a tensor from its file, in the shape that it has as a whole; from the copies where the file is wrong.

        Buffers are always those of the copies: the converter makes floats of them.
        """
        weight = self._weight(name)
        shape = self.copies.shapes.get(name)
        placed = self.copies.placed.get(name)
        role = self.copies.roles.get(name, "parameter")
        if weight is not None and not (role == "buffer" and placed is not None):
            shaped = weight.shaped(shape) if shape is not None else self._unshaped(name, weight)
            if shaped is not None:
                note = "a vocabulary without its padding" if weight.vocabulary else None
                return whole(name, shaped.dtype, shaped.shape, shaped.fragment, role=role, note=note)
        if placed is None:
            return None
        self.borrowed.append(name)
        return _from_copies(name, placed, role)

    def _check(self, name: str, weight: Payload, target: str) -> None:
        """Hold a weight's file against the whole tensor that the copies make it, in shape and (later) in values."""
        shape = self.copies.shapes.get(target)
        if shape is None:
            return
        shaped = weight.shaped(shape)
        if shaped is None:
            self._report_shape(name, weight, shape)
        elif target in self.copies.placed and shaped.dtype == EXACT:
            self.twins += _twins(name, shaped.fragment, self.copies.placed[target])

    def _unshaped(self, name: str, weight: Payload) -> Payload | None:
        """Return a payload whose shape nothing else tells: its own, unless it may have been flattened."""
        if weight.bare and not self.copies.names:
            count = weight.shape[0] if weight.shape else 1
            self.decoder.probe.report("deepspeed.universal_flat", weight.entry, tensor=name, found=count)
            return None
        return weight

    def _report_shape(self, name: str, payload: Payload, shape: tuple[int, ...]) -> None:
        self.decoder.probe.report(
            "deepspeed.universal_shape",
            payload.entry,
            tensor=name,
            found=_shown(payload.shape),
            expected=_shown(shape),
        )

    def _add_states(self, name: str) -> None:
        files = self.files.get(name)
        for state, payload in files.states.items() if files is not None else ():
            shape = self.copies.shapes.get(name)
            shaped: Payload | None = payload
            if state != _STEP and shape is not None:
                shaped = payload.shaped(shape)
                if shaped is None:
                    self._report_shape(f"{state}::{name}", payload, shape)
            if shaped is not None:
                tensor = whole(
                    f"{state}::{name}",
                    shaped.dtype,
                    shaped.shape,
                    shaped.fragment,
                    component="other" if state == _STEP else "optimizer",
                    role="state",
                )
                self.decoder.add(replace(tensor, apart=True))

    def _say(self, code: str, names: Iterable[str]) -> None:
        listed = list(dict.fromkeys(names))
        if listed:
            self.decoder.probe.report(code, self.tree_name, count=len(listed), first=listed[0])

    @property
    def tree_name(self) -> str:
        """The folder, for messages."""
        return self.tree.path.decode("utf-8", "backslashreplace")


def _settle_moments(decoder: Decoder, claim: Claim, listing: _Listing) -> None:
    """Take the doubt about missing moments back, where the copies say that nothing was trained of what lacks them."""
    save = listing.copies.save
    if save is None:
        return
    trained = {name for states in save.states.values() for name in states.names}
    bare = {name for name, files in listing.files.items() if not files.states}
    if trained and trained.isdisjoint(bare):
        decoder.settle(claim, "deepspeed.universal_moments_absent")


def _from_copies(name: str, placed: Placed, role: str) -> LogicalTensor:
    return LogicalTensor(
        name=name,
        dtype=placed.dtype,
        shape=placed.shape,
        map=placed.map,
        mesh=placed.mesh,
        fragments=placed.fragments,
        role="buffer" if role == "buffer" else "frozen" if role == "frozen" else "parameter",
        note="from the copied model states",
    )


def _twins(name: str, exact: Fragment, placed: Placed) -> Iterator[Twin]:
    """Yield a whole tensor against the copies of its shards in the modules, piece by piece."""
    if exact.strides is not None or placed.dtype not in DTYPES:
        return
    width = DTYPES[placed.dtype].bits // 8
    if not isinstance(placed.map, Lowered):
        for fragment in placed.fragments:
            if fragment.shape == exact.shape and (pair := twin(name, exact, fragment, placed.dtype)):
                yield pair
        return
    by_label = {fragment.label: fragment for fragment in placed.fragments}
    for shard in placed.map.ranks:
        held = by_label.get(shard.rank)
        if held is None or held.strides is not None:
            continue
        for piece in shard.pieces:
            if piece.scale != ONE:
                continue
            one = replace(
                exact,
                shape=piece.shape,
                offset=exact.offset + piece.source.offset * 4,
                strides=piece.source.strides,
            )
            other = replace(
                held,
                shape=piece.shape,
                offset=held.offset + piece.dest.offset * width,
                strides=piece.dest.strides,
            )
            pair = twin(name, one, other, placed.dtype)
            if pair is not None:
                yield pair


def _shown(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a single element"


def _facts(facts: Facts, opaque: tuple[Entry, ...], listing: _Listing, compared: Compared | None) -> Facts:
    weights = [files.weight.entry.text for files in listing.files.values() if files.weight is not None]
    kinds = sorted({state for files in listing.files.values() for state in files.states})
    says = f"state files of {counted(len(listing.files), 'parameter')}: fp32, {', '.join(kinds)}"
    evidence = [Evidence(EvidenceKind.PICKLE, listing.tree_name, says, Basis.DECLARED)]
    if compared is not None:
        evidence.append(compared_evidence(listing.tree_name, compared))
    state = facts.state
    producer = facts.producer
    if listing.copies.save is not None:
        state = scope_of(state, listing.copies.save)
        producer = producers(listing.copies.save.states.values())
    if weights:
        part = StatePart(Presence.PRESENT, Basis.DECLARED, "fp32 weights, whole", tuple(weights[:_SHOWN]))
        state = replace(state, weights=part)
    if kinds:
        says = f"whole states of each parameter: {', '.join(kinds)}"
        state = replace(state, optimizer=StatePart(Presence.PRESENT, Basis.DECLARED, says))
    return replace(
        facts,
        confidence=Confidence.HIGH if weights else facts.confidence,
        evidence=(*facts.evidence, *evidence),
        components=examined(replace(facts, opaque=opaque)),
        producer=producer,
        state=state,
        opaque=opaque,
    )

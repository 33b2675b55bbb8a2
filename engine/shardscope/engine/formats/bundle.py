"""A bundle of this project's own: `shardscope-bundle.json` beside safetensors files of fragments.

It is what a reader of a producer's files writes that is no part of shardscope: names, shapes, maps and places, as data. The safe
plane reads all of it. Its form is `model/bundle.py`; docs/bundle.md describes it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shardscope.engine.formats import model_config
from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.scope import scope_of
from shardscope.engine.model.blocker import Fault, Finding, Severity
from shardscope.engine.model.bundle import FILE, SCHEMA, BundleDocument
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.descriptor import Component
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.shardmap import DeviceMesh
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.model.topology import Axis, Mesh, Topology

if TYPE_CHECKING:  # maps are loaded where there is a bundle
    from shardscope.engine.formats.bundle_tensors import Bundle

_REPORTED: Final = 24
_FAMILY: Final = SCHEMA.partition("/")[0] + "/"


class BundleFormat:
    """The family `bundle`."""

    name = "bundle"
    general = False
    hint = Hint(("json",))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim the document and the files that it names."""
        entry = folder.files.get(FILE)
        value = _value(probe, entry)
        schema = value.get("schema") if isinstance(value, dict) else None
        if entry is None or not isinstance(schema, str) or not schema.startswith(_FAMILY):
            return None
        evidence = Evidence(
            EvidenceKind.JSON, entry.text, f"its schema is {display_name(schema, 40)}", Basis.DECLARED
        )
        try:
            document = read_bundle(value, entry)
        except Fault:
            return Claim(self.name, folder.path, (entry,), Confidence.LOW, (evidence,))  # `describe` says why
        files = files_of(probe, folder.path, document)
        owned = {_below(folder.path, name.partition("/")[0]) for name in files if "/" in name}
        return Claim(
            self.name,
            folder.path,
            (entry, *files.values()),
            Confidence.MEDIUM,
            (evidence,),
            owned=tuple(sorted(owned)),
        )

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """List the entries of the files, and hold every tensor against its map and its fragments."""
        from shardscope.engine.formats.bundle_tensors import Bundle

        entry = claim.files[0]
        try:
            document = read_bundle(_value(probe, entry), entry)
        except Fault as fault:
            probe.note(fault.finding, entry)
            return Facts(confidence=Confidence.LOW, weight_reason="the document cannot be read")
        before = len(probe.blockers)
        files = files_of(probe, claim.folder, document)
        _read(probe, list(files.values()))
        bundle = Bundle(document, files, probe.tensors)
        tensors = bundle.tensors()
        _report(probe, entry, bundle.findings)
        _report_unused(probe, files, bundle)
        clean = not any(item.severity is Severity.ERROR for item in probe.blockers[before:])
        folder = probe.folder(claim.folder)
        config = model_config.describe(probe, folder)
        says = f"{counted(len(document.tensors), 'tensor')} in {counted(len(files), 'file')}"
        weights = StatePart(Presence.PRESENT if tensors else Presence.UNKNOWN, Basis.DECLARED, says)
        return Facts(
            confidence=Confidence.HIGH if clean else Confidence.MEDIUM,
            evidence=config.evidence,
            components=(_component(self.name, claim, document, says), *config.components),
            producer=config.producer,
            topology=_topology(entry, document),
            state=scope_of(folder.files.values(), weights),
            code_references=config.code_references,
            weight_bytes=_weight_bytes(tensors) if clean else None,
            weight_reason=None if clean else "not every tensor holds together, see the blockers",
            model=model_config.model_facts(probe, folder),
        )


def read_bundle(value: Any, entry: Entry) -> BundleDocument:
    """Return the document that a JSON value is. Raises `Fault`: `bundle.version`, `bundle.document`."""
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        found = schema if isinstance(schema, str) else "no schema"
        raise Fault("bundle.version", file=entry.text, found=found, known=SCHEMA)
    try:
        return msgspec.convert(value, BundleDocument)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        raise Fault(
            "bundle.document", file=entry.text, place=place.strip("`") or "$", problem=problem
        ) from None


def bundle_of(probe: Probe, claim: Claim) -> "Bundle | None":
    """Return the bundle of a claim that was described; null where its document cannot be read, which was then reported."""
    from shardscope.engine.formats.bundle_tensors import Bundle

    entry = claim.files[0]
    try:
        document = read_bundle(_value(probe, entry), entry)
    except Fault:
        return None
    return Bundle(document, files_of(probe, claim.folder, document), probe.tensors)


def files_of(probe: Probe, folder: bytes, document: BundleDocument) -> dict[str, Entry]:
    """Return the regular files that a document names and that are below its folder, by their names there."""
    wanted = {
        item.file for tensor in document.tensors.values() for item in (*tensor.fragments, *tensor.replicas)
    }
    below = {_below(folder, name): name for name in sorted(wanted) if is_below(name)}
    return {below[entry.path]: entry for entry in probe.inventory.files if entry.path in below}


def is_below(path: str) -> bool:
    """Tell whether a path is one below a folder, by its words alone: relative, without `.`, `..` and backslash."""
    parts = path.split("/")
    return not {"", ".", ".."} & set(parts) and "\\" not in path and "\0" not in path


def _below(folder: bytes, name: str) -> bytes:
    path = name.encode("utf-8", "backslashreplace")
    return folder + b"/" + path if folder else path


def _value(probe: Probe, entry: Entry | None) -> Any:
    document = probe.json(entry) if entry is not None else None
    return None if document is None else document.value


def _read(probe: Probe, files: Sequence[Entry]) -> None:
    for done, entry in enumerate(files):
        probe.checkpoint("headers", done, len(files), entry)
        header = probe.header(entry)
        if header is not None:
            probe.catalogue(entry, header)


def _report(probe: Probe, entry: Entry, findings: Sequence[Finding]) -> None:
    """Report what is wrong with tensors: the first ones each, and how many there are beyond them."""
    for finding in findings[:_REPORTED]:
        probe.note(finding, entry)
    rest = findings[_REPORTED:]
    if rest:
        probe.report("bundle.more", entry, count=len(rest), tensor=rest[0].params["tensor"])


def _report_unused(probe: Probe, files: dict[str, Entry], bundle: "Bundle") -> None:
    unused = bundle.unused()
    if unused:
        file, key = unused[0]
        probe.report("bundle.key_unused", files[file], count=len(unused), first=key)


def _weight_bytes(tensors: Iterable[LogicalTensor]) -> int:
    total = 0
    for tensor in tensors:
        if tensor.component == "model" and tensor.alias_of is None:
            bits = DTYPES[tensor.dtype].bits
            for extent in tensor.shape:
                bits *= extent
            total += -(-bits // 8)
    return total


def _component(name: str, claim: Claim, document: BundleDocument, says: str) -> Component:
    producer = "" if document.producer is None else f", by {display_name(document.producer, 120)}"
    return Component(
        kind="weights",
        name="bundle",
        format=name,
        files=tuple(entry.text for entry in claim.files),
        bytes=sum(entry.size for entry in claim.files),
        note=f"{says}{producer}",
    )


def _topology(entry: Entry, document: BundleDocument) -> Topology:
    return Topology(tuple(_mesh(entry, name, mesh) for name, mesh in document.meshes.items()))


def _mesh(entry: Entry, name: str, mesh: DeviceMesh) -> Mesh:
    axes = tuple(
        Axis(display_name(axis.name, 64), axis.size, Basis.DECLARED, f"meshes of {entry.text}")
        for axis in mesh.axes
    )
    return Mesh(display_name(name, 64), axes)


BUNDLE_FORMAT: Final = BundleFormat()

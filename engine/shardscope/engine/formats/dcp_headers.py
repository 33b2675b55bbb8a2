"""The headers of fragments: tensors and the offsets that DCP writes beside them, brought together file by file."""

from collections.abc import Sequence

from shardscope.engine.formats import model_config
from shardscope.engine.formats.dcp_tensors import Tensors
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.descriptor import ProducerFact
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.facts import SafetensorsHeader
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.parse.dcp_sharding import KNOWN_VERSION, SHARDING, VERSION, Sharding, parse_sharding


class Reading:
    """What the headers of a save said."""

    def __init__(self) -> None:
        self.tensors = Tensors()
        self.declaring: list[Entry] = []
        self.without: list[Entry] = []
        self.other_version: list[Entry] = []

    @property
    def evidence(self) -> list[Evidence]:
        """That headers declare offsets."""
        if not self.declaring:
            return []
        says = f"{counted(len(self.declaring), 'header')} with {SHARDING}"
        return [Evidence(EvidenceKind.HEADER, self.declaring[0].text, says, Basis.OBSERVED)]

    @property
    def producer(self) -> list[ProducerFact]:
        """The library that writes such headers."""
        if not self.declaring:
            return []
        says = f"{self.declaring[0].text}: __metadata__ has {SHARDING}"
        return [ProducerFact("torch.distributed.checkpoint", None, Basis.DECLARED, says)]


def read_fragments(probe: Probe, files: Sequence[Entry]) -> Reading:
    """List the tensors of every file and gather where they lie; report headers that do not tell."""
    reading = Reading()
    for done, entry in enumerate(files):
        probe.checkpoint("headers", done, len(files), entry)
        header = probe.header(entry)
        if header is None:
            continue
        probe.catalogue(entry, header)
        model_config.check_metadata(probe, entry, header.metadata)
        sharding = _sharding(probe, entry, header, reading)
        if sharding is not None:
            reading.declaring.append(entry)
            _match(probe, entry, header, sharding, reading.tensors)
    if reading.without:
        first = reading.without[0]
        probe.report("dcp.sharding_absent", first, count=len(reading.without), first=first.text)
    if reading.other_version:
        first = reading.other_version[0]
        count = len(reading.other_version)
        probe.report("dcp.version_unknown", first, count=count, known=KNOWN_VERSION, first=first.text)
    return reading


def _sharding(probe: Probe, entry: Entry, header: SafetensorsHeader, reading: Reading) -> Sharding | None:
    text = header.metadata.get(SHARDING)
    if text is None:
        reading.without.append(entry)
        return None
    if header.metadata.get(VERSION, KNOWN_VERSION) != KNOWN_VERSION:
        reading.other_version.append(entry)
    try:
        sharding = parse_sharding(text, probe.limits)
    except Fault as fault:
        probe.note(fault.finding, entry)
        return None
    for finding in sharding.notes:
        probe.note(finding, entry)
    return sharding


def _match(
    probe: Probe, entry: Entry, header: SafetensorsHeader, sharding: Sharding, tensors: Tensors
) -> None:
    """Bring together what header and sharding information say of each tensor of a file."""
    bad = list(sharding.bad)
    known = {name for name, _ in bad}
    unlisted: list[str] = []
    tensors.begin(entry)
    for name, dtype, shape in zip(header.names, header.dtypes, header.shapes, strict=True):
        saved = sharding.saved.get(name)
        if saved is None:
            if name not in known:
                unlisted.append(name)
        elif reason := tensors.add(name, dtype, shape, saved):
            bad.append((name, reason))
    present = set(header.names)
    orphans = [name for name in (*sharding.saved, *known) if name not in present]
    if bad:
        name, reason = bad[0]
        probe.report("dcp.sharding_entry", entry, count=len(bad), tensor=name, reason=reason)
    if unlisted:
        probe.report("dcp.sharding_unlisted", entry, count=len(unlisted), tensor=unlisted[0])
    if orphans:
        probe.report("dcp.sharding_orphan", entry, count=len(orphans), tensor=orphans[0])

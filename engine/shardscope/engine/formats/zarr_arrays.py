"""Zarr arrays as TensorStore and zarr-python write them: one folder for each array, with a description and a file for each chunk.

A folder that holds a description of a group or of an array owns everything below it. Specific families that keep such arrays
(Megatron, Orbax) claim their folders first.
"""

from typing import Final

from shardscope.engine.formats.folder import Folder, files_below
from shardscope.engine.formats.headers_only import listed, part_of
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim, Facts, Hint
from shardscope.engine.formats.recognised_only import named
from shardscope.engine.formats.zarr_tree import V2, V3, read_tree
from shardscope.engine.model.evidence import Alternative, Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.text import counted, path_text

_MARKS: Final = (V3, V2, ".zgroup")


class ZarrArrays:
    """The family `zarr`."""

    name = "zarr"
    general = True
    hint = Hint(("json", "zarray", "zgroup"))

    def recognise(self, probe: Probe, folder: Folder) -> Claim | Alternative | None:
        """Claim an array or a group of arrays, with everything below it."""
        marks = [folder.files[name] for name in _MARKS if name in folder.files]
        if not marks:
            return None
        owned = tuple(_below(folder, name) for name in sorted(folder.folders))
        below = [entry for path in owned for entry in files_below(probe.inventory, path)]
        files = [*folder.files.values(), *sorted(below, key=lambda entry: entry.path)]
        evidence = tuple(named(entry, f"named {entry.name}") for entry in marks)
        return Claim(self.name, folder.path, tuple(files), Confidence.LOW, evidence, owned)

    def describe(self, probe: Probe, claim: Claim) -> Facts:
        """Read the description of every array; count the chunks."""
        tree = read_tree(probe, claim.folder, claim.files)
        lacking = tree.missing
        if lacking:
            first = lacking[0]
            probe.report(
                "zarr.chunk_missing",
                first.entry,
                count=sum(leaf.missing for leaf in lacking),
                arrays=len(lacking),
                tensor=first.name,
                value=first.array.fill or "zero",
            )
        evidence = []
        if tree.leaves:
            says = f"{counted(len(tree.leaves), 'array')} described, {counted(tree.chunks, 'chunk')} stored"
            evidence.append(Evidence(EvidenceKind.JSON, tree.leaves[0].entry.text, says, Basis.DECLARED))
        name = path_text(claim.folder.rpartition(b"/")[2]) or "."
        return listed(
            probe,
            claim,
            len(tree.leaves),
            tree.bytes if tree.sound else None,
            confidence=Confidence.MEDIUM if tree.leaves else Confidence.LOW,
            evidence=evidence,
            components=[part_of(claim, name, claim.files, kind="arrays")],
        )


def _below(folder: Folder, name: str) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    return folder.path + b"/" + raw if folder.path else raw


ZARR_ARRAYS: Final = ZarrArrays()

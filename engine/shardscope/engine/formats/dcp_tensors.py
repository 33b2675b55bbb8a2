"""The tensors that fragments in several safetensors files make up: gathered, compared exactly, weighed.

A header holds each fragment's offset and shape. The shape of the whole tensor is recorded by later writers only
(`global_shape`); otherwise it is the furthest reach of the fragments, which a missing last file makes smaller without a
trace. So a size is proven by a declaration, or, for an even cut, by another tensor whose declared size leaves no room for
one more shard; all others are called unproven.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from msgspec import Struct

from shardscope.engine.formats.fragments import (
    LARGEST,
    Coverage,
    Fragment,
    Work,
    cover,
    ends_short,
    reach,
    settles,
)
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.dcp_sharding import Saved

Shape = tuple[int, ...]


class Declaration(Struct, frozen=True):
    """What something beside the fragments says of the shape of a whole tensor."""

    shape: Shape
    source: str
    """The path of the file that says so, neutralised."""
    padded: bool = False
    """Writers may have made the tensor larger than this, as they do with vocabularies."""


class Extent(Struct, frozen=True):
    """The shape of a whole tensor, as far as it is known."""

    shape: Shape
    source: str | None = None
    """The file that declares it; null where only the fragments tell."""

    @property
    def proven(self) -> bool:
        """A declaration says so, or there is no end that could be missing (a scalar)."""
        return self.source is not None or not self.shape


class Whole(Struct, frozen=True):
    """One tensor with its fragments, as far as they belong together."""

    name: str
    dtypes: tuple[str, ...]
    """More than one where fragments do not agree."""
    shape: Shape
    fragments: tuple[Fragment, ...]


class _Tensor:
    """One tensor as its fragments describe it."""

    __slots__ = ("dtypes", "fragments", "global_shapes")

    def __init__(self) -> None:
        self.dtypes: set[str] = set()
        self.fragments: list[Fragment] = []
        self.global_shapes: set[Shape] = set()


class Tensors:
    """Every tensor of a save, by name."""

    def __init__(self) -> None:
        self._tensors: dict[str, _Tensor] = {}
        self._files: list[Entry] = []
        self.count = 0
        """How many fragments there are."""
        self.logical_bytes: int | None = None
        """Bytes of the whole tensors, once `check` found each of them whole and of a known dtype."""
        self.evidence: list[Evidence] = []
        """What the fragments say together, once `check` looked."""

    def __len__(self) -> int:
        return len(self._tensors)

    def begin(self, entry: Entry) -> None:
        """Say that the fragments that follow are those of `entry`."""
        self._files.append(entry)

    def add(self, name: str, dtype: str, shape: Shape, saved: Saved) -> str | None:
        """Add a fragment of `shape`; return the reason where its place cannot be used."""
        if len(saved.offset) != len(shape):
            return f"{len(saved.offset):,} offsets for {len(shape):,} axes"
        if any(place + size > LARGEST for place, size in zip(saved.offset, shape, strict=True)):
            return "it ends beyond 63 bits"
        if saved.global_shape is not None and len(saved.global_shape) != len(shape):
            return f"global_shape has {len(saved.global_shape):,} numbers for {len(shape):,} axes"
        tensor = self._tensors.setdefault(name, _Tensor())
        tensor.dtypes.add(dtype)
        tensor.fragments.append(Fragment(saved.offset, shape, len(self._files) - 1))
        if saved.global_shape is not None:
            tensor.global_shapes.add(saved.global_shape)
        self.count += 1
        return None

    def check(self, probe: Probe, *, shards: int, declared: Mapping[str, Declaration]) -> None:
        """Compare the fragments of every tensor with the whole of it; report what does not fit.

        `shards` is how many ranks the names of the files show, 0 where they show none.
        """
        sound = self._sound(probe)
        extents = self._extents(probe, sound, declared)
        try:
            coverages = self._cover(probe, sound, extents)
        except Fault as fault:
            probe.note(fault.finding, self._files[0])
            return
        whole = {name for name, found in coverages.items() if not found.missing and not found.repeated}
        if len(whole) == len(self._tensors) and whole:
            self._add_bytes(extents)
            says = f"the fragments of {len(whole):,} of {len(whole):,} tensors fill them exactly, none twice"
            self.evidence.append(Evidence(EvidenceKind.HEADER, self._files[0].text, says, Basis.DERIVED))
        self._report_extents(probe, sound, extents, whole, shards)

    def wholes(self, declared: Mapping[str, Declaration]) -> Iterator[Whole]:
        """Yield the tensors whose fragments have the same axes, each of the shape that is declared or that they reach."""
        for name, tensor in self._tensors.items():
            if len({len(item.offset) for item in tensor.fragments}) > 1:
                continue
            seen = reach(tensor.fragments)
            said = self._declaration(name, tensor, declared.get(name))
            shape = seen if said is None or not _applies(said, seen) else tuple(map(max, seen, said.shape))
            yield Whole(name, tuple(sorted(tensor.dtypes)), shape, tuple(tensor.fragments))

    def twins(self, declared: Mapping[str, Declaration]) -> bool:
        """Tell whether every tensor is also declared whole by other files."""
        return bool(self._tensors) and all(
            name in declared and not declared[name].padded for name in self._tensors
        )

    def _sound(self, probe: Probe) -> dict[str, _Tensor]:
        """Report tensors whose fragments cannot belong together; return the others."""
        ranks = [n for n, t in self._tensors.items() if len({len(f.offset) for f in t.fragments}) > 1]
        dtypes = [n for n, t in self._tensors.items() if len(t.dtypes) > 1]
        if ranks:
            probe.report("dcp.rank_mixed", self._file_of(ranks[0]), count=len(ranks), tensor=ranks[0])
        if dtypes:
            words = ", ".join(
                w if w in DTYPES else "another" for w in sorted(self._tensors[dtypes[0]].dtypes)
            )
            probe.report(
                "dcp.dtype_mixed", self._file_of(dtypes[0]), count=len(dtypes), tensor=dtypes[0], dtypes=words
            )
        broken = set(ranks)
        return {name: tensor for name, tensor in self._tensors.items() if name not in broken}

    def _extents(
        self, probe: Probe, tensors: Mapping[str, _Tensor], declared: Mapping[str, Declaration]
    ) -> dict[str, Extent]:
        extents: dict[str, Extent] = {}
        beyond: list[tuple[str, Shape, Declaration]] = []
        for name, tensor in tensors.items():
            seen = reach(tensor.fragments)
            said = self._declaration(name, tensor, declared.get(name))
            if said is None or not _applies(said, seen):
                extents[name] = Extent(seen)
                continue
            if any(end > size for end, size in zip(seen, said.shape, strict=True)):
                beyond.append((name, seen, said))
            extents[name] = Extent(tuple(map(max, seen, said.shape)), said.source)
        if beyond:
            name, seen, said = beyond[0]
            probe.report(
                "dcp.extent_contradicted",
                self._file_of(name),
                count=len(beyond),
                tensor=name,
                found=_words(seen),
                source=said.source,
                declared=_words(said.shape),
            )
        differ = [name for name, tensor in tensors.items() if len(tensor.global_shapes) > 1]
        if differ:
            shapes = sorted(tensors[differ[0]].global_shapes)[:4]
            probe.report(
                "dcp.extent_disagrees",
                self._file_of(differ[0]),
                count=len(differ),
                tensor=differ[0],
                shapes=" and ".join(map(_words, shapes)),
            )
        return extents

    def _declaration(self, name: str, tensor: _Tensor, beside: Declaration | None) -> Declaration | None:
        if not tensor.global_shapes:
            return beside
        return Declaration(max(tensor.global_shapes), self._file_of(name).text)

    def _cover(
        self,
        probe: Probe,
        tensors: Mapping[str, _Tensor],
        extents: Mapping[str, Extent],
    ) -> dict[str, Coverage]:
        work = Work(probe.limits.fragment_steps)
        coverages = {name: cover(t.fragments, extents[name].shape, work) for name, t in tensors.items()}
        holes = [name for name, found in coverages.items() if found.missing]
        if holes:
            found = coverages[holes[0]]
            probe.report(
                "dcp.hole",
                self._file_of(holes[0]),
                count=len(holes),
                tensor=holes[0],
                missing=found.missing,
                total=prod(extents[holes[0]].shape),
                where=", ".join(f"{begin:,} to {end:,}" for begin, end in found.hole or ()),
            )
        twice = [name for name, found in coverages.items() if found.overlap]
        if twice:
            found = coverages[twice[0]]
            first, second = (tensors[twice[0]].fragments[n].file for n in found.overlap or (0, 0))
            probe.report(
                "dcp.overlap",
                self._files[second],
                count=len(twice),
                tensor=twice[0],
                repeated=found.repeated,
                first=self._files[first].text,
                second=self._files[second].text,
            )
        return coverages

    def _report_extents(
        self,
        probe: Probe,
        tensors: Mapping[str, _Tensor],
        extents: Mapping[str, Extent],
        whole: Iterable[str],
        shards: int,
    ) -> None:
        unproven = [name for name in tensors if not extents[name].proven]
        if not unproven:
            return
        for name in sorted(whole):
            extent = extents[name]
            if extent.source and settles(tensors[name].fragments, extent.shape, shards):
                says = (
                    f"a tensor of {_words(extent.shape)}, as {extent.source} declares, is cut evenly into "
                    f"{shards:,} pieces: there was no further shard"
                )
                self.evidence.append(
                    Evidence(EvidenceKind.HEADER, self._file_of(name).text, says, Basis.DERIVED)
                )
                return
        probe.report(
            "dcp.extent_unproven",
            self._file_of(unproven[0]),
            count=len(unproven),
            tensor=unproven[0],
            short=sum(ends_short(tensors[name].fragments) for name in unproven),
            last=max(shards, 1),
        )

    def _add_bytes(self, extents: Mapping[str, Extent]) -> None:
        total = 0
        for name, tensor in self._tensors.items():
            dtype = DTYPES.get(next(iter(tensor.dtypes)))
            if dtype is None or len(tensor.dtypes) > 1:
                return
            total += -(-prod(extents[name].shape) * dtype.bits // 8)
        self.logical_bytes = total

    def _file_of(self, name: str) -> Entry:
        return self._files[self._tensors[name].fragments[0].file]


def _applies(said: Declaration, seen: Shape) -> bool:
    """Tell whether a declaration can be of this tensor: a padded one only bounds the rows from below."""
    if len(said.shape) != len(seen):
        return False
    return not said.padded or (seen[0] <= said.shape[0] and seen[1:] == said.shape[1:])


def _words(shape: Shape) -> str:
    return " x ".join(f"{size:,}" for size in shape) or "a scalar"

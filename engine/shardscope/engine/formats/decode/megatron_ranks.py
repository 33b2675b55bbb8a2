"""Rank files of Megatron-LM, decoded: where each stands on the axes, by its arguments, and whether they are of one run."""

from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.megatron_args import Args, read_args
from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.formats.megatron_legacy import RankFolder
from shardscope.engine.formats.probe import Probe
from shardscope.engine.model.pickled import Number
from shardscope.engine.model.source import Entry
from shardscope.engine.parse.pickled.tree import Tree

MOST_RANKS: Final = 1 << 20
"""Ranks that arguments may declare; the largest runs have tens of thousands."""
_VIRTUAL: Final = 256
"""Virtual stages of one rank, at the most."""


class RankFile(Struct, frozen=True):
    """The decoded model file of one rank folder."""

    folder: RankFolder
    file: TorchFile
    args: Args | None
    version: float | None
    """Of the checkpoint's own form; null where none is written."""

    @property
    def entry(self) -> Entry:
        """The file."""
        return self.file.entry

    @property
    def tree(self) -> Tree:
        """Its facts."""
        return self.file.tree

    def models(self) -> list[Number]:
        """Return the model of each virtual stage: `model`, or `model0`, `model1`, ..."""
        whole = self.tree.get(self.tree.root, "model")
        if whole is not None:
            return [whole]
        found: list[Number] = []
        while (
            len(found) < _VIRTUAL
            and (part := self.tree.get(self.tree.root, f"model{len(found)}")) is not None
        ):
            found.append(part)
        return found


class Place(Struct, frozen=True, order=True):
    """Where a rank file stands."""

    pp: int
    ep: int
    tp: int


class Ranks(Struct, frozen=True):
    """The rank files of one save, by their places."""

    args: Args
    version: float | None
    files: dict[Place, RankFile]
    tp: int
    pp: int
    ep: int

    @property
    def on_diagonal(self) -> bool:
        """Whether experts have no cut of their own, so that a rank's place among the experts follows from its slice.

        Not every pair of numbers is a rank then; all of them are here where every number is.
        """
        slices = {(place.pp, place.tp) for place in self.files}
        experts = {(place.pp, place.ep) for place in self.files}
        whole = len(slices) == self.pp * self.tp and len(experts) == self.pp * self.ep
        return self.args.etp == 1 and self.tp > 1 and self.ep > 1 and whole

    def label(self, place: Place) -> int:
        """Return the number of a rank: tensor parallel ranks are next to each other, pipeline stages furthest apart."""
        return (place.pp * self.ep + place.ep) * self.tp + place.tp


def decoded_files(decoder: Decoder, folders: Sequence[RankFolder]) -> list[RankFile]:
    """Decode the model file of every rank folder."""
    found = []
    for done, folder in enumerate(folders):
        if folder.model is None:
            continue
        decoder.probe.checkpoint("decoding", done, len(folders), folder.model)
        file = decoder.torch(folder.model)
        if file is None:
            continue
        tree = file.tree
        version = tree.value(tree.root, "checkpoint_version")
        number = version if isinstance(version, int | float) and not isinstance(version, bool) else None
        found.append(RankFile(folder, file, read_args(tree, tree.get(tree.root, "args")), number))
    return found


def placed(probe: Probe, files: Sequence[RankFile]) -> Ranks | None:
    """Return the files by their places; null where the arguments do not tell them, which is reported."""
    first = files[0]
    args = first.args
    if args is None:
        if any(len(file.folder.at) > 1 for file in files):
            probe.report("megatron.args_missing", first.entry, fact="pipeline-parallel size")
            return None
        args = Args(tp=1 + max(file.folder.at[0] for file in files), pp=1)
    elif not _agree(probe, files):
        return None
    sizes = _sizes(args, files)
    if prod(sizes) > MOST_RANKS:
        probe.report(
            "megatron.args_ranks", first.entry, axis="tp x pp x ep", expected=prod(sizes), found=len(files)
        )
        return None
    found: dict[Place, RankFile] = {}
    for file in files:
        place = _place(file.folder.at, args)
        if place is None:
            axes = "pp x ep" if len(file.folder.at) == 3 else "pp"
            probe.report("megatron.args_ranks", file.entry, axis=axes, expected=1, found=len(files))
            return None
        found.setdefault(place, file)
    tp, pp, ep = sizes
    _check_extents(probe, first.entry, found, {"tp": tp, "pp": pp, "ep": ep})
    return Ranks(args, first.version, found, tp, pp, ep)


def _sizes(args: Args, files: Sequence[RankFile]) -> tuple[int, int, int]:
    """Return tp, pp and ep: as declared, or as far as the names go where they go further."""
    places = [place for file in files if (place := _place(file.folder.at, args)) is not None]
    return (
        max(args.tp or 1, *(place.tp + 1 for place in places), 1),
        max(args.pp or 1, *(place.pp + 1 for place in places), 1),
        max(args.ep or 1, *(place.ep + 1 for place in places), 1),
    )


def _place(at: tuple[int, ...], args: Args) -> Place | None:
    """Return the place that the numbers of a folder's name mean: a second one is the stage, or the expert's where there is one stage.

    `megatron/training/checkpointing.py`, `get_checkpoint_name`.
    """
    stages, experts = (args.pp or 1) > 1, (args.ep or 1) > 1
    match at:
        case (tp,):
            return Place(0, 0, tp)
        case (tp, second) if stages and not experts:
            return Place(second, 0, tp)
        case (tp, second) if experts and not stages:
            return Place(0, second, tp)
        case (tp, pp, ep):
            return Place(pp, ep, tp)
    return None


def _check_extents(probe: Probe, entry: Entry, found: dict[Place, RankFile], sizes: dict[str, int]) -> None:
    for axis, size in sizes.items():
        seen = {getattr(place, axis) for place in found}
        if len(seen) < size:
            probe.report("megatron.args_ranks", entry, axis=axis, expected=size, found=len(seen))


def _agree(probe: Probe, files: Sequence[RankFile]) -> bool:
    """Tell whether all files declare the same run; report the first that does not."""
    first = files[0]
    expected = _declared(first)
    for file in files[1:]:
        for (words, value), (_, other) in zip(expected, _declared(file), strict=True):
            if value != other:
                probe.report(
                    "megatron.args_differ",
                    file.entry,
                    fact=words,
                    first=first.entry.text,
                    found=str(other),
                    expected=str(value),
                )
                return False
    return True


def _declared(file: RankFile) -> list[tuple[str, object]]:
    tree = file.tree
    return [
        *(file.args or Args()).shared,
        ("checkpoint version", file.version),
        ("iteration", tree.integer(tree.root, "iteration")),
    ]

"""Fixes: what is wrong with Hugging Face safetensors, and the plan of an output without it. `materializing` carries it out.

Looking reads headers and indexes, planning reads nothing: a person can plan as often as they like after one look.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.plans.planning import plan as make_plan
from shardscope.engine.converting.carrying import Beside, beside, carried_files, carries
from shardscope.engine.converting.preparing import TOOL, Prepared, absent_state, buffer_bytes, source_of
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decode.whole_safetensors import whole_file
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.protocol import Claim
from shardscope.engine.inspecting.classify import weigh
from shardscope.engine.inspecting.decoding import bytes_of
from shardscope.engine.inspecting.inspection import Inspection, inspect
from shardscope.engine.mending.changes import Outcome, changes
from shardscope.engine.mending.edits import Edits, edited
from shardscope.engine.mending.holdings import Held, Survey
from shardscope.engine.mending.obstacles import ailments, alike, in_the_way, needs
from shardscope.engine.mending.outputs import Arranging, index_metadata, index_of
from shardscope.engine.mending.survey import survey
from shardscope.engine.model.blocker import Blocker, Fault
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.facts import Nature
from shardscope.engine.model.fix import FixDocument, FixOptions
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.plan import Decision, LeftOut, Plan, PlanOptions
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.repair import FIXED, MENDED, REPAIRS, SAFE, PlannedFix, Repair
from shardscope.engine.model.schemas import FIX
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.parse.config import check_config
from shardscope.engine.source.source import Source

Path = str | os.PathLike[str]
_OWN: Final = (*MENDED, "layout.composite")
"""What inspection says of files that a look at them says better."""
_EXAMPLES: Final = 3


class FixLook(Struct, frozen=True):
    """A checkpoint as a fix sees it."""

    inspection: Inspection
    survey: Survey
    adapter: bool
    beside: tuple[str, ...]
    """Other parts of the folder that hold tensors and are not fixed, neutralised."""
    tied: bool | None
    """Whether the configuration ties embedding and output layer; null where it does not say."""

    @property
    def needs(self) -> tuple[Repair, ...]:
        """What would have to be asked for to mend all that is wrong, in the order in which it is applied."""
        return needs(self.survey)


class Fix(Struct, frozen=True, dict=True):
    """A planned fix: the plan for `materialize`, and every change for a person."""

    prepared: Prepared
    document: FixDocument

    @cached_property
    def idle(self) -> bool:
        """Whether an output would be the source over again."""
        return not self.document.changes and not self.document.lost


def look_for_fix(
    path: Path,
    files: Sequence[str] = (),
    *,
    digests: bool = False,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    found: Inspection | None = None,
) -> FixLook:
    """Return what is wrong with the safetensors files at `path`; `files` are globs that choose among them.

    `found` is an inspection of the same path that was made before. Raises `Fault`: `fix.other_format`, `fix.no_weights`,
    `fix.several_sets`, `fix.no_match`, those of `inspect` and of reading; `Cancelled`.
    """
    bounds = limits or Limits()
    if found is None:
        found = inspect(
            path,
            limits=bounds,
            digest="all" if digests else "none",
            hf_cache=hf_cache,
            cancel=cancel,
            progress=progress,
        )
    with Source(path, limits=bounds, hf_cache=hf_cache) as source:
        probe = Probe(source, found.inventory, bounds, cancel, progress)
        claim, others = _claim(probe, found, files)
        looked = survey(probe, claim, files)
        tied = _tied(probe, claim)
    return FixLook(found, looked, claim.format == "peft_adapter", others, tied)


def plan_fix(look: FixLook, options: FixOptions, *, config: str | None = None) -> Fix:
    """Return the plan of a fix and every change that it makes. Nothing is read of the checkpoint, and nothing is written.

    `config` names a folder with configuration and tokenizer to carry along instead of those beside the source. What stands in the
    way is among the blockers of the plan. Raises `Fault`: `fix.no_match`, `fix.tied`, `fix.nothing_left`, `fix.adapter_split`,
    `fix.operations`, `convert.rename_rule`, `convert.rename_collision`, `convert.header_name`, `convert.header_size`, those of
    `carrying.beside`.
    """
    looked = look.survey
    what = _what(look, options)
    edits = edited(looked, what, options, tied=look.tied)
    if not edits.held:
        there = len(looked.held) + len(looked.lost)
        raise Fault("fix.nothing_left", count=there, dropped=len(edits.dropped), lost=len(edits.lost))
    folder = None if config is None else beside(config, look.inspection.descriptor.limits)
    arranging = Arranging(looked, edits, what, options)
    catalogue = Catalogue(tuple(_tensors(looked, edits.held)))
    plan = _plan(look, edits, what, options, catalogue, arranging, folder)
    outcome = Outcome(
        what,
        edits,
        plan.files,
        arranging.sources,
        index_of(looked, plan.files, what),
        index_metadata(looked, edits),
    )
    lost = edits.lost if "salvage" in what else ()
    fix = PlannedFix(what, outcome.index, dict(outcome.index_metadata), lost)
    plan = replace(plan, fix=fix, blockers=(*in_the_way(looked, edits, what), *plan.blockers))
    document = FixDocument(
        schema=FIX,
        what=what,
        asked=bool(options.what),
        found=tuple(ailments(looked, edits, what)),
        kept=tuple(file.name for file in plan.files if file.kept is not None),
        changes=changes(looked, outcome),
        lost=lost,
        plan=plan,
    )
    return Fix(Prepared(look.inspection, catalogue, plan, folder), document)


def prepare_fix(
    path: Path,
    options: FixOptions,
    *,
    config: str | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    found: Inspection | None = None,
) -> Fix:
    """Return the fix of the checkpoint at `path`: a look, and a plan. Raises `Fault`: those of both; `Cancelled`."""
    look = look_for_fix(
        path,
        options.files,
        digests=options.digest_source,
        limits=limits,
        hf_cache=hf_cache,
        cancel=cancel,
        progress=progress,
        found=found,
    )
    return plan_fix(look, options, config=config)


def check_idle(fix: Fix) -> Fix:
    """Return a fix that changes something. Raises `Fault` `fix.nothing_to_do` for another one, or what stands in its way."""
    if fix.idle and not fix.document.plan.blockers:
        files = fix.document.plan.files
        count = sum(len(file.tensors) for file in files)
        raise Fault("fix.nothing_to_do", count=count, files=len(files))
    return fix


def _claim(probe: Probe, found: Inspection, globs: Sequence[str]) -> tuple[Claim, tuple[str, ...]]:
    """Return the part of a checkpoint that is fixed, and what the others are: that of the folder itself before those below it."""
    verdict = weigh(probe)
    probe.blockers.clear()
    if verdict.format == "ambiguous":
        for item in found.descriptor.blockers:
            if item.code in ("layout.ambiguous", "layout.several_candidates"):
                raise Fault(item.code, **item.params)
    claims = [claim for claim in verdict.claims if claim.format in FIXED]
    if not claims and (alone := _alone(probe)) is not None:
        return alone, ()
    if not claims:
        raise Fault("fix.other_format", found=FORMAT_TITLES[verdict.format])
    here = [claim for claim in claims if not claim.folder] or claims
    if len(here) > 1 and globs:
        here = [
            claim
            for claim in here
            if any(fnmatchcase(file.name, glob) for file in claim.files for glob in globs)
        ] or here
    if len(here) > 1:
        names = ", ".join(_where(claim) for claim in here[:6])
        raise Fault("fix.several_sets", count=len(here), sets=names)
    others = [claim for claim in verdict.claims if claim is not here[0]]
    return here[0], tuple(_where(claim) for claim in others)


def _alone(probe: Probe) -> Claim | None:
    """Return a single file that begins as safetensors do, whatever it is called: a download that stopped has a name of its own."""
    if not probe.inventory.root_is_file:
        return None
    entry = probe.inventory.files[0]
    found = probe.sniff(entry)
    if found is None or found.nature is not Nature.SAFETENSORS:
        return None
    return Claim("hf_safetensors", b"", (entry,), Confidence.LOW, ())


def _where(claim: Claim) -> str:
    folder = display_name(os.fsdecode(claim.folder)) or "here"
    return f"{FORMAT_TITLES[claim.format]} ({folder})"


def _tied(probe: Probe, claim: Claim) -> bool | None:
    entry = probe.folder(claim.folder).files.get("config.json")
    document = None if entry is None else probe.json(entry)
    if document is None or not isinstance(document.value, dict):
        return None
    return check_config(document.value).tie_word_embeddings


def _what(look: FixLook, options: FixOptions) -> tuple[Repair, ...]:
    """Return the operations, in the order in which they are applied."""
    if "split" in options.what and "merge" in options.what:
        raise Fault("fix.operations", problem="split makes more files, merge makes one")
    if "split" in options.what and look.adapter:
        raise Fault("fix.adapter_split")
    wanted = set(options.what) if options.what else set(look.needs) & set(SAFE)
    return tuple(repair for repair in REPAIRS if repair in wanted)


def _tensors(looked: Survey, held: Iterable[Held]) -> Iterable[LogicalTensor]:
    """Yield the tensors that are written; copies that nothing decides between are compared before anything is."""
    records = [whole_file(file.entry) for file in looked.files]
    for item in held:
        tensor = item.tensor
        fragment = Fragment(0, tensor.shape, records[item.file], tensor.begin)
        made = whole(tensor.name, tensor.dtype, tensor.shape, fragment)
        copies = tuple(
            Fragment(0, copy.shape, records[number], copy.begin)
            for number, copy in item.copies
            if alike(tensor, copy)
        )
        yield replace(made, replicas=copies) if copies else made


def _plan(
    look: FixLook,
    edits: Edits,
    what: Sequence[Repair],
    options: FixOptions,
    catalogue: Catalogue,
    arranging: Arranging,
    folder: Beside | None,
) -> Plan:
    asked = PlanOptions(
        component="all",
        exclude=options.drop if "drop" in what else (),
        renames=options.renames if "rename" in what else (),
        max_shard_bytes=options.max_shard_bytes,
        carry=options.carry,
        memory_bytes=options.memory_bytes,
        workers=options.workers,
        digest=options.digest,
        digest_source=options.digest_source,
        verify=options.verify,
    )
    inventory = (folder or look.inspection).inventory
    return make_plan(
        tool=TOOL,
        source=source_of(look.inspection, decoded=False),
        catalogue=catalogue,
        options=asked,
        carried=carried_files(inventory) if options.carry else (),
        absent=(*_left_out(look, edits, what), *absent_state(look.inspection)),
        decisions=_decisions(what, options),
        blockers=_others(look, what, aside=folder is not None or not options.carry),
        size_of=bytes_of,
        buffers=lambda chosen: buffer_bytes(chosen, asked),
        arrange=arranging,
    )


def _left_out(look: FixLook, edits: Edits, what: Sequence[Repair]) -> Iterable[LeftOut]:
    if edits.dropped:
        size = sum(item.tensor.end - item.tensor.begin for item in edits.dropped)
        yield LeftOut("dropped", len(edits.dropped), size, "by --tensor")
    if edits.lost and "salvage" in what:
        sizes = [item.bytes for item in edits.lost]
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        yield LeftOut("lost", len(edits.lost), total, "it is not whole in the source; each is listed by name")
    if look.survey.strays:
        names = ", ".join(shown(entry.name, 60) for entry in look.survey.strays[:_EXAMPLES])
        why = f"{counted(len(look.survey.strays), 'file')} not of the weight set, such as {names}"
        yield LeftOut("other files", 0, None, why)
    if unfinished := [
        item.subject for item in look.inspection.descriptor.blockers if item.code == "file.incomplete"
    ]:
        why = f"{', '.join(map(str, unfinished[:_EXAMPLES]))}: give a part its own name, and salvage takes what is whole of it"
        if not look.inspection.inventory.root_is_file:
            yield LeftOut("unfinished download", 0, None, why)
    for other in look.beside:
        yield LeftOut("another part", 0, None, other)


def _decisions(what: Sequence[Repair], options: FixOptions) -> tuple[Decision, ...]:
    if options.what:
        return (Decision("fix", ", then ".join(what), "asked for", "--what"),)
    evidence = "what the checkpoint needs and loses nothing"
    return (Decision("fix", ", then ".join(what) or "nothing", evidence, "--what"),)


def _others(look: FixLook, what: Sequence[Repair], *, aside: bool) -> list[Blocker]:
    """Return what inspection found that is not about weight files and their index; `aside`: nothing beside them comes along."""
    own = (*_OWN, "file.incomplete") if "salvage" in what else _OWN
    looked = look.survey
    ours = {shown(file.entry.text) for file in looked.files} | {shown(entry.text) for entry in looked.strays}
    if looked.index is not None:
        ours.add(shown(looked.index.text))
    if aside:
        ours |= {shown(entry.text) for entry in look.inspection.inventory.files if carries(entry)}
    return [
        item
        for item in look.inspection.descriptor.blockers
        if not item.code.startswith(own)
        and not (item.subject in ours and not item.code.startswith("source."))
    ]

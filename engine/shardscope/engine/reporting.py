"""A report about a checkpoint, from its path to a bundle: inspect, sanitise, look for what must not be in it, write."""

import os
import re
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from shardscope.engine.capabilities.installed import Installed, installed
from shardscope.engine.inspection import DigestMode, inspect
from shardscope.engine.model.blocker import Blocker, Fault, blocker
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.reports import (
    Desired,
    ModelReference,
    ReportBundle,
    ReportDifference,
    ReportEnvironment,
    ReportOptions,
    ReportTool,
)
from shardscope.engine.model.source import Kind
from shardscope.engine.model.text import exact_text, path_text
from shardscope.engine.report import archive, building, checking
from shardscope.engine.report.building import Built, Given
from shardscope.engine.report.identity import identities, private
from shardscope.engine.report.names import Mode, Names, Replacement
from shardscope.engine.source.source import Source
from shardscope.engine.version import __version__

if TYPE_CHECKING:  # documents from outside are read where one is given
    from shardscope.engine.model.documents import ErrorBody

_NUMBERS: Final = re.compile(r"\d{1,3}(?:\.\d{1,4}){1,2}")
_PACKAGES: Final = ("torch", "transformers", "accelerate", "deepspeed", "megatron-core", "safetensors")
_WORD: Final = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_RELEASE: Final = re.compile(r'(ID|VERSION_ID)="?([A-Za-z0-9_.-]{1,32})"?')


class Request(Struct, frozen=True):
    """What a person asks to have in a report."""

    names: Mode = "keep"
    digest: DigestMode = "auto"
    hf_cache: bool = False
    descriptor: str | None = None
    """The path of a descriptor that was made earlier: nothing is inspected then."""
    error: str | None = None
    """The path of the document in which a command said why it ended."""
    desired: Desired | None = None
    model: ModelReference = ModelReference(None, None)
    command: tuple[str, ...] = ("shardscope", "report")


class Prepared(Struct, frozen=True):
    """A report that was made and searched, and the key to its tokens, which stays here."""

    built: Built
    key: tuple[Replacement, ...]


def prepare_report(
    path: str,
    request: Request,
    *,
    limits: Limits | None = None,
    target: str | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Prepared:
    """Return the report about the file or folder at `path`. Nothing is decoded, and what is opaque is opened only to hash it.

    Raises `Fault`: `source.missing`, what reading the documents raises, `report.descriptor_other`, and `report.identity`
    where the finished report holds anything of this machine. Whatever else stands in the way is what the report tells.
    """
    limits = limits or Limits()
    here = identities(
        [each for each in (path, target, request.descriptor, request.error) if each is not None]
    )
    failed: Blocker | ErrorBody | None = None
    if request.error is not None:
        from shardscope.engine.capabilities.reading import read_as
        from shardscope.engine.model.documents import ErrorDocument

        failed = read_as(request.error, ErrorDocument, limits).error
    descriptor = None
    try:
        descriptor = _descriptor(path, request, limits, cancel, progress)
    except Fault as fault:
        if request.descriptor is not None or fault.finding.code == "source.missing":
            raise
        failed = failed or blocker(fault.finding)
    names = Names(request.names, private(here))
    found = installed((*_PACKAGES, "shardscope"))
    environment = environment_now(found)
    facts = Given(
        tool=ReportTool(
            "shardscope", __version__, found["shardscope"].commit if "shardscope" in found else None
        ),
        command=request.command,
        options=ReportOptions(
            names=request.names,
            digest=request.digest if descriptor is None else names.word(descriptor.source.digest_mode),
            hf_cache=request.hf_cache if descriptor is None else descriptor.source.hf_cache,
            descriptor=_origin(request, descriptor),
            decoded=building.was_decoded(descriptor),
        ),
        desired=request.desired,
        model=request.model,
        environment=environment,
    )
    built = building.build(facts, descriptor, failed, names)
    public = [
        text for field in environment.__struct_fields__ if (text := getattr(environment, field)) is not None
    ]
    given = [text for text in (request.model.id, request.model.revision) if text is not None]
    producers = [fact.version for fact in built.report.producer if fact.version is not None]
    checking.check(built.members, here, (*public, *producers, __version__, *request.command[:2]), given)
    return Prepared(built, tuple(names.replaced.values()))


def write_report(target: str, path: str, prepared: Prepared) -> None:
    """Write a report to `target`: a zip, or a folder where the name does not end in `.zip`.

    Raises `Fault`: `output.exists`, `report.inside`, `report.write_failed`.
    """
    archive.refuse(target, path)
    archive.write(target, prepared.built.members)


def refuse_target(target: str, path: str) -> None:
    """Refuse a target before any work is done for it. Raises `Fault`: `output.exists`, `report.inside`."""
    archive.refuse(target, path)


def read_report(path: str, limits: Limits | None = None) -> ReportBundle:
    """Return what a bundle says, which may come from anywhere. Raises `Fault`: those of `report.reading.read`."""
    from shardscope.engine.report import reading

    return reading.read(path, limits)


def compare_reports(one: ReportBundle, other: ReportBundle) -> ReportDifference:
    """Return where two bundles differ."""
    from shardscope.engine.report import differing

    return differing.difference(one, other)


def environment_now(packages: Mapping[str, Installed]) -> ReportEnvironment:
    """Return the versions of this installation, from metadata alone; every one is checked to be a version and no more."""
    system = os.uname()
    kernel = _NUMBERS.match(system.release)
    machine = system.machine.lower()

    names = Names()
    found = {name: names.version(packages[name].version) if name in packages else None for name in _PACKAGES}
    return ReportEnvironment(
        os=system.sysname if _WORD.fullmatch(system.sysname.lower()) else "unknown",
        kernel=None if kernel is None else kernel[0],
        distribution=_distribution(),
        machine=machine if _WORD.fullmatch(machine) else None,
        python=".".join(map(str, sys.version_info[:3])),
        torch=found["torch"],
        transformers=found["transformers"],
        accelerate=found["accelerate"],
        deepspeed=found["deepspeed"],
        megatron_core=found["megatron-core"],
        safetensors=found["safetensors"],
    )


def _distribution(path: str = "/etc/os-release") -> str | None:
    """Return the name and the version of the distribution, as os-release(5) has them."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = file.read(1 << 14).splitlines()
    except OSError:
        return None
    found = {match[1]: match[2].lower() for line in lines if (match := _RELEASE.fullmatch(line.strip()))}
    return " ".join(found[name] for name in ("ID", "VERSION_ID") if name in found) or None


def _descriptor(
    path: str,
    request: Request,
    limits: Limits,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> Descriptor:
    if request.descriptor is None:
        return inspect(
            path,
            limits=limits,
            digest=request.digest,
            hf_cache=request.hf_cache,
            cancel=cancel,
            progress=progress,
        ).descriptor
    from shardscope.engine.capabilities.reading import read_as

    earlier = read_as(request.descriptor, Descriptor, limits)
    with Source(path, limits=limits, hf_cache=earlier.source.hf_cache) as source:
        inventory = source.walk(cancel=cancel, progress=progress)  # from statuses alone: no file is opened
    now = {
        (exact_text(each.path)[0], each.kind.value, each.size if each.kind is Kind.FILE else 0)
        for each in inventory.entries
    }
    before = {(each.path, each.kind, each.size) for each in earlier.source.entries}
    if before != now:
        file = path_text(os.fsencode(request.descriptor))
        raise Fault("report.descriptor_other", file=file, count=len({entry[0] for entry in before ^ now}))
    return earlier


def _origin(
    request: Request, descriptor: Descriptor | None
) -> Literal["made for this report", "made earlier", "none"]:
    if descriptor is None:
        return "none"
    return "made for this report" if request.descriptor is None else "made earlier"

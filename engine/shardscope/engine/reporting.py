"""A report about a checkpoint, from its path to a bundle: inspect, sanitise, look for what must not be in it, write."""

import os
import re
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from shardscope.engine.capabilities.installed import Installed, installed
from shardscope.engine.inspecting.inspection import DigestMode, inspect
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
    ReportPart,
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

if (
    TYPE_CHECKING
):  # documents from outside are read where one is given, and lines laid out where somebody looks
    from shardscope.engine.model.documents import ErrorBody
    from shardscope.engine.report.sides import ReportPreview

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
    without: tuple[ReportPart, ...] = ()
    """What is left out."""
    limits: tuple[tuple[str, int], ...] = ()
    """Bounds on reading that the person set: for the command that the report repeats."""

    def options(self) -> dict[str, str]:
        """Return the options that ask for the same, with their values, without paths and bounds. `auto` and `keep` are unsaid."""
        given = {
            "--names": "" if self.names == "keep" else self.names,
            "--without": ",".join(self.without),
            "--desired": self.desired or "",
            "--model-id": self.model.id or "",
            "--revision": self.model.revision or "",
            "--digest": "" if self.digest == "auto" else self.digest,
        }
        return {option: value for option, value in given.items() if value}

    def command(self, *, earlier: bool) -> tuple[str, ...]:
        """Return the command as the report repeats it: no path, and no value of one's own. `earlier` names a descriptor."""
        words = ["shardscope", "report", "PATH"]
        for option, value in self.options().items():
            words += (option, {"--model-id": "ID", "--revision": "COMMIT"}.get(option, value))
        if earlier:
            words += ("--descriptor", "FILE")
        if self.error is not None:
            words += ("--error", "FILE")
        if self.hf_cache:
            words.append("--hf-cache")
        for name, bound in self.limits:
            words += ("--limit", f"{name}={bound}")
        return tuple(words)


class Prepared(Struct, frozen=True):
    """A report that was made and searched, and what it was made of, which stays here."""

    built: Built
    key: tuple[Replacement, ...]
    """What its tokens stand for."""
    descriptor: Descriptor | None
    """As it is, before anything was replaced."""
    failed: "Blocker | ErrorBody | None"


def prepare_report(
    path: str,
    request: Request,
    *,
    known: Descriptor | None = None,
    limits: Limits | None = None,
    target: str | None = None,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> Prepared:
    """Return the report about the file or folder at `path`. Nothing is decoded, and what is opaque is opened only to hash it.

    `known` is what an inspection of this process found there: then nothing is inspected, but it still has to fit.

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
        descriptor = _descriptor(path, request, known, limits, cancel, progress)
    except Fault as fault:
        earlier = request.descriptor is not None or known is not None
        if earlier or fault.finding.code in ("source.missing", "source.tilde"):
            raise
        failed = failed or blocker(fault.finding)
    names = Names(request.names, private(here))
    found = installed((*_PACKAGES, "shardscope"))
    environment = environment_now(found)
    decoded = building.was_decoded(descriptor)
    command = request.command(earlier=request.descriptor is not None or (known is not None and decoded))
    facts = Given(
        tool=_tool(found),
        command=command,
        options=ReportOptions(
            names=request.names,
            digest=request.digest if descriptor is None else names.word(descriptor.source.digest_mode),
            hf_cache=request.hf_cache if descriptor is None else descriptor.source.hf_cache,
            descriptor=_origin(request, descriptor),
            decoded=decoded,
            without=request.without,
        ),
        desired=request.desired,
        model=request.model,
        environment=None if "versions" in request.without else environment,
    )
    built = building.build(facts, descriptor, failed, names)
    public = [
        text for field in environment.__struct_fields__ if (text := getattr(environment, field)) is not None
    ]
    given = [text for text in (request.model.id, request.model.revision) if text is not None]
    producers = [fact.version for fact in built.report.producer if fact.version is not None]
    checking.check(built.members, here, (*public, *producers, __version__, *command[:2]), given)
    return Prepared(built, tuple(names.replaced.values()), descriptor, failed)


def preview_report(prepared: Prepared) -> "ReportPreview":
    """Return every line that would be written beside what it was made of."""
    from shardscope.engine.report import sides

    return sides.preview(prepared.built, prepared.descriptor, prepared.failed, prepared.key)


def own_error_page(error: BaseException, doing: str) -> str:
    """Return what can be sent to a stranger about an error of our own, as text: no message, no path, no value.

    Raises `Fault` `report.identity` where it holds anything of this machine all the same.
    """
    from shardscope.engine.report import mishaps

    found = installed((*_PACKAGES, *mishaps.LIBRARIES, "shardscope"))
    versions = {name: each.version for name, each in found.items() if name in mishaps.LIBRARIES}
    return mishaps.page(error, doing, environment_now(found), versions, _tool(found))


def write_own_error(target: str, page: str) -> None:
    """Write such a page to `target`, a plain file. Raises `Fault`: `output.exists`, `report.write_failed`."""
    archive.write_page(target, page.encode())


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


def _tool(packages: Mapping[str, Installed]) -> ReportTool:
    own = packages.get("shardscope")
    return ReportTool("shardscope", __version__, None if own is None else own.commit)


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
    known: Descriptor | None,
    limits: Limits,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> Descriptor:
    if request.descriptor is not None:
        earlier = _earlier(request.descriptor, limits)
    elif known is not None:
        earlier = known
    else:
        return inspect(
            path,
            limits=limits,
            digest=request.digest,
            hf_cache=request.hf_cache,
            cancel=cancel,
            progress=progress,
        ).descriptor
    with Source(path, limits=limits, hf_cache=earlier.source.hf_cache) as source:
        inventory = source.walk(cancel=cancel, progress=progress)  # from statuses alone: no file is opened
    now = {
        (exact_text(each.path)[0], each.kind.value, each.size if each.kind is Kind.FILE else 0)
        for each in inventory.entries
    }
    before = {(each.path, each.kind, each.size) for each in earlier.source.entries}
    if before != now:
        file = path_text(os.fsencode(request.descriptor or path))
        raise Fault("report.descriptor_other", file=file, count=len({entry[0] for entry in before ^ now}))
    return earlier


def _earlier(path: str, limits: Limits) -> Descriptor:
    from shardscope.engine.capabilities.reading import read_as

    return read_as(path, Descriptor, limits)


def _origin(
    request: Request, descriptor: Descriptor | None
) -> Literal["made for this report", "made earlier", "none"]:
    if descriptor is None:
        return "none"
    made_here = request.descriptor is None and not building.was_decoded(descriptor)
    return "made for this report" if made_here else "made earlier"

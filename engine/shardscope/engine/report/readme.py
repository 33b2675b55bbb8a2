"""The page for whoever opens a bundle: what it says in short, what each file holds, and what is not in it."""

from collections.abc import Iterator

from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.reports import Degrees, Report
from shardscope.engine.model.text import counted

LISTED = 12
"""Codes that are named before the rest of them is counted."""


def readme(report: Report, descriptor: Descriptor | None) -> str:
    """Return the page as text with line ends."""
    return "\n".join((*_head(report), *_findings(descriptor), *_explained(report, descriptor), ""))


def _head(report: Report) -> Iterator[str]:
    title = (
        "nothing could be examined"
        if report.format is None
        else FORMAT_TITLES.get(report.format, report.format)
    )
    yield "Report about a model checkpoint, made by shardscope"
    yield ""
    yield f"Layout:         {title}"
    if report.status is not None and report.confidence is not None:
        yield f"Verdict:        {report.status.value}, confidence {report.confidence.value}"
    for fact in {(each.name, each.version): each for each in report.producer}.values():
        yield f"Written by:     {fact.name} {fact.version or '(version unknown)'} ({fact.basis.value})"
    known = [
        f"{name} {value}"
        for name in Degrees.__struct_fields__
        if (value := getattr(report.topology, name)) is not None
    ]
    yield f"Topology:       {', '.join(known) or 'not known'}"
    yield f"Wanted:         {report.desired or 'not said'}"
    yield f"First failure:  {report.first_failing_stage or 'none was found'}"
    if report.model.id is not None:
        yield f"Model:          {report.model.id} at {report.model.revision or 'a revision that was not said'}"
    if report.failure is not None:
        yield f"Ended by:       {report.failure.code}: {report.failure.message}"


def _findings(descriptor: Descriptor | None) -> Iterator[str]:
    if descriptor is None:
        return
    source = descriptor.source
    yield f"Files:          {counted(source.files, 'file')}, {source.bytes:,} bytes"
    counts: dict[tuple[int, str], int] = {}
    for item in descriptor.blockers:
        key = (-item.severity.rank, item.code)
        counts[key] = counts.get(key, 0) + 1
    yield ""
    yield "What stands in the way" if counts else "Nothing was found that stands in the way."
    rows = sorted(counts.items())
    for (rank, code), count in rows[:LISTED]:
        severity = next(each for each in Severity if each.rank == -rank)
        yield f"  {severity.value:<8} {code}" + (f" ({count:,} times)" if count > 1 else "")
    if len(rows) > LISTED:
        yield f"  and {counted(len(rows) - LISTED, 'more code')}"


def _explained(report: Report, descriptor: Descriptor | None) -> Iterator[str]:
    yield ""
    yield "What is in here"
    yield "  report.json      versions, the command, the wanted result, the topology in figures, what offset means"
    if descriptor is not None:
        yield "  descriptor.json  the tree of files with sizes and digests, the evidence, the topology, every blocker"
    yield "  manifest.json    size and SHA-256 of the other files"
    yield ""
    yield "`shardscope report show` draws it without the checkpoint; `shardscope explain CODE` says what a code means."
    yield ""
    yield "What is not in here"
    yield "  Values of tensors, absolute paths, names of people and machines, values of the environment, keys and tokens,"
    yield "  addresses, texts of metadata, names of classes that shardscope does not know, and digests of files below 1 MiB."
    yield "  A number in braces, such as {1}, stands for one word of the checkpoint, the same one throughout this report."
    if report.options.without:
        yield f"  Left out by whoever made this report: {', '.join(report.options.without)}."
    if "blockers" in report.options.without:
        yield "  Of blockers their codes are kept: without them the checkpoint would look better than it is."
    if report.options.names == "hash":
        yield "  Names of files and tensors are replaced whole; numbers in them and the endings of files are kept."
    yield "  Nothing of the checkpoint was executed" + (
        ". The descriptor was made earlier, by decoding pickles as data."
        if report.options.decoded
        else " or decoded."
    )

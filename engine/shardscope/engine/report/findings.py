"""Blockers of a report: the sentences of the table of codes once more, over parameters that say nothing about anybody."""

from typing import TYPE_CHECKING, Final

from shardscope.engine.model.blocker import Blocker, Param, parameter_kinds, render
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.reports import ReportFailure
from shardscope.engine.report.names import Names

if TYPE_CHECKING:  # all documents together take as long to import as a report to build
    from shardscope.engine.model.documents import ErrorBody

LEFT_OUT: Final = "[left out]"
"""Stands where free text of the checkpoint stood."""
_REFERENCES: Final = ("reference", "module")
"""Parameters that name what a pickle refers to: outside the closed table, whatever they are made of."""


def blocker(item: Blocker, names: Names) -> Blocker:
    """Return a blocker with the same code and figures. A code that this release does not have keeps no words."""
    row = CODES.get(item.code)
    subject = None if item.subject is None else names.name(item.subject)
    if row is None:
        return Blocker(
            names.word(item.code), item.severity, item.stage, subject, LEFT_OUT, LEFT_OUT, item.blocks, {}
        )
    params = parameters(item.code, item.params, names)
    return Blocker(
        code=row.code,
        severity=item.severity,
        stage=item.stage,
        subject=subject,
        message=render(row.message, params),
        remedy=render(row.remedy, params),
        blocks=row.blocks,
        params=params,
    )


def failure(body: "ErrorBody", names: Names) -> ReportFailure:
    """Return the failure of a command with the same code and figures, and without its notes."""
    row = CODES.get(body.code)
    subject = None if body.subject is None else names.name(body.subject)
    stage = names.word(body.stage)
    if row is None or row.code == "usage.invalid":  # the words of a usage error are those of the command line
        code = names.word(body.code) if row is None else row.code
        return ReportFailure(code, LEFT_OUT, LEFT_OUT, subject, {}, stage)
    params = parameters(row.code, body.params, names)
    return ReportFailure(
        row.code, render(row.message, params), render(row.remedy, params), subject, params, stage
    )


def parameters(code: str, params: dict[str, Param], names: Names) -> dict[str, Param]:
    """Return every parameter that the templates of `code` use, by its kind; what they do not use is left out."""
    row = CODES[code]
    kinds = parameter_kinds(row.message) | parameter_kinds(row.remedy)
    return {name: _parameter(name, kinds[name], params.get(name), names) for name in sorted(kinds)}


def _parameter(name: str, kind: str, value: Param, names: Names) -> Param:
    if value is None:
        return None
    match kind:
        case "bytes" | "count":
            return value if isinstance(value, int) else None
    if isinstance(value, int):
        return value
    if name in _REFERENCES:
        module, dot, last = value.rpartition(".")
        return f"{names.token(module)}{dot}{names.token(last)}"
    match kind:
        case "path" | "name":
            return names.name(value)
        case "text":
            names.drop("free text")
            return LEFT_OUT
    return names.text(value)

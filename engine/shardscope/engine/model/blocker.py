"""What stands in the way, said once and in the same words everywhere.

A `Finding` is a code with its parameters, as a parser or a check states it. A `Blocker` is a finding about a
subject, rendered from the code table (`model/codes`). A `Fault` is the exception that carries a finding where
work cannot go on. Sentences are templates over typed parameters, so that a report can sanitise them.
"""

import string
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.text import counted

Param = int | str | None


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return ("info", "warning", "error").index(self)


class Stage(StrEnum):
    """Where in the work it was found."""

    COMMAND = "command"
    """The command line, the terminal or the output: nothing about a checkpoint."""
    SOURCE = "source"
    PARSE = "parse"
    CLASSIFY = "classify"
    DESCRIBE = "describe"
    DECODE = "decode"
    VALIDATE = "validate"
    ADMIT = "admit"
    MATERIALIZE = "materialize"
    VERIFY = "verify"
    PROMOTE = "promote"


class Blocks(StrEnum):
    """What it stands in the way of."""

    INSPECT = "inspect"
    DECODE = "decode"
    CONVERT = "convert"
    LOAD = "load"


class Code(Struct, frozen=True):
    """One row of the table of codes. A code never changes its meaning.

    `message` and `remedy` are templates. The part after the colon names the kind of the parameter:
    `{file:path}` and `{tensor:name}` come from the checkpoint (a report may replace them), `{found:text}` is free
    text of the checkpoint (a report removes it), `{size:bytes}` is a size, `{count:count}` a number,
    `{count:count file}` a number with its noun and `{word:word}` one of our own words.
    """

    code: str
    severity: Severity
    stage: Stage
    message: str
    remedy: str
    meaning: str
    """For `shardscope explain`: what it means and why it matters, in a few sentences."""
    blocks: tuple[Blocks, ...] = ()
    exit: ExitCode | None = None
    """The exit code that this code calls for, where it is a specific one."""


class Finding(Struct, frozen=True):
    """A code with its parameters: what is wrong, not yet with what."""

    code: str
    params: dict[str, Param] = {}


class Blocker(Struct, frozen=True):
    """Something that stands in the way, as every screen and document shows it."""

    code: str
    severity: Severity
    stage: Stage
    subject: str | None
    """The path (neutralised, relative to the root), or the tensor, that it is about."""
    message: str
    remedy: str
    blocks: tuple[Blocks, ...]
    params: dict[str, Param] = {}

    @property
    def in_the_way(self) -> bool:
        """Whether it is an error on account of which tensors may be missing from a list, or their bytes from the files."""
        return self.severity is Severity.ERROR and not {Blocks.INSPECT, Blocks.LOAD}.isdisjoint(self.blocks)


class Fault(Exception):  # noqa: N818 - a finding on its way to becoming a blocker, not an error of ours
    """Work cannot go on: a finding on its way to becoming a blocker.

    `raise Fault("header.truncated", missing=17)`
    """

    def __init__(self, code: str, /, **params: Param) -> None:
        super().__init__(code)
        self.finding = Finding(code, params)


def human_bytes(count: int) -> str:
    """Return `count` bytes in binary units, with the exact figure where the unit hides it."""
    if abs(count) < 1024:
        return f"{count:,} byte" + ("" if count == 1 else "s")
    import humanize

    return f"{humanize.naturalsize(count, binary=True)} ({count:,} bytes)"


_THIRD: Final = {"are": "is", "were": "was", "have": "has", "do": "does", "reach": "reaches"}
"""Verbs of one thing that do not just end in s."""


def _in_words(value: Param, kind: str) -> str:
    """Return a parameter as its kind asks for; an unknown kind is our own error and raises."""
    kind, _, noun = kind.partition(" ")
    if value is None:
        return noun if kind == "verb" else "unknown"
    match kind:
        case "bytes":
            return human_bytes(int(value))
        case "count":
            return counted(int(value), noun) if noun else f"{int(value):,}"
        case "verb":
            return _THIRD.get(noun, noun + "s") if int(value) == 1 else noun
        case "path" | "name":
            return shown(str(value), 160)
        case "text":
            return shown(str(value), 80, possible=True)
        case "word":
            return str(value)
    raise ValueError(f"unknown kind of parameter: {kind!r}")


@lru_cache(1024)
def _pieces(template: str) -> tuple[tuple[str, str | None, str], ...]:
    """Take a template apart, once for a code and not for each of its blockers: text, then the parameter and its kind."""
    return tuple((text, name, kind or "") for text, name, kind, _ in string.Formatter().parse(template))


def render(template: str, params: Mapping[str, Param]) -> str:
    """Return a sentence of the table of codes with its parameters in place, neutralised and without secrets.

    Raises `KeyError` where a parameter is missing.
    """
    return "".join(
        text if name is None else text + _in_words(params[name], kind)
        for text, name, kind in _pieces(template)
    )


def parameter_kinds(template: str) -> dict[str, str]:
    """Return the parameters of a template and the kind of each; a `verb` only agrees with a parameter that stands elsewhere."""
    kinds = [(name, kind.partition(" ")[0]) for _, name, kind in _pieces(template) if name]
    return {name: kind for name, kind in kinds if kind != "verb"}


def _plain(value: Param, kind: str) -> Param:
    return shown(value, possible=kind == "text") if isinstance(value, str) else value


def blocker(finding: Finding, subject: str | None = None) -> Blocker:
    """Return `finding` about `subject`, in the words of the table of codes.

    `subject` is neutralised here, and is also the template parameter `{file}` unless the finding has its own. What
    looks like a secret is a mark in the subject, the message and the parameters alike (`model/secrets`): to find the
    entry that a blocker is about, compare its subject with `secrets.shown(path)`.
    """
    from shardscope.engine.model.codes import CODES

    row = CODES[finding.code]
    params = {"file": subject, **finding.params}
    used = parameter_kinds(row.message) | parameter_kinds(row.remedy)
    return Blocker(
        code=row.code,
        severity=row.severity,
        stage=row.stage,
        subject=None if subject is None else shown(subject),
        message=render(row.message, params),
        remedy=render(row.remedy, params),
        blocks=row.blocks,
        params={name: _plain(params.get(name), used[name]) for name in sorted(used)},
    )

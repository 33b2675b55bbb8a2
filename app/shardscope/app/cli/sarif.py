"""Blockers as SARIF, the format in which code-scanning services take findings.

Format: OASIS SARIF 2.1.0. A rule for each code that was found, a result for each blocker, no location on any machine: paths are
relative to the checkpoint.
"""

from typing import Any, Final
from urllib.parse import quote

import msgspec

from shardscope.engine.model.blocker import Blocker, Code, Severity
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.text import json_escape
from shardscope.engine.version import __version__

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT: Final = "CHECKPOINT"
"""The base of every path; whoever takes the findings says where that is."""
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(descriptor: Descriptor) -> str:
    """Return the blockers of a descriptor as one SARIF log with one run."""
    return log([run(descriptor)])


def log(runs: list[dict[str, Any]]) -> str:
    """Return runs as one SARIF log."""
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}
    return json_escape(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def run(descriptor: Descriptor, category: str | None = None) -> dict[str, Any]:
    """Return the blockers of a descriptor as one run. `category` tells it from the other runs of a log (`automationDetails`)."""
    rows = sorted({item.code for item in descriptor.blockers})
    numbers = {code: number for number, code in enumerate(rows)}
    paths = {shown(entry.path): entry.path for entry in descriptor.source.entries if entry.path_bytes is None}
    driver = {
        "name": descriptor.tool.name,
        "version": descriptor.tool.version,
        "rules": [_rule(CODES[code]) for code in rows],
    }
    made: dict[str, Any] = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The folder that was inspected."}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, numbers[item.code], paths) for item in descriptor.blockers],
        "properties": {
            "format": descriptor.classification.format,
            "status": descriptor.classification.status.value,
            "confidence": descriptor.classification.confidence.value,
        },
    }
    if category is not None:
        made["automationDetails"] = {"id": category}
    return made


def failed_run(failure: Blocker, code: int, category: str) -> dict[str, Any]:
    """Return the run of a path of which nothing could be examined."""
    notification = {
        "descriptor": {"id": failure.code},
        "level": _LEVELS[failure.severity],
        "message": {"text": f"{failure.message} {failure.remedy}"},
    }
    return {
        "tool": {"driver": {"name": "shardscope", "version": __version__}},
        "automationDetails": {"id": category},
        "invocations": [
            {
                "executionSuccessful": False,
                "exitCode": code,
                "toolExecutionNotifications": [notification],
            }
        ],
        "results": [],
    }


def _rule(row: Code) -> dict[str, Any]:
    return {
        "id": row.code,
        "shortDescription": {"text": row.code},
        "fullDescription": {"text": row.meaning},
        "help": {"text": f"{row.meaning} `shardscope explain {row.code}` says the same."},
        "defaultConfiguration": {"level": _LEVELS[row.severity]},
        "properties": {"stage": row.stage.value},
    }


def _result(item: Blocker, number: int, paths: dict[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": number,
        "level": _LEVELS[item.severity],
        "message": {"text": f"{item.message} {item.remedy}"},
        "properties": {"stage": item.stage.value, "blocks": [part.value for part in item.blocks]},
    }
    path = None if item.subject is None else paths.get(item.subject)
    if path is not None:
        place = {"uri": quote(path), "uriBaseId": ROOT}
        result["locations"] = [{"physicalLocation": {"artifactLocation": place}}]
    elif item.subject is not None:
        result["locations"] = [{"logicalLocations": [{"fullyQualifiedName": item.subject}]}]
    return result

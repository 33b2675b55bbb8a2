"""What every inspection looks at whatever the format: bounded JSON, code, unfinished files, folders in a file's place."""

import re
from collections.abc import Set
from typing import Final

from shardscope.engine.formats import model_config
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.roles import role_of
from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.parse.sniff import unfinished_download

_FILE_NAMES: Final = re.compile(
    r".+\.(safetensors|bin|pt|pth|gguf)|.+\.index\.json|(config|adapter_config|tokenizer_config)\.json"
)


def survey(probe: Probe, claimed: Set[bytes]) -> None:
    """Report what names and JSON files tell beside the formats. `claimed` are the paths that a format described."""
    inventory = probe.inventory
    holders = {path[:end] for path in claimed for end in _ends(path)}
    code: list[Entry] = []
    for entry in inventory.entries:
        if entry.kind is Kind.DIRECTORY and _FILE_NAMES.fullmatch(entry.name) and entry.path not in holders:
            probe.report("layout.folder_as_file", entry)
        if entry.kind is not Kind.FILE:
            continue
        if (finding := unfinished_download(entry.name)) is not None:
            probe.note(finding, entry)
        elif role_of(entry.name) == "code":
            code.append(entry)
        elif model_config.is_known_json(entry.name):
            model_config.check(probe, entry)
    if code:
        probe.report("trust.code_file", code[0], count=len(code), first=code[0].text)


def _ends(path: bytes) -> list[int]:
    """Return where the folders of a path end."""
    return [position for position, byte in enumerate(path) if byte == 0x2F]

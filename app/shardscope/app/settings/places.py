"""Where settings and state are kept, by the XDG base directory specification."""

import os
from collections.abc import Mapping
from typing import Final

NAME: Final = "shardscope"


def _base(environ: Mapping[str, str], variable: str, *default: str) -> str:
    named = environ.get(variable, "")
    if os.path.isabs(named):  # the specification: a relative path is invalid and passed over
        return named
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), *default)


def config_path(environ: Mapping[str, str]) -> str:
    """Return where the file of the settings is, or would be."""
    return os.path.join(_base(environ, "XDG_CONFIG_HOME", ".config"), NAME, "config.toml")


def recent_path(environ: Mapping[str, str]) -> str:
    """Return where recent paths are kept by those who want that."""
    return os.path.join(_base(environ, "XDG_STATE_HOME", ".local", "state"), NAME, "recent.json")

"""Names of the output: a person's ordered rules, and the prefixes that wrappers leave behind."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.plan import RenameRule

WRAPPERS: Final = ("_orig_mod.", "_fsdp_wrapped_module.", "_forward_module.", "module.")
"""What torch.compile, FSDP1, Lightning and data parallelism put before or into names."""
_WILD: Final = re.compile(r"\*\*|\*")
_PLACE: Final = re.compile(r"\{(\d{1,2})\}")


class Renaming:
    """Rules made ready: each name goes through all of them, in order."""

    def __init__(self, rules: Sequence[RenameRule]) -> None:
        self._steps = [_step(number, rule) for number, rule in enumerate(rules, 1)]

    def __call__(self, name: str) -> str:
        """Return the name that the rules make of `name`."""
        for pattern, to in self._steps:
            found = pattern.match(name)
            if found is not None:
                name = _filled(to, found) + name[found.end() :]
        return name


def _step(number: int, rule: RenameRule) -> tuple[re.Pattern[str], str]:
    given = [item for item in (rule.name, rule.prefix, rule.pattern) if item is not None]
    if len(given) != 1:
        raise Fault("convert.rename_rule", number=number, problem="it needs one of name, prefix and pattern")
    if rule.pattern is None:
        end = r"\Z" if rule.name is not None else ""
        wilds, source = 0, re.escape(given[0]) + end
    else:
        wilds = len(_WILD.findall(rule.pattern))
        parts = re.split(_WILD, rule.pattern)
        between = [r"(.*)" if wild == "**" else r"([^.]*)" for wild in _WILD.findall(rule.pattern)]
        source = "".join(re.escape(part) + wild for part, wild in zip(parts, [*between, r"\Z"], strict=True))
    for place in _PLACE.findall(rule.to):
        if not 1 <= int(place) <= wilds:
            raise Fault("convert.rename_rule", number=number, problem=f"there is no {{{place}}} in it")
    return re.compile(source, re.DOTALL), rule.to


def _filled(to: str, found: re.Match[str]) -> str:
    return _PLACE.sub(lambda place: found[int(place[1])], to)


def wrappers_in(names: Iterable[str]) -> dict[str, int]:
    """Return the wrapper prefixes that occur in names, as the start of a name or of one of its parts, and how often."""
    counts: dict[str, int] = {}
    for name in names:
        for wrapper in WRAPPERS:
            if name.startswith(wrapper) or f".{wrapper}" in name:
                counts[wrapper] = counts.get(wrapper, 0) + 1
    return counts


def common_prefix(names: Sequence[str]) -> str | None:
    """Return the first part, with its dot, that all of several names share; null where there is none."""
    if len(names) < 2:
        return None
    first, dot, _ = names[0].partition(".")
    prefix = first + dot
    return prefix if dot and all(name.startswith(prefix) for name in names) else None

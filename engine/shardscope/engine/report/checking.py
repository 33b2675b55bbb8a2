"""The last look at a finished report: does it hold anything of this machine, or the shape of a secret?"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.secret_rules import is_telling
from shardscope.engine.model.secrets import find_secrets, find_secrets_in
from shardscope.engine.report.identity import OWN, Identity

_HEX: Final = re.compile(r"[0-9a-f]{64}")
_APART: Final = "\n" * 32
"""Between texts that are searched together: further than a rule looks back."""
_RUNS: Final = re.compile(r"[^\W_]+")


def check(
    members: Mapping[str, bytes],
    found: Iterable[Identity],
    public: Iterable[str] = (),
    given: Collection[str] = (),
) -> None:
    """Search the finished files of a report, as they are to be written.

    `public` are texts that are in the report on purpose and may stand in the environment as well: versions. `given` are those that
    the person asked to have in it: they may be the name of a folder or a variable, but not of the user or the machine.

    Raises `Fault` `report.identity`, which names the kind of what was found and the file, and never the text.
    """
    passed = set()
    for text in public:
        passed |= {text.lower(), *_RUNS.findall(text.lower())}
    wanted = [each for each in found if each.value not in passed]
    for text in given:
        _search(text.lower(), set(), [each for each in wanted if each.kind in OWN], "what was given")
        for hit in find_secrets(text, possible=False):
            raise Fault("report.identity", kind=hit.kind.value, member="what was given")
    for name, data in members.items():
        value = msgspec.json.decode(data) if name.endswith(".json") else data.decode()
        said: dict[str, dict[str, None]] = {}  # a thousand files say most of what they say alike
        for key, whole in _pairs(value):
            text = whole
            for part in given:
                text = text.replace(part, "")
            said.setdefault(key, {})[text] = None
        texts = set().union(*said.values())
        suspects = {key: list(each) for key, each in said.items() if is_telling(key)}
        plain = {
            text for text in texts if text.isascii()
        }  # others are searched twice, for what hides between letters
        if any(map(find_secrets, texts - plain)) or find_secrets(_APART.join(sorted(plain))):
            suspects = {key: list(each) for key, each in said.items()}
        for place in find_secrets_in(suspects):
            raise Fault("report.identity", kind=place.kind.value, member=name)
        digests = {text for text in texts if _HEX.fullmatch(text)}
        _search("\n".join(sorted(texts - digests)).lower(), digests, wanted, name)


def _search(text: str, digests: set[str], wanted: Iterable[Identity], member: str) -> None:
    for each in wanted:
        hit = each.value in digests or (
            each.value in text
            and (
                each.anywhere or re.search(rf"(?<![^\W_]){re.escape(each.value)}(?![^\W_])", text) is not None
            )
        )
        if hit:
            raise Fault("report.identity", kind=each.kind, member=member)


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every string of a document with the key that it stands under.

    Keys themselves are ours: they are fields of structs and parameters of codes.
    """
    stack = [("", value)]
    while stack:
        key, item = stack.pop()
        if isinstance(item, str):
            yield key, item
        elif isinstance(item, dict):
            stack.extend(item.items())
        elif isinstance(item, list):
            stack.extend((key, each) for each in item)

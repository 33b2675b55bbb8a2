"""Names and texts of a checkpoint, as a report repeats them: common words and numbers stay, everything else is a token.

A token is `{1}`, `{2}`, ... in the order of first appearance: the same word has the same token throughout one report, so that
structure stays visible, and a token is derived from nothing, so that it cannot be guessed back.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.secrets import find_secrets
from shardscope.engine.report.vocabulary import is_common, is_number

Mode = Literal["keep", "hash"]
"""`keep` leaves common words of file and tensor names in place, `hash` replaces those, too. Numbers stay in both."""

SUFFIXES: Final = frozenset(
    ("bin", "ckpt", "csv", "distcp", "gguf", "gz", "h5", "index", "json", "jsonl", "keras", "lock", "md", "metadata", "model",
     "msgpack", "nemo", "npy", "npz", "onnx", "pickle", "pkl", "proto", "pt", "pth", "py", "safetensors", "tar", "toml", "txt",
     "yaml", "yml", "zarr", "zst")
)  # fmt: skip
"""Endings that say what kind of file it is: they stay, whatever the mode."""

_SEPARATORS: Final = re.compile(r"([._/:-]+)")
_LARGE: Final = re.compile(r"\d\d")
_NUMBERED: Final = re.compile(r"(?<![^\W_])(?:\d+(?:\.\d+){3,}|\d+(?:[:-]\d+){2,})(?![^\W_])")
"""Numbers in a row: addresses, dates, cards. Four small ones after points are a chunk of an array."""
_PHRASE: Final = re.compile(r"([\s._/:,*+()-]+)")
_TEXT: Final = re.compile(r"""([\s,;:=×+*()&|'"`\[\]<>!?…·≥≤–#%]+)""")
_HIDDEN: Final = re.compile("\ue000(\\d+)\ue001")
_PRIVATE: Final = re.compile("[\ue000-\uf8ff]")
_ROOTED: Final = re.compile(r"[/~\\]|[A-Za-z]:[/\\]")
_VERSION: Final = re.compile(
    r"\d{1,4}(?:\.\d{1,5}){0,3}(?:\.?(?:a|b|rc|dev|post)\d{1,3})?(\+(?:cpu|cu\d{2,3}|rocm[\d.]{1,6}))?(?![\w.])"
)


class Replacement(Struct, frozen=True):
    """One token of a report and what it stands for. It is shown to the person who makes the report, and never written."""

    token: str
    original: str
    reason: str
    """`name` for an uncommon word, `path` for an absolute path, otherwise the kind of secret."""


class Names:
    """The names of one report: every text of the checkpoint passes here, and each gets the same tokens everywhere.

    `private` are texts that are tokens although each of their words is a common one: the name of this machine.
    """

    def __init__(self, mode: Mode = "keep", private: Iterable[str] = ()) -> None:
        self.mode: Final = mode
        longest = sorted(private, key=lambda text: (-len(text), text))
        pattern = "|".join(map(re.escape, longest))
        self._private = re.compile(rf"(?i)(?<![^\W_])(?:{pattern})(?![^\W_])") if longest else None
        self.replaced: dict[str, Replacement] = {}
        """By what was replaced, in order."""
        self.dropped: Counter[str] = Counter()
        """What was left out without a token, by reason."""
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._words: dict[str, str] = {}

    def name(self, text: str) -> str:
        """Return a file's path, a tensor's name or a part of one."""
        found = self._names.get(text)
        if found is None:
            listed = self._hidden(text).split(", ")  # a parameter can list several
            found = self._names[text] = self._visible(", ".join(map(self._name, listed)))
        return found

    def title(self, text: str) -> str:
        """Return what a part is called: words of ours, or the name of a file, which `hash` replaces."""
        return self.text(text) if self.mode == "keep" else self.name(text)

    def text(self, text: str) -> str:
        """Return a sentence of ours that may quote the checkpoint."""
        found = self._texts.get(text)
        if found is None:
            parts = _TEXT.split(self._hidden(text))
            found = self._visible("".join(part if i % 2 else self._run(part) for i, part in enumerate(parts)))
            self._texts[text] = found
        return found

    def word(self, text: str) -> str:
        """Return a word of a closed list of ours: a format, a kind, a type. It is replaced only where it is none."""
        found = self._words.get(text)
        if found is None:
            parts = _PHRASE.split(self._hidden(text))
            found = self._visible(
                "".join(
                    part if i % 2 or is_common(part) else self._token(part) for i, part in enumerate(parts)
                )
            )
            self._words[text] = found
        return found

    def version(self, text: str | None) -> str | None:
        """Return a version where it is one and nothing more; a label behind it only where it is a common one."""
        if text is None:
            return None
        match = _VERSION.match(text)
        return None if match is None else match[0]

    def token(self, text: str) -> str:
        """Return the token of a whole text, whatever it is made of."""
        return self._visible(self._token(text))

    def drop(self, reason: str) -> None:
        """Count something that is left out and has no token."""
        self.dropped[reason] += 1

    def _hidden(self, text: str) -> str:
        """Return `text` with its secrets as private characters that nothing below takes apart."""
        text = _PRIVATE.sub("�", text)
        if self._private is not None:
            text = self._private.sub(lambda match: self._token(match[0], "this machine"), text)
        hits = find_secrets(text)
        if not hits:
            return self._without_rows(text)
        parts: list[str] = []
        end = 0
        for hit in hits:
            parts += (text[end : hit.start], self._token(text[hit.start : hit.end], hit.kind.value))
            end = hit.end
        return self._without_rows("".join((*parts, text[end:])))

    def _without_rows(self, text: str) -> str:
        """Return `text` with a token for each row of numbers that could be somebody's."""
        return _NUMBERED.sub(
            lambda match: self._token(match[0]) if _LARGE.search(match[0]) else match[0], text
        )

    def _visible(self, text: str) -> str:
        return _HIDDEN.sub(lambda match: f"{{{match[1]}}}", text)

    def _token(self, original: str, reason: str = "name") -> str:
        if not original or _HIDDEN.fullmatch(original):
            return original
        if _HIDDEN.search(original):
            original = self._visible(original)
        known = self.replaced.get(original)
        if known is None:
            known = Replacement(f"{{{len(self.replaced) + 1}}}", original, reason)
            self.replaced[original] = known
        return f"\ue000{known.token[1:-1]}\ue001"

    def _name(self, text: str) -> str:
        if _ROOTED.match(text) and text not in ("/", "~"):
            return self._token(text, "path")
        parts = _SEPARATORS.split(text)
        last = len(parts) - 1
        for i in range(0, len(parts), 2):
            if self._stays(parts[i]) or (
                i == last and i and parts[i - 1] == "." and parts[i].lower() in SUFFIXES
            ):
                continue
            parts[i] = self._token(parts[i])
        return "".join(parts)

    def _stays(self, part: str) -> bool:
        return is_common(part) if self.mode == "keep" else is_number(part)

    def _run(self, run: str) -> str:
        """Return one word of a sentence; what has separators in it is a name."""
        if is_common(run.rstrip(".")):
            return run
        end = len(run.rstrip("."))
        return self._name(run[:end]) + run[end:]

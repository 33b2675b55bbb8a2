"""The sentences of the table of codes before anything is put in."""

import string


def readable(template: str) -> str:
    """Return a template with `{file:path}` written as `FILE`, and `{count:count tensor}` as `COUNT tensors`."""
    parts = []
    for text, name, kind, _ in string.Formatter().parse(template):
        word, _, noun = (kind or "").partition(" ")
        told = (name or "").upper() + (f" {noun}s" if noun else "")
        parts.append(text + (noun if word == "verb" else told))
    return "".join(parts)

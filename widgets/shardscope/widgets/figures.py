"""Numbers for people: binary units, short enough for a column."""

from functools import lru_cache


@lru_cache(maxsize=4_096)
def size(count: int | None) -> str:
    """Return bytes in binary units, `unknown` for None."""
    if count is None:
        return "unknown"
    if abs(count) < 1024:
        return f"{count} B"
    import humanize  # 30 ms that a screen without sizes does not wait for

    return humanize.naturalsize(count, binary=True)


def number(count: int | None) -> str:
    """Return a count with its thousands apart, `unknown` for None."""
    return "unknown" if count is None else f"{count:,}"


def plural(count: int, word: str, words: str | None = None) -> str:
    """Return a count with its noun: `1 file`, `1,204 files`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def duration(seconds: float) -> str:
    """Return a time in the two largest units that matter: `8 s`, `2 min 05 s`, `3 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min"

"""What the explorer looks at, and the commands that say the same without a screen."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.engine.model.text import is_altered

if TYPE_CHECKING:
    from shardscope.engine.model.decoded import Listed

_ESCAPES: Final = {"\\": "\\\\", "'": "\\'"}


class Target(Struct, frozen=True):
    """One checkpoint to look at and how far to look."""

    path: str
    """As the person gave it; bytes that are not UTF-8 stand as surrogates (`os.fsdecode`)."""
    limits: Limits = Limits()
    hf_cache: bool = False
    decode_limits: DecodeLimits = DecodeLimits()
    """In force where decoding is asked for."""


class Asked(Struct, frozen=True):
    """What a person had decoded: for the commands that say the same. It is no consent to do it again."""

    listed: "Listed" = "model"
    checksums: bool = False


def _escaped(char: str) -> str:
    if not is_altered(char):
        return _ESCAPES.get(char, char)
    code = ord(char)
    raw = bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else char.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in raw)


def quoted(argument: str) -> str:
    r"""Return `argument` as one word of a shell command that is safe to show and to paste.

    What `shlex.quote` would pass through raw (a line break, an escape, a byte that is not UTF-8) stands as `\\xNN`
    inside `$'...'`, which bash, zsh, ksh and POSIX.1-2024 shells read back as the same bytes.
    """
    if not is_altered(argument):
        return shlex.quote(argument)
    word = "".join(_escaped(char) for char in argument)
    return f"$'{word}'"


def _operand(path: str) -> str:
    return quoted(f"./{path}" if path.startswith("-") else path)


def options(target: Target) -> list[str]:
    """Return the options that make a command look at `target` as the explorer does."""
    words = ["--hf-cache"] if target.hf_cache else []
    for bounds in (target.limits, target.decode_limits):
        defaults = msgspec.to_builtins(type(bounds)())
        for name, value in msgspec.to_builtins(bounds).items():
            if value != defaults[name]:
                words += ["--limit", f"{name}={value}"]
    return words


def _decoding(asked: Asked | None) -> list[str]:
    if asked is None:
        return []
    return ["--decode", "--component", asked.listed]


def inspect_command(target: Target, *, digest: str = "auto", asked: Asked | None = None) -> str:
    """Return the `shardscope inspect` that prints what the explorer shows, decoded where that was `asked` for."""
    words = ["shardscope", "inspect", _operand(target.path), *options(target), *_decoding(asked)]
    if asked is not None and asked.checksums:
        words.append("--checksums")
    if digest != "auto":
        words += ["--digest", digest]
    return " ".join(words)


def convert_words(target: Target, command: str = "convert") -> list[str]:
    """Return the words that begin a `shardscope convert` or `reshard` of `target`, without where to."""
    return ["shardscope", command, _operand(target.path), *options(target)]


def verify_command(source: Target, out: str, *, decoded: bool) -> str:
    """Return the command that holds the output at `out` against its source once more."""
    words = ["shardscope", "verify", _operand(out), "--against", _operand(source.path), *options(source)]
    return " ".join([*words, "--decode"] if decoded else words)


def diff_command(
    first: Target, second: str, *, values: bool, decoded: bool, component: "Listed", adapter: str = ""
) -> str:
    """Return the `shardscope diff` of `first` and the checkpoint at `second`; with the path of an `adapter` that was merged."""
    words = ["shardscope", "diff", _operand(first.path), _operand(second), *options(first)]
    if decoded:
        words.append("--decode")
    if component != "model":
        words += ["--component", component]
    if adapter:
        words += ["--adapter", _operand(adapter)]
    return " ".join([*words, "--values"] if values else words)


def model_command(target: Target, case: list[str], *, asked: Asked | None, base: str | None) -> str:
    """Return the `shardscope model` of `target`; `case` are the options of what is counted."""
    words = ["shardscope", "model", _operand(target.path), *options(target)]
    if asked is not None:
        words.append("--decode")
    if base is not None:
        words += ["--base", quoted(base)]
    return " ".join([*words, *case])


def scan_command(target: Target, *, asked: Asked | None, component: "Listed") -> str:
    """Return the `shardscope scan` of `target`."""
    words = ["shardscope", "scan", _operand(target.path), *options(target)]
    if asked is not None:
        words.append("--decode")
    return " ".join([*words, "--component", component] if component != "model" else words)


def peek_command(target: Target, name: str, words: Sequence[str], *, decoded: bool) -> str:
    """Return the `shardscope peek` of a tensor of `target`, with options of its own."""
    given = [*options(target), *(["--decode"] if decoded else []), *words]
    if name.startswith("-"):
        return " ".join(["shardscope", "peek", *given, "--", _operand(target.path), quoted(name)])
    return " ".join(["shardscope", "peek", _operand(target.path), quoted(name), *given])


def tensors_command(
    target: Target, pattern: str | None = None, order: str | None = None, *, asked: Asked | None = None
) -> str:
    """Return the `shardscope tensors` that lists the names matching the glob `pattern`, by `name` or `bytes`."""
    words = ["shardscope", "tensors", _operand(target.path), *options(target), *_decoding(asked)]
    if pattern:
        words += ["--filter", quoted(pattern)]
    if order:
        words += ["--sort", order]
    return " ".join(words)


def layout_command(target: Target, file: str, asked: Asked | None) -> str:
    """Return the `shardscope layout` of one file, by its path in the checkpoint."""
    words = ["shardscope", "layout", _operand(target.path), _operand(file), *options(target)]
    return " ".join([*words, *_decoding(asked)])


def pickles_command(target: Target, asked: Asked | None) -> str:
    """Return the `shardscope pickles` that says what the decoded pickles say."""
    return " ".join(["shardscope", "pickles", _operand(target.path), *options(target), *_decoding(asked)])

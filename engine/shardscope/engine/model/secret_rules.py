"""What secrets and private places look like: one closed table of rules, cheap to rule out.

A rule names lower-case anchors that must stand in the text before its pattern is even compiled, so that an ordinary
tensor name costs some substring searches and nothing else. Patterns start at places that cannot repeat inside one
run (a look-behind, or a bounded count), which keeps them linear on hostile text of any length.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple


class SecretKind(StrEnum):
    """What a hit looks like, in the words that stand in its place."""

    PRIVATE_KEY = "private key"
    HF_TOKEN = "hf token"  # noqa: S105 - the kind, not one of them
    GITHUB_TOKEN = "github token"  # noqa: S105
    API_KEY = "api key"
    AWS_KEY_ID = "aws key id"
    JWT = "jwt"
    BEARER = "bearer token"
    URL_LOGIN = "url login"
    EMAIL = "e-mail"
    HOME = "home path"
    HOST = "host name"
    ADDRESS = "ip address"
    NAMED = "secret value"
    """A value under a telling name: a password, an access token, a signature."""
    POSSIBLE = "possible key"
    """The shape of a key that harmless values have too: 40 hexadecimal digits, 40 characters of base64."""


class Rule(NamedTuple):
    """One shape. The first group of the pattern is the hit, the whole match where it has none."""

    kind: SecretKind
    anchors: tuple[str, ...]
    """Lower-case strings of which the lower-cased text must hold one."""
    pattern: str
    accept: Callable[[re.Match[str]], bool] | None = None
    """A last look at the match, for what a pattern cannot say."""


compiled: Final = cache(re.compile)
"""`re.compile`, once for each pattern and only when a text calls for it."""


_TELLING: Final = (
    "(?<![a-z])(?:passwords?|passwd|passphrase|pwd|secrets?|credentials?|authorization"
    "|(?:api|access|secret|private|auth|account|encryption|signing|ssh|wandb|master)_?keys?"
    "|(?:hub|hf|huggingface|api|access|auth|refresh|bearer|github|gitlab|git|push|oauth|login|wandb|personal"
    "|security|deploy)_?token)(?![a-z])"
)
_STEMS: Final = ("pass", "pwd", "secret", "cred", "key", "token", "auth")
_IN_QUERY: Final = frozenset(("key", "code", "sig", "signature", "credential", "token"))


def is_telling(name: str) -> bool:
    """Tell whether `name` alone says that its value is a secret: `password`, `hubToken`, `api-key`.

    Names of the field that only sound alike are not: `eos_token`, `max_new_tokens`, `num_key_value_heads`.
    """
    name = name[:256]
    lowered = name.lower()
    if not any(stem in lowered for stem in _STEMS):
        return False
    words = "_".join(compiled("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall(name)).lower()
    return words == "token" or compiled(_TELLING).search(words) is not None


def names_secret(name: str, value: str) -> bool:
    """Tell whether `value` under `name` is a secret, and no placeholder such as `<HUB_TOKEN>` or `${TOKEN}`.

    A bare `token` is mostly a piece of text: it counts from 12 characters on.
    """
    if not is_telling(name) or (name.lower() == "token" and len(value) < 12):
        return False
    placeholder = r"\s*(?:|<.*>|\$?\{.*\}|\$[A-Z_]+|\*+|(?i:none|null|true|false))\s*"
    return compiled(placeholder).fullmatch(value) is None


def _named(match: re.Match[str]) -> bool:
    name, value = match["name"], match["value"]
    if match.string[match.start() - 1 : match.start()] in ("?", "&"):  # in the query of a URL
        plain = name.rpartition("-")[2].lower()  # of X-Amz-Signature, X-Goog-Credential
        if plain in _IN_QUERY:
            return True
    return names_secret(name, value)


def _spelt_out(match: re.Match[str]) -> bool:
    # `password: x` in prose and YAML; `token: x` is what every parser's error message says
    return match["name"].lower() != "token" and names_secret(match["name"], match["value"])


def _ipv4(match: re.Match[str]) -> bool:
    octets = [int(part) for part in match[1].split(".")]
    if max(octets) > 255 or octets[0] in (0, 127, 255):  # nobody's address, this host, a mask
        return False
    local = octets[:2] == [192, 168] or (octets[0] == 172 and 16 <= octets[1] <= 31)
    # four numbers are also a version: `v8.9.2.26`, `nccl-2.18.3.1`, `1.2.3.4-rc`, `torch==2.1.0.1`
    before = match.string[max(0, match.start() - 9) : match.start()].lower()
    versioned = compiled(r"[a-z_+-]\Z|==\s?\Z|version[ :=]\Z").search(before) or compiled(
        "[A-Za-z_+-]"
    ).match(match.string, match.end())
    return local or versioned is None


def _ipv6(match: re.Match[str]) -> bool:
    text = match[0]
    groups = sum(1 for group in text.split(":") if group)
    return (groups < 8 and text.count("::") == 1) or (groups == 8 and "::" not in text)


def _inner_host(match: re.Match[str]) -> bool:
    labels = match[0].split(".")
    if any(label.isdigit() for label in labels):  # `layers.0.local` is a tensor
        return False
    numbered = compiled("[0-9-]").search(match[0]) is not None
    return numbered or match[0].endswith("cluster.local") or (len(labels) > 2 and labels[-1] != "local")


def _random_base64(match: re.Match[str]) -> bool:
    key = match[0]
    if not (
        compiled("[a-z]").search(key) and compiled("[A-Z]").search(key) and compiled("[0-9]").search(key)
    ):
        return False
    # 40 random characters of 64 hold about 4.8 bits each, a path or words of the same length below 4.2
    return -sum(n / len(key) * math.log2(n / len(key)) for n in Counter(key).values()) > 4.3


def _no_revision(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 24) : match.start()]
    return compiled("(?i)commit|revision|rev|sha|hash|git|blob|snapshot|digest").search(before) is None


_SEPARATOR: Final = r"(?:[/\\]+|%2[Ff]|%5[Cc])"
_USER: Final = r"(?!\[)(?:[^/\\\s\"'<>|:;,()\[\]%]+)"
_MARK: Final = r"\[[a-z -]+\]"
_MACHINE: Final = "gpu|node|login|worker|compute|dgx|hgx|host|nid|ec2|vm|slurm"
_PUBLIC_SUFFIX: Final = "com|net|org|edu|gov|mil|cloud|dev|io|ai|uk|de|fr|ch|nl|eu|se|fi|jp|cn|kr|au|ca"
_INNER_SUFFIX: Final = "internal|local|localdomain|lan|corp|intranet|invalid|home\\.arpa"
_TAIL: Final = r"PRIVATE KEY(?: BLOCK)?-----"

RULES: Final = (
    Rule(
        SecretKind.PRIVATE_KEY,
        ("private key",),
        rf"(?s)-----BEGIN [A-Z ]*{_TAIL}.*?(?:-----END [A-Z ]*{_TAIL}|\Z)"
        rf"|\A(?:(?!-----BEGIN ).)*-----END [A-Z ]*{_TAIL}",  # a text cut before its middle
    ),
    Rule(SecretKind.HF_TOKEN, ("hf_", "api_org_"), "(?:hf|api_org)_[A-Za-z0-9]{20,}"),
    Rule(
        SecretKind.GITHUB_TOKEN,
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        "(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}",
    ),
    Rule(
        SecretKind.API_KEY,
        ("sk-", "sk_", "glpat-", "xox", "aiza", "nvapi-", "npm_", "pypi-", "wandb_v"),
        r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{0,32}?[A-Za-z0-9]{16}[A-Za-z0-9_-]*"
        r"|sk_(?:live|test)_[A-Za-z0-9]{16,}|glpat-[A-Za-z0-9_-]{20,}|xox[abeprs]-[A-Za-z0-9-]{10,}"
        r"|AIza[A-Za-z0-9_-]{35}|nvapi-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{40,}"
        r"|wandb_v\d_[A-Za-z0-9_]{30,}",
    ),
    Rule(
        SecretKind.AWS_KEY_ID,
        ("akia", "asia", "aroa", "aida", "abia", "acca"),
        "(?<![A-Z0-9])(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])",
    ),
    Rule(
        SecretKind.JWT,
        ("eyj",),
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    ),
    Rule(SecretKind.BEARER, ("bearer",), r"(?i)bearer[\s:=⏎→]{1,4}([A-Za-z0-9._~+/-]{16,}=*)"),
    Rule(
        SecretKind.NAMED,
        ("authorization",),
        r"(?i)authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|token|digest)\s{1,4}([^\s\"',;]{4,})",
    ),
    Rule(
        SecretKind.URL_LOGIN,
        ("@",),
        # normalised paths lose one of the two slashes; a password may hold an `@` and even a slash
        r"(?<=[A-Za-z0-9]):/{1,3}(?:([^\s/?#\"'<>]+)@|([^\s/?#\"'<>@:\[]+:(?!\d+[/?#])[^\s\"'<>@]{0,128})@)",
    ),
    Rule(
        SecretKind.EMAIL,
        ("@",),
        r"(?<![\w.+%-])(?!git@)[\w.+%-]+@(?:[^\W_][\w-]{0,62}\.){1,16}[^\W\d_]{2,24}(?!\w)",
    ),
    Rule(
        SecretKind.HOME,
        ("home", "users", "~"),
        rf"(?:(?<![\w.-])|(?<=%2[Ff])|(?<=%5[Cc]))(?:(?:home|Users|(?<=[/\\])users){_SEPARATOR}"
        rf"(?:(?<=\\)(?!\[)[^/\\\"<>|:*?\r\n\[\]]{{1,64}}(?=\\)|{_USER})"
        r"|(?<!/)~[A-Za-z][\w.-]*(?=[/\\])"
        r"|(?<![/\\])home\.[A-Za-z_]\w*(?=\.\w))",  # a module path as code below a home folder gets
    ),
    Rule(
        SecretKind.HOST,
        tuple("." + suffix for suffix in _INNER_SUFFIX.replace("\\", "").split("|")),
        rf"(?i)(?<![\w.-])(?:[a-z0-9-]{{1,63}}\.){{1,16}}(?:{_INNER_SUFFIX})(?![\w-]|\.\w)",
        _inner_host,
    ),
    Rule(
        SecretKind.HOST,
        tuple(_MACHINE.split("|")),
        rf"(?i)(?<![\w.-])(?:[a-z]{{1,30}}-){{0,4}}(?:{_MACHINE})[a-z]{{0,20}}-?\d[a-z0-9-]{{0,60}}"
        rf"(?:\.[a-z0-9-]{{1,63}}){{1,8}}\.(?:{_PUBLIC_SUFFIX})(?![\w-]|\.\w)",
    ),
    Rule(
        SecretKind.HOST,
        ("://",),
        r"(?i)(?:https?|ssh|tcp|udp|grpc|ftp|redis|mongodb|postgresql)://(?:[^\s/@\"'<>]{0,128}@)?"
        r"(?!localhost\b)([a-z][a-z0-9-]*)(?=[:/?#\s\"'>]|\Z)",
    ),
    Rule(SecretKind.HOST, ("ip-",), r"(?i)(?<![a-z0-9])ip-\d{1,3}(?:-\d{1,3}){3}(?![\w-])"),
    Rule(SecretKind.ADDRESS, (".",), r"(\d(?<![\d.]\d)\d{0,2}(?:\.\d{1,3}){3})(?!\d|\.\w)", _ipv4),
    Rule(
        SecretKind.ADDRESS,
        (":",),
        # global, unique local and link local addresses: `::1` is nobody's and `a[1::2]` is a slice
        r"(?i)(?<![\w:.])(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2})(?::{1,2}[0-9a-f]{1,4}){1,7}(?:::)?(?![\w:])",
        _ipv6,
    ),
    Rule(
        SecretKind.NAMED,
        ("=",),
        rf"(?<![\w.-])(?P<name>[\w.-]+)[\"']?\s{{0,4}}=\s{{0,4}}[\"']?(?P<value>(?!{_MARK})[^\s\"'&;,#]+)",
        _named,
    ),
    Rule(
        SecretKind.NAMED,
        ('":', "':", '" :'),
        rf"(?<=[\"'])(?P<name>[A-Za-z_][\w.-]{{0,99}})\\?[\"']\s{{0,4}}:\s{{0,4}}\\?[\"'](?P<value>(?!{_MARK})[^\"'\\]+)",
        _named,
    ),
    Rule(
        SecretKind.NAMED,
        (":",),
        rf"(?<![\w.-])(?P<name>[\w.-]+):\s{{0,4}}(?P<value>(?!{_MARK})[^\s\"'&;,#/][^\s\"'&;,#]*)",
        _spelt_out,
    ),
)
"""Shapes that are hardly ever anything else, in order of precedence."""

POSSIBLE_RULES: Final = (
    Rule(SecretKind.POSSIBLE, ("",), "(?<![A-Za-z0-9/_.-])[0-9a-f]{40}(?![A-Za-z0-9/_.-])", _no_revision),
    Rule(
        SecretKind.POSSIBLE, ("",), "(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])", _random_base64
    ),
)
"""Shapes of keys that a git revision or other base64 text has too."""

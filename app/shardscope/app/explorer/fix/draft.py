"""What a person has chosen of a fix so far, and the command that does the same: pure, so that every choice is tested without a screen."""

from typing import Final

from msgspec.structs import replace

from shardscope.app.explorer.output.destination import Destination, conduct_words, size_word
from shardscope.app.explorer.target import Target, convert_words, quoted
from shardscope.engine.model.fix import FixOptions
from shardscope.engine.model.plan import RenameRule
from shardscope.engine.model.repair import REPAIRS, Repair

_USUAL: Final = FixOptions()


class Draft(Destination, frozen=True, kw_only=True):
    """A fix as far as it was chosen."""

    chosen: tuple[Repair, ...] = ()
    """In the order in which they are applied."""
    files: tuple[str, ...] = ()
    """Globs on names of weight files; none: the files of the one set."""
    drop: tuple[str, ...] = ()
    untie: bool = False
    rules_file: str | None = None
    """Whose rules `rules` are."""
    rules: tuple[RenameRule, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """Old and new names of single tensors."""
    prefixes: tuple[str, ...] = ()
    """That names begin with and shall not."""
    set: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    strip: bool = False
    max_shard_bytes: int = _USUAL.max_shard_bytes
    memory_bytes: int = _USUAL.memory_bytes

    @property
    def lacking(self) -> tuple[Repair, ...]:
        """Operations that were chosen and do nothing yet: nothing says what."""
        said = {
            "drop": bool(self.drop),
            "rename": bool(self.rules or self.pairs or self.prefixes),
            "metadata": bool(self.set or self.unset or self.strip),
        }
        return tuple(repair for repair in self.chosen if not said.get(repair, True))

    @property
    def what(self) -> tuple[Repair, ...]:
        """Operations that do something."""
        return tuple(repair for repair in self.chosen if repair not in self.lacking)


def with_operation(draft: Draft, repair: Repair, *, on: bool = False) -> Draft:
    """Return a draft with an operation, or without it where it was chosen and is not to stay `on`; one file and many exclude each other."""
    if on and repair in draft.chosen:
        return draft
    chosen = set(draft.chosen) ^ {repair}
    if repair in chosen and repair in ("split", "merge"):
        chosen -= {"split", "merge"} - {repair}
    return replace(draft, chosen=tuple(each for each in REPAIRS if each in chosen))


def options_of(draft: Draft) -> FixOptions:
    """Return what the engine is asked for."""
    return FixOptions(
        what=draft.what,
        files=draft.files,
        drop=draft.drop,
        untie=draft.untie,
        renames=(
            *draft.rules,
            *(RenameRule(to=new, name=old) for old, new in draft.pairs),
            *(RenameRule(to="", prefix=prefix) for prefix in draft.prefixes),
        ),
        set=draft.set,
        unset=draft.unset,
        strip=draft.strip,
        max_shard_bytes=draft.max_shard_bytes,
        memory_bytes=draft.memory_bytes,
    )


def same_plan(one: Draft, other: Draft) -> bool:
    """Tell whether two drafts have the same plan: they differ at most in where it goes, and in what no operation of theirs looks at."""
    return options_of(one) == options_of(other)


def command_of(draft: Draft, target: Target) -> str:
    """Return the command that does what was chosen. `OUT` stands for a target that was not chosen yet."""
    words = [*convert_words(target, "fix"), draft.operand]
    for glob in draft.files:
        words += ["--file", quoted(glob)]
    for repair in draft.what:
        words += ["--what", repair, *_options(draft, repair)]
    if draft.memory_bytes != _USUAL.memory_bytes:
        words += ["--memory", size_word(draft.memory_bytes)]
    return " ".join([*words, *conduct_words(draft)])


def _options(draft: Draft, repair: Repair) -> list[str]:
    words: list[str] = []
    match repair:
        case "drop":
            for glob in draft.drop:
                words += ["--tensor", quoted(glob)]
            words += ["--untie"] if draft.untie else []
        case "rename":
            words += ["--rename", quoted(draft.rules_file)] if draft.rules_file is not None else []
            for old, new in draft.pairs:
                words += ["--rename-tensor", quoted(f"{old}={new}")]
            for prefix in draft.prefixes:
                words += ["--strip-prefix", quoted(prefix)]
        case "metadata":
            words += ["--strip-metadata"] if draft.strip else []
            for key in draft.unset:
                words += ["--unset", quoted(key)]
            for key, value in draft.set:
                words += ["--set", quoted(f"{key}={value}")]
        case "split" if draft.max_shard_bytes != _USUAL.max_shard_bytes:
            words += ["--max-shard-size", size_word(draft.max_shard_bytes)]
    return words

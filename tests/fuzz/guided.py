"""One target under atheris: coverage of the engine's own code leads the mutations. For `.venv-nightly`, which has atheris.

    python -m tests.fuzz.guided TARGET FOLDER [FOLDER ...] [libFuzzer options]

The folders hold the inputs that it begins with; the first one gets those that open a new way.
"""

import importlib
import pkgutil
import random
import sys

import atheris

with atheris.instrument_imports(include=["shardscope.engine"]):
    from shardscope.engine import parse

    for module in pkgutil.walk_packages(parse.__path__, f"{parse.__name__}."):
        importlib.import_module(
            module.name
        )  # parsers import parts of theirs when they need them: too late to be instrumented
    from tests.fuzz import targets
    from tests.fuzz.attempt import attempt
    from tests.fuzz.mutating import restructured


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer's own options end it. Does not return."""
    target = targets.TARGETS[arguments[0]]

    def one(data: bytes) -> None:
        attempt(target, data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        if seed % 2:
            made = restructured(random.Random(seed), data)
            if made is not None:
                return made[:most]
        return bytes(atheris.Mutate(data, most))

    options = [f"-max_len={targets.LONGEST}", "-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1"]
    extra = {"custom_mutator": mutate} if target.textual else {}
    atheris.Setup([sys.argv[0], *options, *arguments[1:]], one, **extra)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])

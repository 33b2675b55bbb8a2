"""SHA-256 of 8 files of 128 MiB in the page cache, two threads against one `openssl dgst -sha256` process.

The bar is a rate of at least 1.7 times: a ratio of times of at most 1 / 1.7. The peak memory that hashing adds is printed too.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from shardscope.engine.source.source import Source

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure

FILES, SIZE = 8, 128 << 20
BAR = 1 / 1.7


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"model-{n:05}-of-{FILES:05}.safetensors" for n in range(1, FILES + 1)]
        block = os.urandom(1 << 20)
        for number, path in enumerate(paths):
            with path.open("wb") as file:
                for _ in range(SIZE >> 20):
                    file.write(number.to_bytes(8, "little") + block[8:])

        def openssl() -> None:
            subprocess.run(["openssl", "dgst", "-sha256", *paths], stdout=subprocess.DEVNULL, check=True)

        def digests() -> None:
            with Source(folder) as source:
                if len(source.digests(source.walk().files)) != FILES:
                    raise SystemExit("not every file was hashed")

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = measure("digests of 1 GiB by openssl", openssl, digests, bar=BAR)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"rate {1 / result.median:.2f} times that of openssl; peak memory grew by {grown:,} KiB")


if __name__ == "__main__":
    main()

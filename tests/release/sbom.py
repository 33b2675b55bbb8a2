"""Writes the bill of materials of a release, as CycloneDX JSON, from the lock alone.

    python tests/release/sbom.py [FOLDER]     FOLDER/shardscope-VERSION.cdx.json, otherwise in dist/

No network, no clock: the same lock gives the same bytes. Every distribution that `requirements.lock` pins for running stands in it, with
its hashes, the marker of where it is installed, and what needs it; those that only build are left out.
"""

import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(
    r"(?m)^([a-z0-9-]+)==([^ ;\\\n]+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)((?:    # .*\n)*)"
)
EPOCH = 1580601600
"""The time that hatchling dates everything to, unless SOURCE_DATE_EPOCH says another."""


@dataclass(frozen=True)
class Pin:
    """One pinned distribution of the lock."""

    name: str
    version: str
    marker: str | None
    """Where it is installed; null for everywhere."""
    hashes: tuple[str, ...]
    """SHA-256 of the files that may be installed."""
    needed_by: frozenset[str]
    """Names of distributions; what this project needs itself carries the name of this project."""

    @property
    def purl(self) -> PackageURL:
        return PackageURL("pypi", None, self.name, self.version)


def pins(lock: str) -> Iterator[Pin]:
    """Yield the pins of the text of a lock, as uv writes it."""
    for name, version, marker, hashes, comments in PIN.findall(lock):
        via = re.findall(
            r"[a-z0-9][a-z0-9.-]*(?: \([^)]*\))?(?=$)", comments.replace("# via", "#"), re.MULTILINE
        )
        yield Pin(
            name,
            version,
            marker or None,
            tuple(re.findall(r"[0-9a-f]{64}", hashes)),
            frozenset(each.partition(" ")[0] if "pyproject" not in each else _project(each) for each in via),
        )


def _project(reason: str) -> str:
    """`shardscope` for what the project needs to run, `build` for what only a group of it does."""
    return "build" if reason.startswith("pyproject.toml:") or ":build" in reason else "shardscope"


def running(found: list[Pin]) -> list[Pin]:
    """Return the pins that running needs: what this project names, and whatever those need."""
    kept = {"shardscope"}
    while True:
        more = {pin.name for pin in found if pin.needed_by & kept} | {"shardscope"}
        if more == kept:
            return [pin for pin in found if pin.name in kept]
        kept = more


def version() -> str:
    """Return the version of this tree."""
    path = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["version"][
        "path"
    ]
    found = re.search(r'__version__ = "(.+)"', (ROOT / path).read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(path)
    return found[1]


def bill(lock: str) -> Bom:
    """Return the bill of materials of this version with what `lock` pins."""
    found = running(list(pins(lock)))
    root = Component(
        name="shardscope",
        version=version(),
        type=ComponentType.APPLICATION,
        purl=PackageURL("pypi", None, "shardscope", version()),
        bom_ref="shardscope",
    )
    components = {pin: _component(pin) for pin in found}
    text = "\n".join([version(), *(f"{pin.name}=={pin.version} {' '.join(pin.hashes)}" for pin in found)])
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, text), components=components.values())
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), UTC)
    for name, component in [("shardscope", root), *((pin.name, each) for pin, each in components.items())]:
        bom.register_dependency(
            component, [each for pin, each in components.items() if name in pin.needed_by]
        )
    return bom


def _component(pin: Pin) -> Component:
    files = [
        ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(f"{pin.purl.to_string()}?checksum=sha256:{digest}"),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        )
        for digest in pin.hashes
    ]
    return Component(
        name=pin.name,
        version=pin.version,
        type=ComponentType.LIBRARY,
        purl=pin.purl,
        bom_ref=f"{pin.name}=={pin.version}",
        external_references=files,
        properties=[Property(name="shardscope:marker", value=pin.marker)] if pin.marker else [],
    )


def document(lock: str) -> str:
    """Return the bill as CycloneDX 1.6 JSON."""
    return (
        str(make_outputter(bill(lock), OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2))
        + "\n"
    )


def main(arguments: list[str]) -> int:
    """Write the bill and say where."""
    folder = Path(arguments[0]) if arguments else ROOT / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"shardscope-{version()}.cdx.json"
    text = document((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    target.write_text(text, encoding="utf-8")
    print(f"{target.name}: {text.count('bom-ref') - 1} distributions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

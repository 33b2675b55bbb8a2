"""Builds the static site of docs/: `make site`. Nothing is fetched, and what is built loads nothing from elsewhere.

    python docs/build_site.py [FOLDER]     into FOLDER, otherwise into site/

The pages are read in the repository, too, where they link to files outside of docs/. So they are laid out in a folder of their own
first: pages of the top level and pictures come along, links to files of the source become text, `README.md` becomes `index.md`.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TOP_LEVEL = {
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages from outside of docs/, and what they are called in the site."""
HOME = ("README.md", "docs/README.md")
"""Both lead to the first page."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(?m)^(```+)(\w+)[^\n`]*$")
"""Words behind the language of a block are for the tests."""
FOR_TESTS = re.compile(r"<!-- not run: .*?-->\n", re.DOTALL)
FETCHED = {"src", "srcset", "poster", "data", "action"}
"""Attributes by which a page loads something. `href` does so in `<link>` alone."""


def laid_out() -> dict[str, str]:
    """The page in the site of each Markdown file, by its path in the repository."""
    pages = {
        path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*.md"))
    }
    return {
        path: re.sub(r"(^|/)README\.md$", r"\1index.md", page) for path, page in (pages | TOP_LEVEL).items()
    }


def picture(path: str) -> str:
    """The name in the site of a picture of `snapshots/`."""
    return "pictures/" + re.sub(r"[^\w.]+", "-", PurePosixPath(path).stem.lower()).strip("-") + ".svg"


class Layout:
    """Where everything lies in the site, and what had to come along."""

    def __init__(self) -> None:
        self.pages = laid_out()
        self.files: dict[str, str] = {}
        """Pictures and data that pages show or link to: path in the repository, path in the site."""

    def place(self, path: str) -> str | None:
        """Return where a file of the repository lies in the site, or null where it does not."""
        if path in HOME:
            return "index.md"
        if path in self.pages:
            return self.pages[path]
        if path.startswith("snapshots/"):
            return self.files.setdefault(path, picture(path))
        if path.startswith("docs/") and (ROOT / path).is_file():
            return self.files.setdefault(path, path.removeprefix("docs/"))
        return None

    def rewritten(self, path: str, text: str) -> str:
        """Return a page with its links as they have to be in the site."""

        def link(found: re.Match[str]) -> str:
            mark, says, target = found.groups()
            if re.match(r"[a-z]+:|#", target):
                return found[0]
            file, hash_, anchor = target.partition("#")
            there = normpath(str(PurePosixPath(path).parent / unquote(file)))
            place = self.place(there)
            if place is None:
                return says
            here = PurePosixPath(self.pages[path]).parent
            return f"{mark}[{says}]({relpath(place, str(here))}{hash_}{anchor})"

        parts = re.split(r"(?ms)(^```.*?^```\s*?$)", text)
        linked = "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)
        return FENCE.sub(r"\1\2", FOR_TESTS.sub("", linked))


def lay_out(folder: Path) -> None:
    """Write pages, pictures, theme and configuration into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    layout = Layout()
    for path, page in layout.pages.items():
        target = folder / "pages" / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(layout.rewritten(path, (ROOT / path).read_text(encoding="utf-8")), encoding="utf-8")
    for path, place in layout.files.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    shutil.copytree(DOCS / "theme", folder / "theme")
    shutil.copyfile(DOCS / "zensical.toml", folder / "zensical.toml")


def build(folder: Path, site: Path) -> None:
    """Lay the pages out in `folder`, build them, and put the result in place of `site`.

    Raises `subprocess.CalledProcessError` where a link or an anchor leads nowhere.
    """
    lay_out(folder)
    subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "zensical.toml"],
        cwd=folder,
        check=True,
    )
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(folder / "site", site)


class _Loads(HTMLParser):
    """Collects what a page loads as soon as it is opened, wherever it comes from."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found += [value for name, value in given.items() if name in FETCHED]
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.found.append(given.get("href", ""))
        self.found += re.findall(r"url\(([^)]*)\)", given.get("style", ""))


def outside(site: Path) -> Iterator[str]:
    """Yield what pages, style sheets and pictures of a built site would load from another place, as `FILE: ADDRESS`."""
    elsewhere = re.compile(r"^['\"]?(?:https?:|wss?:|ftp:)?//")
    for path in sorted(site.rglob("*")):
        loads: list[str] = []
        if path.suffix == ".html":
            reader = _Loads()
            reader.feed(path.read_text(encoding="utf-8"))
            loads = reader.found
        elif path.suffix in (".css", ".svg"):
            text = path.read_text(encoding="utf-8")
            loads = re.findall(r"url\(([^)]*)\)", text) + re.findall(r"@import\s+([^;]+)", text)
            loads += re.findall(r"(?:href|src)=\"([^\"#]+)\"", text)
        yield from (
            f"{path.relative_to(site)}: {address}" for address in loads if elsewhere.match(address.strip())
        )


def main(arguments: list[str]) -> int:
    """Build the site, and fail where it would load anything from another place."""
    site = Path(arguments[0]).resolve() if arguments else ROOT / "site"
    build(ROOT / "build" / "site", site)
    found = list(outside(site))
    for line in found:
        print(f"loads from elsewhere: {line}", file=sys.stderr)
    print(
        f"{sum(1 for _ in site.rglob('*.html'))} pages in {site}; for its search, serve it (python3 -m http.server)"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

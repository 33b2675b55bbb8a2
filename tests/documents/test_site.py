"""The site builds without network, its links lead somewhere, and a browser that opens it asks nobody else for anything."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs import build_site

from tests.once import once


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        # Whatever would be fetched is sent to a place where nobody answers.
        with pytest.MonkeyPatch.context() as patch:
            for name in ("http_proxy", "https_proxy", "all_proxy"):
                patch.setenv(name, "http://127.0.0.1:9")
            build_site.build(folder / "laid", folder / "site")

    return once(tmp_path_factory, "documents-site", build) / "site"


class Page(HTMLParser):
    """The links and the anchors of a page of the site."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "img":
            self.links.append(given["src"])


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert list(build_site.outside(site)) == []


def test_every_page_is_sealed_against_what_the_theme_could_load(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "Content-Security-Policy\" content=\"default-src 'self' data: blob:" in text, page
        assert "fonts.googleapis" not in text
        assert not re.search(r"\bclass=\"mermaid|analytics|gtag|pyodide", text), page


def test_what_would_load_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<link rel="stylesheet" href="https://a.test/x.css"><link rel="preconnect" href="//b.test">'
        '<script src="http://c.test/x.js"></script><img src=pictures/fine.svg><a href="https://fine.test">fine</a>'
        '<p style="background: url(https://d.test/x.png)">'
    )
    (tmp_path / "style.css").write_text("@import 'https://e.test/x.css'; p { src: url(//f.test/x.woff2) }")
    (tmp_path / "picture.svg").write_text('<svg><image href="https://g.test/x.png"/></svg>')

    found = {re.search(r"([a-g])\.test", line).group(1) for line in build_site.outside(tmp_path)}  # type: ignore[union-attr]
    assert found == set("abcdefg")


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")}
    broken = []
    for name, page in pages.items():
        if name == "404.html":  # its links are those of a server's root
            continue
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            there = (site / name).parent / unquote(file) if file else site / name
            target = there.resolve().relative_to(site.resolve()).as_posix()
            target = "index.html" if target == "." else target
            if not (site / target).exists() or (
                anchor and target in pages and unquote(anchor) not in pages[target].anchors | {"__skip"}
            ):
                broken.append(f"{name}: {link}")
    assert len(pages) > 60
    assert broken == []


def test_pages_from_outside_and_pictures_came_along(site: Path) -> None:
    assert (site / "security.html").is_file()
    assert len(list((site / "pictures").glob("*.svg"))) > 10
    assert "not run:" not in (site / "install.html").read_text(encoding="utf-8")
    assert "SECURITY.md" not in (site / "index.html").read_text(encoding="utf-8")

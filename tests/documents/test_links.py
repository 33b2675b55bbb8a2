"""Links and anchors between documents lead somewhere, here and in the site; the navigation has every page."""

import re
import tomllib
from collections.abc import Iterator
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

import pytest
from docs.build_site import laid_out

from tests.documents.pages import ROOT, anchors, links, pages, text

GENERATED_ALIKE = "docs/schemas/"
"""Pages that only their list leads to."""


@pytest.mark.parametrize("page", pages())
def test_every_link_and_every_anchor_leads_somewhere(page: str) -> None:
    broken = []
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = normpath(str((ROOT / page).parent.relative_to(ROOT) / unquote(file))) if file else page
        if not (ROOT / there).exists() or (anchor and there.endswith(".md") and anchor not in anchors(there)):
            broken.append(target)

    assert broken == []


def test_the_page_about_installing_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert set(re.findall(r"`shardscope\[(\w+)\]`", text("docs/install.md"))) == set(extras)


def test_no_page_is_unfinished() -> None:
    words = re.compile(r"\b(?:TODO|FIXME|XXX|TBD|lorem ipsum)\b", re.IGNORECASE)
    assert [page for page in pages() if words.search(text(page))] == []


def navigation(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from navigation(value)


def test_the_navigation_has_every_page_once_and_no_other() -> None:
    project = tomllib.loads((ROOT / "docs/zensical.toml").read_text(encoding="utf-8"))["project"]
    listed = list(navigation(project["nav"]))
    laid = {page for path, page in laid_out().items() if not path.startswith(GENERATED_ALIKE)}

    assert len(listed) == len(set(listed))
    assert set(listed) == laid | {"schemas/index.md"}, "docs/zensical.toml names the pages of the site"

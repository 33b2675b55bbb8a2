"""The pictures of the README are screens that the tests draw and compare, so that none of them is out of date."""

import re
from pathlib import Path
from urllib.parse import unquote

from tests.app.test_explorer_decode_screens import SCREENS as DECODING
from tests.app.test_explorer_families import SCREENS as FAMILIES
from tests.app.test_explorer_screens import SCREENS
from tests.conftest import SIZES

ROOT = Path(__file__).resolve().parents[1]
PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)]+)\)")
DRAWN = {f"snapshots/test_explorer_families/test_screen[{screen}].svg" for screen in FAMILIES} | {
    f"snapshots/{module}/test_screen[{screen}][{width}x{height}].svg"
    for module, screens in (("test_explorer_screens", SCREENS), ("test_explorer_decode_screens", DECODING))
    for screen in screens
    for width, height in SIZES
}
NAMED = re.compile(r"snapshots/(\w+)/(\w+)(?:\[[^\]]+\])*\[([^\]]+)\]\.svg")


def drawn_by_a_test(picture: str) -> bool:
    """Tell whether a test draws a picture under a name that stands in its module."""
    found = NAMED.fullmatch(picture)
    if found is None:
        return False
    module, test, name = found.groups()
    source = next((ROOT / "tests").rglob(f"{module}.py")).read_text(encoding="utf-8")
    return f"def {test}(" in source and f'"{name}"' in source


def test_every_picture_of_the_readme_is_a_screen_that_is_compared() -> None:
    pictures = PICTURE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert 3 <= len(pictures) <= 6
    for says, where in pictures:
        assert len(says) > 20, "a picture is told to those who cannot see it"
        assert unquote(where) in DRAWN or drawn_by_a_test(unquote(where)), where
        assert (ROOT / unquote(where)).is_file()


def test_every_picture_of_the_documents_is_one_that_a_test_draws() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for says, where in PICTURE.findall(page.read_text(encoding="utf-8")):
            picture = (page.parent / unquote(where)).resolve().relative_to(ROOT)
            assert len(says) > 20, "a picture is told to those who cannot see it"
            assert picture.parts[0] == "snapshots"
            assert (ROOT / picture).is_file()
            assert list((ROOT / "tests").rglob(f"{picture.parts[1]}.py")), f"nothing draws {picture}"

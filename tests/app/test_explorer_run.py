"""The entry that the command line calls."""

from typing import Any

import pytest

from shardscope.app.explorer import app as module
from shardscope.app.explorer import run
from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.tty.theme import theme_names
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.limits import Limits
from shardscope.widgets.safe import UnsafeFilter


def test_what_was_asked_for_reaches_the_explorer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def ran(self: Explorer, **options: Any) -> ExitCode:
        seen.extend([self.path, self.limits, self.hf_cache, self.theme, options])
        return ExitCode.LIMIT

    monkeypatch.setattr(module.Explorer, "run", ran)
    limits = Limits(header_bytes=10)

    assert run("ckpt", limits=limits, hf_cache=True, mouse=False, theme="nord") == 4
    assert seen == ["ckpt", limits, True, "nord", {"mouse": False}]


def test_a_theme_that_does_not_exist_is_a_wrong_use_that_names_those_that_do() -> None:
    with pytest.raises(Fault) as caught:
        run("ckpt", theme="no such")
    assert caught.value.finding.code == "usage.invalid"
    assert "ansi-dark" in str(caught.value.finding.params["problem"])


def test_all_named_themes_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert set(theme_names()) == set(Explorer(None, None).available_themes)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["1", "yes"])
def test_every_line_is_cleaned_and_without_colour_where_none_is_wanted(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    filters = [type(each).__name__ for each in Explorer(None, None).get_line_filters()]  # type: ignore[arg-type]
    assert filters == ["NoColor", UnsafeFilter.__name__]

"""Both ways to open a path beneath a folder: by openat2, and name by name where the kernel lacks it."""

import pytest

from shardscope.engine.source import openat2


@pytest.fixture(params=["openat2", "name by name"])
def resolution(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test once with each way of resolving paths."""
    way: str = request.param
    if way == "name by name":
        monkeypatch.setattr(openat2, "openat2", lambda: None)
    elif openat2.openat2() is None:
        pytest.skip("this kernel has no openat2, or this container forbids it")
    return way

"""What the summary says to press next: only what has something to show."""

from shardscope.app.explorer.checkpoint.onward import onward
from shardscope.app.explorer.checkpoint.panels import Found
from shardscope.engine.host import Host
from shardscope.engine.model.blocker import Blocker
from tests.app.explorers import llama
from tests.app.fakes import a_blocker, entry, inspection

HOST = Host(None, None, None, None, 1 << 30)


def words(*blockers: Blocker) -> list[str]:
    return [what for _, what in onward(Found(llama(blockers=blockers), HOST))]


def test_a_whole_checkpoint_is_looked_at_further() -> None:
    assert words() == ["tensors", "model", "scan values", "compare", "copy"]


def test_what_is_in_the_way_is_read_mended_or_reported() -> None:
    assert words(a_blocker()) == [
        "blockers",
        "tensors",
        "model",
        "scan values",
        "compare",
        "fix",
        "report",
        "copy",
    ]
    assert "fix" not in words(a_blocker("source.hole"))


def test_what_lists_no_tensor_has_nothing_to_be_read() -> None:
    found = inspection([entry("rank_0.bin", 5)], format="unknown")
    assert [what for _, what in onward(Found(found, HOST))] == ["copy"]

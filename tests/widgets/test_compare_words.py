"""What became of an update, in words."""

import pytest

from shardscope.engine.model.difference import Figures, Merge, Merged, TensorDifference, TensorFacts
from shardscope.widgets import compare_words as words

OFF = "update of rank 4, scale 2: 6 of 20 elements further off than rounding"


def item(merge: Merge) -> TensorDifference:
    facts = TensorFacts("BF16", (10,), 20, "model")
    figures = Figures("numbers", 10, 0, 0, 0, 0.0, 0.0, 1.0)
    return TensorDifference("same", "w", facts, facts, merge=merge, values=figures)


@pytest.mark.parametrize(
    ("verdict", "share", "said"),
    [
        (None, None, "update of rank 4, scale 2"),
        ("merged", 1.0, "update of rank 4, scale 2: as it should be"),
        ("unmerged", 0.0, "update of rank 4, scale 2: not in B, which is A"),
        ("lost", 0.0, "update of rank 4, scale 2: smaller than rounding everywhere"),
        ("differs", 0.5, f"{OFF}, the change is 0.5 times the update"),
    ],
)
def test_each_verdict(verdict: Merged | None, share: float | None, said: str) -> None:
    merge = Merge((4,), (2.0,), verdict, 0.1, 9, 3, 0.5, share=share)
    assert words.merged([item(merge), item(merge)] if verdict == "differs" else [item(merge)]) == said


def test_several_updates_and_what_is_taken_whole() -> None:
    assert words.merged([item(Merge((4, 8), (2.0, 0.5)))]) == "update of rank 4 and 8, scale 2 and 0.5"
    assert (
        words.merged([item(Merge((), (), "merged", whole=True))])
        == "taken from the adapter whole: as it should be"
    )
    assert words.merged([item(Merge((), (), "merged"))]) == "A in another type: as it should be"
    assert words.merged([TensorDifference("same", "w", None, None)]) == ""
    assert words.room(item(Merge((), ()))) is None
    room = words.room(item(Merge((4,), (2.0,), "merged", 0.1, 9, 0, 0.25, share=1.0)))
    assert room == "up to 0.1, larger than rounding in 9 of 10; largest error 0.25 of what rounding may do"

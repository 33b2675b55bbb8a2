"""What is said once of many tensors."""

from shardscope.engine.looking.folding import Seen, folded, partition


def test_numbers_are_parted_into_grids() -> None:
    numbers = [(0, 0), (0, 1), (1, 0), (1, 1), (3, 5), (2, 0), (2, 1)]

    assert list(partition(numbers)) == [
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)],
        [(3, 5)],
    ]
    assert list(partition([()])) == [[()]]
    assert not list(partition([]))


def test_counts_are_added_and_the_largest_is_said() -> None:
    some = [
        Seen("scan.f16_overflow", f"layers.{n}.w", n, {"numbers": 2}, {"value": 70_000.0 + n})
        for n in (2, 3, 4)
    ]

    (said,) = folded([*some])

    assert said.finding.params == {"tensor": "layers.{2-4}.w", "numbers": 6, "value": "70004"}
    assert (said.place, said.tensor) == (2, "layers.2.w")


def test_other_parameters_keep_findings_apart() -> None:
    some = [Seen("scan.constant", f"layers.{n}.w", n, kind={"value": str(n % 2)}) for n in range(4)]

    assert [each.finding.params["tensor"] for each in folded(some)] == ["layers.{0,2}.w", "layers.{1,3}.w"]


def test_names_of_others_are_folded_beside() -> None:
    some = [Seen("scan.duplicate", f"l.{n}.b", n, others={"other": f"l.{n}.a"}) for n in range(3)]
    some.append(Seen("scan.duplicate", "l.7.b", 9, others={"other": "l.0.a"}))

    names = [(each.finding.params["tensor"], each.finding.params["other"]) for each in folded(some)]

    assert names == [("l.{0-2}.b", "l.{0-2}.a"), ("l.7.b", "l.0.a")]


def test_of_several_only_what_holds_for_each_is_said() -> None:
    some = [
        Seen(
            "scan.zero_run", f"l.{n}.w", n, least={"bytes": 9 - n}, first={"begin": n}, many="scan.zero_runs"
        )
        for n in range(3)
    ]

    (said,), (one,) = folded(some), folded(some[:1])

    assert said.finding.code == "scan.zero_runs"
    assert said.finding.params == {"tensor": "l.{0-2}.w", "count": 3, "bytes": 7}
    assert one.finding.params == {"tensor": "l.0.w", "begin": 0, "bytes": 9}

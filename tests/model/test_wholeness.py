"""Whether a checkpoint is whole is never answered better than it was examined."""

from msgspec.structs import replace

from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Basis, Status
from shardscope.engine.model.topology import Axis, Mesh, Topology
from shardscope.engine.model.wholeness import Whole, wholeness
from tests.app.fakes import a_blocker, entry, inspection

CLEAR = inspection([entry("model.safetensors", 8)]).descriptor
HOLE = Mesh("dense", (Axis("dp", 4, Basis.INFERRED),), ((0,), (1,), (3,)), ((2,),))


def answer(found: Descriptor) -> tuple[Whole, str]:
    said = wholeness(found)
    return said.answer, said.why


def test_yes_goes_as_far_as_names_and_headers() -> None:
    assert answer(CLEAR) == (Whole.YES, "as far as names and headers tell")


def test_an_error_or_a_missing_rank_is_a_no() -> None:
    assert answer(replace(CLEAR, blockers=(a_blocker(), a_blocker("header.gap")))) == (
        Whole.NO,
        "2 errors in what was examined",
    )
    assert answer(replace(CLEAR, topology=Topology((HOLE,)))) == (Whole.NO, "1 rank missing")


def test_what_was_not_examined_is_not_known() -> None:
    limited = replace(CLEAR, blockers=(a_blocker("limit.tensors"),))
    opaque = inspection([entry("a.bin", 8)], opaque=("a.bin",)).descriptor
    unknown = replace(CLEAR, classification=replace(CLEAR.classification, status=Status.UNKNOWN))
    several = inspection(
        [],
        format="ambiguous",
        status=Status.AMBIGUOUS,
        blockers=(a_blocker("layout.several_candidates"),),
    ).descriptor

    assert answer(limited) == (Whole.NOT_KNOWN, "a limit was reached before everything was read")
    assert answer(opaque) == (Whole.NOT_KNOWN, "1 opaque file not examined; nothing is missing by name")
    assert answer(unknown) == (Whole.NOT_KNOWN, "the layout is unknown")
    assert answer(several) == (Whole.NOT_KNOWN, "the layout is ambiguous")


def test_warnings_and_questions_of_trust_break_nothing() -> None:
    trusted = (a_blocker(severity=Severity.WARNING), a_blocker("trust.opaque_pickle"))
    assert answer(replace(CLEAR, blockers=trusted))[0] is Whole.YES


def test_missing_ranks_beyond_those_that_are_listed_are_counted() -> None:
    axes = (Axis("dp", 1_000, Basis.INFERRED), Axis("tp", 2, Basis.INFERRED))
    mesh = Mesh("dense", axes, ((999, 1),), tuple((rank, 0) for rank in range(256)))

    assert mesh.missing_count == 1_999
    assert answer(replace(CLEAR, topology=Topology((mesh,))))[1] == "1,999 ranks missing"
    assert Mesh("dense", axes, ((0, 0),)).missing_count == 0  # nothing is said to be missing


def test_a_rank_is_named_by_its_place_on_each_axis() -> None:
    axes = (
        Axis("world", 4, Basis.DERIVED),
        Axis("pp_or_ep", 2, Basis.INFERRED),
        Axis("dp", None, Basis.UNKNOWN),
    )
    mesh = Mesh("dense", axes)
    assert mesh.rank_name((1,)) == "pp or ep 1"
    assert mesh.rank_name((1, 0)) == "1/0"

"""Several plans from one look: each is the plan that a run of its own would make, and a run tells how far each file is."""

from pathlib import Path

from shardscope.engine import materialize, prepare
from shardscope.engine.converting.preparing import look_for_plan
from shardscope.engine.converting.resharding import Aim, prepare_reshard
from shardscope.engine.geometry.mapping.targets import Numbers
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.course import Course, FileCourse
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.plan import PlanOptions
from tests.checkpoints import write_sharded

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
LLAMA = FIXTURES / "hf/llama_sharded/checkpoint"
DCP = FIXTURES / "dcp/fsdp2_odd_world2/checkpoint"


def wish() -> Decoding:
    return Decoding(Intent("convert", "dialog"), "all", compares_all=True)


# R085
def test_one_consent_reads_once_and_serves_any_number_of_plans() -> None:
    found = look_for_plan(DCP, decoding=wish())
    for options in (
        PlanOptions(),
        PlanOptions(dtype="BF16", max_shard_bytes=400),
        PlanOptions(component="all"),
    ):
        again = prepare(DCP, options, found=found)
        alone = prepare(DCP, options, decoding=wish())
        assert again.plan == alone.plan
        assert again.inspection is found
        assert again.plan.source.decoded


def test_a_topology_is_planned_from_the_same_look() -> None:
    found = look_for_plan(LLAMA)
    aim = Aim("ranks", None, Numbers(tp=2))
    assert (
        prepare_reshard(LLAMA, PlanOptions(), aim, found=found).plan
        == prepare_reshard(LLAMA, PlanOptions(), aim).plan
    )


# R107
def test_the_course_tells_how_far_each_file_is(tmp_path: Path) -> None:
    source = write_sharded(tmp_path / "source")
    prepared = prepare(source, PlanOptions(max_shard_bytes=300, workers=1))
    course, seen = Course(), []
    materialize(
        source,
        tmp_path / "out",
        prepared,
        confirm=lambda _: True,
        course=course,
        progress=lambda _: seen.append(dict(course.files)),
    )

    sizes = {file.name: file.bytes for file in prepared.plan.files}
    assert {name: (at.done, at.size, at.finished) for name, at in course.files.items()} == {
        name: (size, size, True) for name, size in sizes.items()
    }
    assert all(at.tile for at in course.files.values())
    for moment in seen:
        for at in moment.values():
            assert isinstance(at, FileCourse)
            assert 0 <= at.done <= at.size
            assert at.done == at.size or not at.finished

"""A guided conversion of a checkpoint that never was: a plan of 723 tensors made by hand, and a run that stands still."""

from typing import Any, Final

from msgspec import structs

from shardscope.app.explorer.convert.calls import Conversions
from shardscope.app.explorer.convert.draft import Draft
from shardscope.app.explorer.output.calls import Conduct
from shardscope.engine.convert.admitting.space import Figure
from shardscope.engine.convert.admitting.target import TargetLook
from shardscope.engine.convert.stage.promotion import Promoted
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.catalogue import Catalogue, Fragment, LogicalTensor, Record
from shardscope.engine.model.course import FileCourse
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.manifest import Manifest, Run, Validation
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.plan import (
    Admission,
    AdmissionCheck,
    CarriedFile,
    Decision,
    LeftOut,
    Plan,
    PlanEstimates,
    PlannedFile,
    PlannedTensor,
    PlanSource,
)
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.resources import Estimate
from tests.app.explorers import llama
from tests.app.fakes import GIB

MIB: Final = 1 << 20
FILES: Final = 30


def a_plan(names: tuple[str, ...] = ()) -> Plan:
    """Return the plan of 723 tensors in 30 files; `names` stand wherever a checkpoint can put one."""

    def figure(count: int) -> Estimate:
        return Estimate(count, Basis.DERIVED, "")

    def tensor(number: int) -> PlannedTensor:
        source = (
            names[number % len(names)] if names else f"module.layers.{number // 9}.part_{number % 9}.weight"
        )
        name = source if names or number % 9 else f"model.layers.{number // 9}.norm.weight"
        return PlannedTensor(
            name, source, "BF16", (8192, 12_288), 192 * MIB, "F32" if number % 9 == 1 else "BF16"
        )

    tensors = [tensor(number) for number in range(723)]
    named = names[0] if names else "lm_head.weight"
    files = tuple(
        PlannedFile(
            f"model-{n + 1:05}-of-{FILES:05}.safetensors" if not names else f"{names[n % len(names)]}-{n}",
            4_819 * MIB,
            tuple(tensors[n * 24 : (n + 1) * 24] if n < FILES - 1 else tensors[n * 24 :]),
        )
        for n in range(FILES)
    )
    return Plan(
        schema="shardscope.plan/1",
        tool="shardscope",
        source=PlanSource("deepspeed_zero", "", 142, 564 * GIB, decoded=True),
        options=Draft().options,
        files=files,
        aliases=(),
        carried=(CarriedFile("config.json", "config.json", 654), CarriedFile("tokenizer.json", "tokenizer.json", 9_085_657)),
        decisions=(
            Decision("ties", f"one copy of {named}", "they share their bytes in the source", "--ties once|both", 2, ("lm_head.weight", "embed_tokens.weight")),
            Decision("vocabulary", "32,000 of 32,064 rows", "vocab_size of config.json", "--vocab-size N", 1, (named,)),
            Decision("rename", "norms under the model's own names", "asked for", "--rename FILE", 81, (named,)),
        ),
        left_out=(LeftOut("optimizer", 1_446, 1_128 * GIB, "no weights, and no exact resume"),),
        estimates=PlanEstimates(
            *map(figure, (564 * GIB, 141 * GIB, 141 * GIB, 141 * GIB + 2 * MIB, 448 * MIB, 250 * MIB))
        ),
        blockers=(),
        notes=(blocker(Finding("convert.load_names", {"first": named, "known": "megatron-llama"})),),
    )  # fmt: skip


def an_admission(*, denied: bool = False) -> Admission:
    """Return the figures of a machine that has room for it, or too little."""
    disk = AdmissionCheck(
        "disk", 141 * GIB + 2 * MIB, 12 * GIB if denied else 412 * GIB, "denied" if denied else "admitted",
        "statvfs: blocks that a user without privileges can have",
    )  # fmt: skip
    return Admission(
        "denied" if denied else "admitted",
        (
            disk,
            AdmissionCheck("files", 40, 27_000_000, "admitted", "statvfs"),
            AdmissionCheck("memory budget", 250 * MIB, 256 * MIB, "admitted", "--memory"),
            AdmissionCheck("RAM", 448 * MIB, 80 * GIB, "admitted", "MemAvailable of /proc/meminfo"),
            AdmissionCheck("control group", 448 * MIB, 62 * GIB, "admitted", "memory.max"),
            AdmissionCheck("open files", 192, 1_024, "admitted", "RLIMIT_NOFILE, less what is open"),
        ),
    )


def found(plan: Plan) -> Inspection:
    """Return an inspection with a catalogue of two tensors."""
    tensors = []
    components: tuple[Component, ...] = ("model", "optimizer")
    for component, name in zip(components, (plan.files[0].tensors[0].source, "exp_avg"), strict=True):
        record = Record("bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", 4096, 1 << 20, 1 << 20)
        parts = tuple(Fragment(label, (4_096, 12_288), record, 64) for label in range(2))
        tensors.append(
            LogicalTensor(
                name, "BF16", (8192, 12_288), Lowered((8192, 12_288), ()), None, parts, component=component
            )
        )
    inspection = llama()
    inspection.catalogue = Catalogue(tuple(tensors))
    return inspection


class Fakes:
    """Calls that answer what was prepared. A run stands still until it is stopped, or ends as was prepared."""

    def __init__(self, plan: Plan | None = None, *, denied: bool = False) -> None:
        self.plan = plan or a_plan()
        self.admission = an_admission(denied=denied)
        self.look = TargetLook(None, "nothing", Figure(412 * GIB, "statvfs"), beside_source=True)
        self.ends: Fault | None = None
        """What the run fails with, once it is let go on."""
        self.succeeds = False
        self.keeps = False
        """Whether something was kept when it ended early."""

    def calls(self) -> Conversions:
        """Return the calls."""
        return Conversions(
            look=lambda *_: found(self.plan),
            plan=lambda _target, draft, inspection, *_: Prepared(
                inspection,
                inspection.catalogue or Catalogue(()),
                structs.replace(self.plan, options=draft.options),
            ),
            admit=lambda prepared, _: (structs.replace(prepared.plan, admission=self.admission), None),
            target=lambda *_: self.look,
            renames=lambda _: (),
            convert=self._convert,
            memory=lambda: 431 * MIB,
        )

    def _convert(self, _target: Any, _draft: Draft, prepared: Prepared, conduct: Conduct) -> Converted:
        course, plan = conduct.course, prepared.plan
        course.begin("target")
        course.begin("copy")
        for number, file in enumerate(plan.files[:12]):
            done = file.bytes if number < 10 else (number - 9) * 1_204 * MIB
            course.files[file.name] = FileCourse(done, file.bytes, 2 * MIB, finished=number < 10)
        conduct.progress(Progress("copy", 52 * GIB, 141 * GIB, "bytes", plan.files[11].name))
        if not self.succeeds and self.ends is None:
            conduct.cancel.wait()
        if self.keeps or conduct.keep(Cancelled()):
            course.note(
                [Finding("stage.kept", {"file": "out", "staging": ".out.shardscope-staging-1f0c9a3e"})]
            )
        if self.ends is not None:
            raise self.ends
        if not self.succeeds:
            raise Cancelled
        return self._converted(plan)

    def _converted(self, plan: Plan) -> Converted:
        validation = (
            Validation("coverage", "held", "723 tensors: every element held once or by equal copies"),
            Validation("copies", "held", "81 tensors are stored twice, and are equal"),
            Validation("checksums", "not recorded", "the source records none"),
            Validation("headers", "held", "30 files read back by the format's own library"),
            Validation("values", "held", "23,136 elements read again one by one, by another way"),
        )
        manifest = Manifest(
            schema="shardscope.manifest/1", tool="shardscope", format=plan.source.format, source=(), options=plan.options,
            outputs=(), aliases=(), decisions=plan.decisions, left_out=plan.left_out, estimates=plan.estimates,
            validation=validation,
        )  # fmt: skip
        run = Run("shardscope.run/1", self.admission, 141 * GIB, 431 * MIB, 1_234.5, {})
        return Converted(plan, manifest, run, Promoted((), 141 * GIB, "exclusive rename", None))

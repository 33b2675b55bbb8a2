"""Runs that are killed or hung up on, and what is done to what they leave."""

import random
import signal
from pathlib import Path

from shardscope.engine.model.exits import ExitCode
from tests.campaigns.bench import Bench, expect
from tests.campaigns.common import Tried, done, some
from tests.convert.targets import OLD, Files

FIXTURES = Path(__file__).parents[1] / "fixtures"


def killed_at_every_step(bench: Bench, times: int) -> Tried:
    """For a new target and for one that is replaced."""
    tried = resumed = 0
    for old in (None, OLD):
        replace = () if old is None else ("--replace",)
        steps = len(bench.convert(bench.target("steps", old), *replace).steps)
        for step in some(range(steps), times):
            out = bench.target(f"step-{step}", old)
            ended = bench.convert(out, *replace, step=step, signal=signal.SIGKILL)
            tried += ended.killed
            resumed += bench.resume(out, old)
            bench.clean(out) if step % 20 == 0 else None
            done(out)
    return Tried(tried, resumed)


def killed_while_resuming(bench: Bench, times: int) -> Tried:
    """At each step of a run that goes on with another one, and then at a step of the run after that."""
    tried = resumed = 0
    middle = len(bench.steps) // 2
    first = bench.target("half")
    bench.convert(first, step=middle, signal=signal.SIGKILL)
    steps = len(bench.convert(first, "--resume").steps)
    for step in some(range(steps), times):
        out = bench.target(f"again-{step}")
        tried += bench.convert(out, step=middle, signal=signal.SIGKILL).killed
        for again in (step, step // 2):
            ended = bench.convert(out, "--resume", step=again, signal=signal.SIGKILL)
            tried += ended.killed
            bench.look(out)
            if not ended.killed:
                break
        resumed += bench.resume(out)
        done(out)
    return Tried(tried, resumed)


def killed_at_random(bench: Bench, times: int) -> Tried:
    """Until so many were gone on with: a run may end first, or be killed when its output is there."""
    tried = resumed = number = 0
    while resumed < times:
        old = None if number % 2 else OLD
        replace = () if old is None else ("--replace",)
        out = bench.target(f"random-{number}", old)
        ended = bench.convert(out, *replace, seed=number, seconds=bench.seconds * 0.95)
        number += 1
        tried += ended.killed
        resumed += bench.resume(out, old)
        done(out)
        expect(number < 3 * times + 10, "runs are not killed")
    return Tried(tried, resumed)


def hung_up(bench: Bench, times: int) -> Tried:
    """SIGHUP at a step: what is finished stays without being asked for."""
    tried = resumed = 0
    for step in some(range(len(bench.steps)), times):
        out = bench.target(f"hup-{step}")
        ended = bench.convert(out, step=step, signal=signal.SIGHUP)
        tried += 1
        expect(ended.code in (0, ExitCode.CANCELLED), ended.said)
        expect(ended.code == 0 or "Nothing was promoted" in ended.said, ended.said)
        resumed += bench.resume(out)
        done(out)
    return Tried(tried, resumed)


def decoded_source(bench: Bench, times: int) -> Tried:
    """A source of pickles, which every run decodes anew."""
    source = FIXTURES / "dcp/fsdp2_odd_world2/checkpoint"
    return killed_like(bench, times, "convert", source, ("--quiet", "--decode", "--max-shard-size", "2KB"))


def resharded(bench: Bench, times: int) -> Tried:
    """The files of four ranks instead of whole tensors."""
    source = FIXTURES / "hf/llama_sharded/checkpoint"
    return killed_like(bench, times, "reshard", source, ("--quiet", "--tp", "4"))


def killed_like(bench: Bench, times: int, verb: str, source: Path, plain: tuple[str, ...]) -> Tried:
    """Kill runs of another kind at random steps."""
    whole = bench.target(verb)
    ended = bench.convert(whole, source=source, plain=plain, verb=verb)
    expect(ended.code == 0, ended.said)
    new: Files = Bench.made(whole) or {}
    resumed = 0
    for number in range(times):
        out = bench.target(f"{verb}-{number}")
        step = random.Random(number).randrange(len(ended.steps))
        bench.convert(out, source=source, plain=plain, verb=verb, step=step, signal=signal.SIGKILL)
        resumed += bench.resume(out, source=source, plain=plain, verb=verb, new=new)
        done(out)
    return Tried(times, resumed)


def rotten_bytes(bench: Bench, times: int) -> Tried:
    """A finished file is damaged between two runs: it does not hold its digest, and is made again."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"rot-{number}")
        bench.convert(out, step="verify", signal=signal.SIGKILL)
        files = sorted(out.parent.glob(".out.*/output/*.safetensors"))
        chance = random.Random(number)
        for file in chance.sample(files, 3):
            data = bytearray(file.read_bytes())
            match number % 4:
                case 0:
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                case 1:
                    data = data[:-1]
                case 2:
                    data[-512:] = bytes(512)  # as blocks that never reached the disk
                case _:
                    data += b"\0"
            file.write_bytes(data)
        if number % 5 == 0:
            files[0].unlink()
            files[0].symlink_to(files[1])
        resumed += bench.resume(out)
        done(out)
    return Tried(times, resumed)


def torn_journal(bench: Bench, times: int) -> Tried:
    """The journal ends anywhere, as a crash of the machine may leave it."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"torn-{number}")
        bench.convert(out, step="verify", signal=signal.SIGKILL)
        (journal,) = out.parent.glob(".out.*/journal.jsonl")
        data = journal.read_bytes()
        journal.write_bytes(data[: random.Random(number).randrange(data.index(b"\n") + 1, len(data))])
        resumed += bench.resume(out)
        done(out)
    return Tried(times, resumed)

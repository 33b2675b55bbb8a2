"""The scenarios: each does one kind of harm a number of times, and holds what is left against the promise. Nothing may be lost."""

from collections.abc import Callable
from typing import NamedTuple

from tests.campaigns.bench import Bench
from tests.campaigns.circumstances import (
    clock_jumps,
    disk_full,
    few_descriptors,
    files_may_not_grow,
    no_inodes,
    other_file_system,
    read_only_source,
    reads_fail,
    room_for_the_rest_only,
    slow_source,
    source_changes,
    stalled_source,
    two_conversions,
    two_resumes,
    writes_fail,
    wrong_bytes,
)
from tests.campaigns.common import Skipped, Tried
from tests.campaigns.kills import (
    decoded_source,
    hung_up,
    killed_at_every_step,
    killed_at_random,
    killed_while_resuming,
    resharded,
    rotten_bytes,
    torn_journal,
)
from tests.campaigns.malformed import malformed_inputs
from tests.campaigns.soak import EXPLORED, FIXTURES, soak


class Scenario(NamedTuple):
    """One row of the table in docs/reliability.md."""

    name: str
    harm: str
    """What is done."""
    after: str
    """What is held after each time."""
    times: int
    """In the campaign."""
    few: int
    """In the quick part."""
    work: Callable[[Bench, int], Tried]


KEEPS = "no file descriptor, thread, child or file more than when it was warm, and no object a round"
WHOLE = "old or new output, whole; resumed to identical bytes"


CAMPAIGN = (
    Scenario("kill-steps", "kill -9 before every step, new target and --replace", WHOLE, 1000, 2, killed_at_every_step),
    Scenario("kill-random", "kill -9 at random moments", WHOLE, 200, 4, killed_at_random),
    Scenario("kill-resume", "kill -9 before every step of a resumed run, twice in a row", WHOLE, 1000, 1, killed_while_resuming),
    Scenario("kill-decode", "kill -9 before random steps, source of pickles (`--decode`)", WHOLE, 20, 0, decoded_source),
    Scenario("kill-reshard", "kill -9 of `shardscope reshard --tp 4` before random steps", WHOLE, 30, 1, resharded),
    Scenario("hang-up", "SIGHUP at every step", "finished files are kept; " + WHOLE, 1000, 2, hung_up),
    Scenario("enospc", "a disk that others fill in the middle", "the message names stage and file; " + WHOLE, 12, 1, disk_full),
    Scenario("enospc-rest", "a disk with room for the rest only", "admitted with --resume alone; " + WHOLE, 4, 0, room_for_the_rest_only),
    Scenario("fsize", "RLIMIT_FSIZE in the middle", "the message names stage and file; " + WHOLE, 10, 0, files_may_not_grow),
    Scenario("inodes", "a full table of inodes", "the message says so; " + WHOLE, 6, 1, no_inodes),
    Scenario("nofile", "RLIMIT_NOFILE 64, and descriptors that run out in the middle", "denied before anything is written; " + WHOLE, 14, 1, few_descriptors),
    Scenario("write-eio", "EIO while writing", "the message names stage and file; " + WHOLE, 10, 1, writes_fail("EIO", "stage.write_failed")),
    Scenario("write-eacces", "EACCES while writing", "the message names stage and file; " + WHOLE, 10, 0, writes_fail("EACCES", "stage.denied")),
    Scenario("write-edquot", "EDQUOT while writing", "the message names stage and file; " + WHOLE, 10, 0, writes_fail("EDQUOT", "stage.quota")),
    Scenario("read-eio", "EIO while reading the source", "the message names stage and file; " + WHOLE, 10, 1, reads_fail("EIO")),
    Scenario("read-eacces", "EACCES while reading the source", "the message names stage and file; " + WHOLE, 10, 0, reads_fail("EACCES")),
    Scenario("source-changes", "a source that changes in the middle (five ways); another plan", "refused, nothing kept", 15, 1, source_changes),
    Scenario("two", "two conversions to one target at once", "one output, whole; the other run is refused", 10, 0, two_conversions),
    Scenario("two-resumes", "two resumes of one run at once", "one output, whole; the other run is refused", 10, 1, two_resumes),
    Scenario("slow", "a slow source, killed or stopped", WHOLE, 10, 0, slow_source),
    Scenario("stall", "a source that stalls", WHOLE, 10, 1, stalled_source),
    Scenario("read-only", "a source on a read-only mount, killed at random", WHOLE, 10, 0, read_only_source),
    Scenario("other-fs", "a target on another file system, killed at random", WHOLE, 10, 0, other_file_system),
    Scenario("clock", "a clock that jumps by years, files dated back and forth", WHOLE, 10, 1, clock_jumps),
    Scenario("wrong-bytes", "a worker that writes a wrong byte and its digest", "found by `--verify full`; nothing kept", 20, 1, wrong_bytes),
    Scenario("rot", "finished files damaged between two runs (five ways)", "made again; " + WHOLE, 20, 1, rotten_bytes),
    Scenario("torn-journal", "a journal that ends anywhere", WHOLE, 20, 1, torn_journal),
    Scenario("malformed", "malformed inputs through `inspect --decode`, `plan` and `plan --decode`", "a document, its exit code, no unsafe character, no secret, bounded time and memory", 2000, 0, malformed_inputs),
    Scenario("soak-inspect", "inspections in one process, half of them decoded", KEEPS, 1000, 0, soak("inspections", FIXTURES)),
    Scenario("soak-convert", "conversions in one process", KEEPS, 200, 0, soak("conversions", EXPLORED)),
    Scenario("soak-explorer", "ways through all screens of one explorer", KEEPS, 60, 0, soak("explorer", EXPLORED)),
)  # fmt: skip


__all__ = ["CAMPAIGN", "Scenario", "Skipped", "Tried"]

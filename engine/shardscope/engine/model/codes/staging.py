"""stage: the folder beside the target in which an output is made."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _refusal(code: str, message: str, remedy: str, meaning: str, stage: Stage = Stage.MATERIALIZE) -> Code:
    return Code(
        f"stage.{code}", Severity.ERROR, stage, message, remedy, meaning, (Blocks.CONVERT,), ExitCode.OUTPUT
    )


def _target(code: str, message: str, remedy: str, meaning: str) -> Code:
    return _refusal(code, message, remedy, meaning, Stage.ADMIT)


def _note(code: str, severity: Severity, message: str, remedy: str, meaning: str) -> Code:
    return Code(f"stage.{code}", severity, Stage.MATERIALIZE, message, remedy, meaning)


TABLE: Final[tuple[Code, ...]] = (
    _target(
        "target_name",
        "{file:path} does not end in a name that an output could have.",
        "Name a folder that is to be made, for example `out/model`.",
        "The output is a new folder with a name of its own: not the root, not `.` or `..`, at most 255 bytes.",
    ),
    _target(
        "parent_missing",
        "The folder that is to hold {file:path} does not exist.",
        "Make it first, or correct the path.",
        "The output is made beside its target, so the folder around it has to be there. A mistyped path should not make folders.",
    ),
    _target(
        "parent_closed",
        "The folder that is to hold {file:path} does not let anything be made in it: {reason:word}.",
        "Ask for the right to write there, or name another target.",
        "The output is staged in a folder beside its target and appears by a rename; both need the right to list and to change "
        "the folder that holds them.",
    ),
    _target(
        "target_link",
        "{file:path} is a symbolic link.",
        "Name the folder that it leads to, or a new one.",
        "A rename would replace the link and leave what it leads to, which is not what a person means. Links on the way to the "
        "target are followed once, at the beginning.",
    ),
    _target(
        "target_not_folder",
        "{file:path} exists and is not a folder.",
        "Name a new target.",
        "An output is a folder, and only another folder can be replaced by it.",
    ),
    _target(
        "target_exists",
        "{file:path} exists.",
        "Name a new target, or add --replace: the old folder is then exchanged for the new one at the very end, and kept.",
        "Nothing that is there is replaced unless that was asked for, and an empty folder is something that is there.",
    ),
    _target(
        "target_mount",
        "{file:path} is on another mount than the folder that holds it.",
        "Name a folder inside of it as the target.",
        "The mount point itself cannot be renamed, and a rename from outside cannot lead into it.",
    ),
    _target(
        "target_fixed",
        "{file:path} cannot be replaced: you may not write to it.",
        "Ask for the right to write to it, or name another target.",
        "A folder that moves to another one has its own entry `..` changed, which needs the right to write to it.",
    ),
    _target(
        "target_is_source",
        "{file:path} is the source itself.",
        "Name a target outside of the source.",
        "Sources are never written to. The two were compared by device and inode, not by their names.",
    ),
    _target(
        "inside_source",
        "{file:path} would lie inside the source.",
        "Name a target outside of the source.",
        "Sources are never written to, and their folders are compared before and after. The two were compared by device and "
        "inode, whatever links lead there.",
    ),
    _target(
        "source_inside",
        "{file:path} holds the source, and would be replaced.",
        "Name another target.",
        "Replacing a folder would take the source away with it.",
    ),
    _target(
        "no_exchange",
        "{file:path} cannot be replaced in one step: the file system cannot exchange two folders.",
        "Name a new target; or add --allow-gap: the old folder is then set aside first, and for an instant there is neither.",
        "NFS, FAT and some others lack the exchanging form of rename (RENAME_EXCHANGE). It was tried before anything was copied.",
    ),
    _target(
        "busy",
        "Another conversion to {file:path} is running: process {pid:word}.",
        "Wait until it has ended, or name another target.",
        "One target is written by one conversion. A lock beside the target is held by the kernel for as long as its process "
        "lives, so one that was left behind stops nobody.",
    ),
    _target(
        "locked_elsewhere",
        "The lock {file:path} was made on {where:word}, and whether its process still runs cannot be seen from here.",
        "If you know that no conversion to this target is running anywhere, remove the lock and start again.",
        "On a shared file system another machine may be writing. A lock is taken away from its owner only where its end is certain.",
    ),
    _target(
        "lock_foreign",
        "The lock {file:path} cannot be used: {reason:word}.",
        "Look at it, and remove it if no conversion to this target is running.",
        "A file of that name is in the way that shardscope did not make, cannot read or may not remove.",
    ),
    _target(
        "gap_open",
        "{file:path} was set aside by a run that ended before its output had its place, and cannot be put back: {reason:word}.",
        "Look for the folder `previous` in the staging folder beside it, and rename it by hand.",
        "A run with --allow-gap renames the old target away before it renames the new one. It notes this first, so that the next "
        "run puts the old target back before it does anything else.",
    ),
    _refusal(
        "file_name",
        "{file:path} is no name for a file of the output.",
        "Choose another name: plain, relative, without invisible characters.",
        "Names of output files are checked part by part, so that none leads out of the staging folder.",
    ),
    _refusal(
        "file_exists",
        "{file:path} is made twice.",
        "Choose different names. On a file system that ignores case, names that differ in case alone are the same.",
        "Every output file is made once and exclusively; one that is already there was made by another task or by somebody else.",
    ),
    _refusal(
        "over_budget",
        "More is written than was announced for {file:path}: {wanted:bytes} where {allowed:bytes} are allowed.",
        "Convert again; if it happens again, tell the makers of shardscope, with the plan.",
        "What is written is counted against the size of its file, and all files against the size of the output that was admitted. "
        "A source that delivers more than its headers say ends here, before anything is promoted.",
    ),
    _refusal(
        "incomplete",
        "{file:path} has {written:bytes} of its {size:bytes}.",
        "Convert again; if it happens again, tell the makers of shardscope, with the plan.",
        "A file is finished when exactly its bytes were written. Reserved blocks that nobody wrote would read as zeros.",
    ),
    _refusal(
        "no_space",
        "There is no room for {file:path}: {needed:bytes} are needed and {free:bytes} are free.",
        "Make room on the file system of the target, or name a target on another one.",
        "The system said that the device is full, at the latest when the blocks of a file were reserved and in most cases before "
        "anything was copied. Others may have filled it since the plan was admitted.",
    ),
    _refusal(
        "no_inodes",
        "There is no room for {file:path}: the file system can hold no more files.",
        "Remove files that are not needed, raise --max-shard-size, or name a target on another file system.",
        "File systems with a fixed table of inodes can be full of files while they have bytes to give.",
    ),
    _refusal(
        "quota",
        "There is no room for {file:path}: {needed:bytes} are needed, and your quota is used up.",
        "Make room among your own files, or name a target on another file system.",
        "The limit is one of this user, group or project, not of the device.",
    ),
    _refusal(
        "file_too_large",
        "{file:path} may not be as large as {needed:bytes}.",
        "Lower --max-shard-size, raise the limit of the shell (`ulimit -f`), or name a target on another file system.",
        "The file system (FAT stops at 4 GiB) or a limit of this process bounds the size of one file.",
    ),
    _refusal(
        "read_only",
        "{file:path} cannot be written: the file system is read-only.",
        "Mount it for writing, or name another target. One that became read-only on its own has met an error: see the kernel's log.",
        "Some file systems make themselves read-only when a disk fails.",
    ),
    _refusal(
        "denied",
        "{file:path} cannot be written: {reason:word}.",
        "Ask for the right to write there, or name another target.",
        "The system refused for want of a right, which may have been taken away while the conversion ran.",
    ),
    _refusal(
        "moved",
        "{file:path} cannot be written: its folder is gone.",
        "Find out who removes or moves folders there, and convert again.",
        "The staging folder, or the folder that holds the target, was removed while the conversion ran.",
    ),
    _refusal(
        "write_failed",
        "{file:path} cannot be written: {reason:word}.",
        "See the kernel's log for errors of the disk or of the network file system, and convert again to a healthy one.",
        "The system failed to write. What was there before is untouched, and nothing was promoted.",
    ),
    _refusal(
        "journal_damaged",
        "Line {line:count} of {file:path} in a staging folder does not say what a journal says.",
        "Remove that staging folder (`shardscope clean`) and convert again.",
        "A journal is only ever added to, and only its last line can be torn. Another damage means that somebody, or the disk, "
        "changed it, and nothing in the folder is trusted.",
    ),
    _note(
        "nothing_promoted",
        Severity.INFO,
        "Nothing was promoted: {file:path} is as it was, and what was staged is removed.",
        "Convert again when what is said above is settled.",
        "The staging folder was removed; sources and target were not touched.",
    ),
    _note(
        "promoted",
        Severity.WARNING,
        "The output is in its place all the same: {file:path} is whole, and is the new one.",
        "Look at what is said above; `shardscope verify` holds the output against its manifest.",
        "What stopped the run came after the one rename that makes an output appear.",
    ),
    _note(
        "kept",
        Severity.INFO,
        "Nothing was promoted: {file:path} is as it was, and what was staged stays in {staging:path}.",
        "The same command with --resume goes on with it; `shardscope clean` removes it.",
        "A staging folder is marked, private, and never mistaken for an output.",
    ),
    _note(
        "not_removed",
        Severity.WARNING,
        "The staging folder {staging:path} could not be removed: {reason:word}.",
        "Remove it when the cause is gone.",
        "It takes room and does no other harm: it is marked, and never mistaken for an output.",
    ),
    _note(
        "gap_closed",
        Severity.WARNING,
        "An earlier run ended while {file:path} was set aside: it was put back from {staging:path}.",
        "Nothing needs to be done. What that run had staged is still in its folder.",
        "A run with --allow-gap notes what it is about to do, so that the next run can put the old target back.",
    ),
)

"""promote: a staged output appears at its target, whole."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode

_KEPT: Final = "What was staged is whole, in the folder `output` of {staging:path}. "


def _refusal(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(
        f"promote.{code}",
        Severity.ERROR,
        Stage.PROMOTE,
        message,
        remedy,
        meaning,
        (Blocks.CONVERT,),
        ExitCode.OUTPUT,
    )


TABLE: Final[tuple[Code, ...]] = (
    _refusal(
        "unfinished",
        "{files:count file} of the output were not finished, {file:path} first.",
        "Tell the makers of shardscope: a conversion should have ended before.",
        "Only an output of which every file was finished is promoted.",
    ),
    _refusal(
        "unexpected",
        "{file:path} in the staged output is not as it was left: {problem:word}.",
        "Find out who else writes there, and convert again.",
        "Before promotion the staged files are listed again and held against what was finished, name by name and byte by byte.",
    ),
    _refusal(
        "sync_failed",
        "{file:path} could not be made durable: {reason:word}.",
        "See the kernel's log for errors of the disk, and convert again to a healthy one.",
        "The system had taken the bytes and then failed to write them to the disk. What it holds of them is not known, so the "
        "staged output is not used.",
    ),
    _refusal(
        "parent_changed",
        "The folder that is to hold {file:path} is not the one that it was: {change:word}.",
        "Find out who moves folders there, and convert again.",
        "The folder around the target was held open from the beginning. A rename into it would now be out of sight.",
    ),
    _refusal(
        "target_appeared",
        "{file:path} was made by somebody else while the conversion ran.",
        _KEPT + "Rename it to a name that is free, or remove it.",
        "A new target takes its name by a rename that replaces nothing, so what came in between is untouched.",
    ),
    _refusal(
        "target_changed",
        "{file:path} is not the folder that was to be replaced.",
        _KEPT
        + "Look at what is there now; then rename the staged folder to a name that is free, or remove it.",
        "Replacing was asked for one folder, known by its inode. Another one in its place is untouched.",
    ),
    _refusal(
        "no_exchange",
        "{file:path} cannot be replaced in one step: the file system cannot exchange two folders.",
        _KEPT + "Rename it to a name that is free, or convert again with --allow-gap.",
        "It could when that was tried at the beginning.",
    ),
    _refusal(
        "cross_device",
        "{file:path} and the folder that is to take its place are on different devices.",
        _KEPT + "Rename or copy it to a name that is free.",
        "A rename cannot cross devices. In a container the old target may belong to the image, and the new one to the layer above.",
    ),
    _refusal(
        "refused",
        "{file:path} could not be given its new content: {reason:word}.",
        _KEPT + "Rename it to a name that is free when the cause is gone.",
        "The system refused the rename. The target is as it was.",
    ),
    _refusal(
        "gap_lost",
        "{file:path} was set aside, the new folder could not take its place, and the old one could not be put back: {reason:word}.",
        "The old target is {old:path}, whole. Rename it by hand, or convert again: the next run puts it back first.",
        "This is the gap that --allow-gap allows, met by a second failure. Nothing is lost.",
    ),
    Code(
        "promote.not_durable",
        Severity.WARNING,
        Stage.PROMOTE,
        "{file:path} is in place and whole, but the system did not confirm that its name is on the disk: {reason:word}.",
        "See the kernel's log; after a power failure look whether it is still there.",
        "All files were durable before the rename. Only the entry in the folder around them may be lost, and then the old state "
        "comes back.",
    ),
)

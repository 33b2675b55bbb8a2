"""The words about digests at the top of the screen."""

from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.progress import Progress
from shardscope.engine.model.source import Kind


def digests_running(progress: Progress) -> str:
    """Return how far the digests are."""
    if progress.total is None:
        return f"digests {progress.done:,} {progress.unit}"
    return f"digests {100 * progress.done // max(progress.total, 1)} %"


def digests_at_rest(descriptor: Descriptor) -> str:
    """Return how many files have a digest: all, some (the descriptor says for the others why not), or none."""
    files = [record for record in descriptor.source.entries if record.kind == Kind.FILE]
    hashed = sum(record.digest.sha256 is not None for record in files)
    if files and hashed == len(files):
        return "all digests"
    return f"digests {hashed:,} of {len(files):,}" if hashed else "no digests"

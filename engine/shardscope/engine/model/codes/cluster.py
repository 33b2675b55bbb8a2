"""cluster: tasks in other processes, on this machine or others."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _refusal(
    code: str,
    message: str,
    remedy: str,
    meaning: str,
    *,
    stage: Stage = Stage.ADMIT,
    leaves: ExitCode = ExitCode.DENIED,
) -> Code:
    return Code(f"cluster.{code}", Severity.ERROR, stage, message, remedy, meaning, (Blocks.CONVERT,), leaves)


def _failure(code: str, message: str, remedy: str, meaning: str) -> Code:
    return _refusal(code, message, remedy, meaning, stage=Stage.MATERIALIZE, leaves=ExitCode.OUTPUT)


TABLE: Final[tuple[Code, ...]] = (
    _refusal(
        "missing",
        "Dask is not installed beside shardscope.",
        "Install `shardscope[dask]` here, and the same on every worker.",
        "--scheduler talks to a Dask cluster with Dask's own client, which is an extra: nothing else needs it.",
        leaves=ExitCode.USAGE,
    ),
    _refusal(
        "insecure",
        "The scheduler is reached without TLS.",
        "Give an address that begins with tls://, with --tls-ca, --tls-cert and --tls-key where Dask's own configuration does not "
        "name them; or type --insecure-cluster, on a network where nobody else can speak to the scheduler.",
        "Dask's processes unpickle what they send each other, so whoever can speak to one of them can run code in all of them, this "
        "one included. shardscope sends and reads bytes alone, but it cannot take the pickles out of Dask.",
        leaves=ExitCode.USAGE,
    ),
    _refusal(
        "tls_files",
        "TLS cannot be set up: {reason:text}.",
        "Correct --tls-ca, --tls-cert and --tls-key, or the same in Dask's configuration.",
        "A client proves itself with a certificate and a key of its own, and knows the cluster by its authority.",
        leaves=ExitCode.USAGE,
    ),
    _refusal(
        "unreachable",
        "The cluster does not answer: {reason:text}.",
        "See that the scheduler runs and that its address is right; with TLS, that all certificates are of one authority.",
        "Nothing was started, and nothing was written.",
    ),
    _refusal(
        "no_workers",
        "The scheduler has no workers.",
        "Start workers, and wait until they have joined.",
        "Tasks would wait for ever.",
    ),
    _refusal(
        "versions",
        "A worker runs {found:text}; this is {expected:word}.",
        "Start all workers from the environment that this command runs in.",
        "Equal versions make equal bytes. A conversion that is half of one version and half of another would be neither's.",
    ),
    _refusal(
        "staging_elsewhere",
        "A worker does not find the staging folder: {reason:word}.",
        "Let OUT lie on a file system that every worker mounts at the same path, and run the workers as the same user.",
        "Workers write beside the target. Before anything starts, each reads a file that was made here and makes one that is read here.",
    ),
    _refusal(
        "source_elsewhere",
        "A worker does not find the source: another folder, or none, has its path there.",
        "Let the source lie on a file system that every worker mounts at the same path.",
        "Workers open the source themselves. Its root and every file in it have to be those that were inspected.",
    ),
    _failure(
        "lost",
        "The worker that made {file:path} was lost {times:count time}; the last time it was {reason:word}.",
        "Look at the logs of the workers: memory that ran out kills most of them. Give each less with --memory and --workers.",
        "A task is given out again when its worker is lost, but not for ever. Nothing was promoted.",
    ),
    _failure(
        "broken",
        "What carries out the tasks broke {times:count time}.",
        "Look at the logs of the workers, and convert again.",
        "An executor that breaks loses every task that it had. Another one is started where that is possible, but not for ever.",
    ),
    _failure(
        "attempt_differs",
        "A worker said that {file:path} is whole, and it is not: {problem:word}.",
        "See that the file system shows the same files on every machine, and convert again.",
        "Whatever a worker says, its file is looked at before it is taken: its name, its inode, its size, and that it is no link.",
    ),
)

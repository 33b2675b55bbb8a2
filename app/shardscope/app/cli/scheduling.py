"""The options that let the machines of a cluster do the copying, and what they come to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from shardscope.engine.converting.cluster import DaskCluster

F = TypeVar("F", bound=Callable[..., object])


def scheduling(command: F) -> F:
    """Add the options of a cluster."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of this Dask scheduler copy; --workers and --memory are then those of each file. See docs/scale.md.",
    ),
    click.option(
        "--tls-ca",
        metavar="FILE",
        type=click.Path(),
        help="With --scheduler: the authority of its certificates.",
    ),
    click.option(
        "--tls-cert",
        metavar="FILE",
        type=click.Path(),
        help="With --scheduler: the certificate of this client.",
    ),
    click.option(
        "--tls-key", metavar="FILE", type=click.Path(), help="With --scheduler: the key of this client."
    ),
    click.option(
        "--insecure-cluster",
        is_flag=True,
        help="Allow a scheduler without TLS: whoever can reach it can run code here. For networks of your own.",
    ),
)


def cluster_of(given: dict[str, Any]) -> "AbstractContextManager[DaskCluster | None]":
    """Return the cluster that was asked for; nothing where none was. Takes what is its own out of `given`."""
    address = given.pop("scheduler")
    files = (given.pop("tls_ca"), given.pop("tls_cert"), given.pop("tls_key"))
    insecure = given.pop("insecure_cluster")
    if address is None:
        if insecure or any(files):
            message = "--insecure-cluster and the options of TLS need --scheduler."
            raise click.UsageError(message, click.get_current_context())
        return nullcontext()
    from shardscope.engine.converting.cluster import DaskCluster, Tls

    return DaskCluster(address, tls=Tls(*files), insecure=insecure)

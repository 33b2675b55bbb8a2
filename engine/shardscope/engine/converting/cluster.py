"""Tasks on a Dask cluster: the one module that imports Dask, and only where a person named a scheduler.

Dask's processes unpickle what they send each other. shardscope gives them bytes and takes bytes, but whoever can speak to the
scheduler can run code in every process that is connected to it, this one included: hence TLS, or `insecure` typed by a person.
"""

from concurrent.futures import Executor
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from shardscope.engine.convert.jobs.meeting import judge, meet, packed_question, question
from shardscope.engine.convert.jobs.tasks import Area, TaskSource, versions_here
from shardscope.engine.model.blocker import Fault

if TYPE_CHECKING:
    from distributed import Client, Security

SECURE: Final = frozenset({"tls", "wss"})
"""Schemes of addresses that TLS protects."""
PATIENCE: Final = 30
"""Seconds to wait for a scheduler."""
ANSWERS: Final = 120
"""Seconds to wait until all workers have looked at their files: one that hangs in a dead mount never answers."""


class Tls(Struct, frozen=True):
    """Files of PEM; null is what Dask's own configuration says (`distributed.comm.tls`)."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None


class DaskCluster:
    """The workers of a scheduler (`convert.dispatch.Executors`). Use it in a `with` block.

    `insecure` allows an address without TLS. Entering raises `Fault`: `cluster.insecure`, `cluster.missing`,
    `cluster.tls_files`, `cluster.unreachable`.
    """

    def __init__(self, address: str, *, tls: Tls | None = None, insecure: bool = False) -> None:
        self._address = address
        self._tls = tls or Tls()
        self._secure = address.partition("://")[0] in SECURE
        self._insecure = insecure
        self._client: Client | None = None

    def __enter__(self) -> Self:
        if not self._secure and not self._insecure:
            raise Fault("cluster.insecure")
        try:
            from distributed import Client
        except ImportError as error:
            raise Fault("cluster.missing") from error
        security = self._security() if self._secure else None
        try:
            self._client = Client(
                self._address, timeout=PATIENCE, security=security, set_as_default=False, name="shardscope"
            )
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise Fault("cluster.unreachable", reason=_words(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close(timeout=5)
            self._client = None

    @property
    def client(self) -> "Client":
        """Dask's own client, while it is connected."""
        if self._client is None:
            raise ValueError("the cluster is not connected: use it in a with block")
        return self._client

    def ready(self, source: TaskSource, area: Area) -> None:
        """Ask every worker whether it sees the same files and is of the same versions.

        Raises `Fault`: `cluster.no_workers`, `cluster.versions`, `cluster.staging_elsewhere`, `cluster.source_elsewhere`,
        `cluster.unreachable`.
        """
        workers = list(self.client.nthreads())
        if not workers:
            raise Fault("cluster.no_workers")
        asked, secret = question(source, area)
        try:
            found = self.client.run(
                meet, packed_question(asked), workers=workers, on_error="return", callback_timeout=ANSWERS
            )
        except (OSError, TimeoutError) as error:
            raise Fault("cluster.unreachable", reason=_words(error)) from error
        for answer in found.values():
            if isinstance(answer, ImportError | AttributeError):  # it has no shardscope, or not this one
                raise Fault(
                    "cluster.versions", found=f"none ({_words(answer)})", expected=versions_here().says
                )
            if not isinstance(answer, bytes):
                raise Fault("cluster.unreachable", reason=_words(answer))
        judge(asked, secret, found.values())

    def start(self) -> Executor:
        """Return an executor over all workers. Each task is its own, even where two are equal."""
        executor: Executor = self.client.get_executor(pure=False)
        return executor

    def end(self, executor: Executor) -> None:
        """Cancel what an executor still has."""
        executor.shutdown(wait=False)

    def _security(self) -> "Security":
        from distributed import Security

        given = {
            "tls_ca_file": self._tls.authority,
            "tls_client_cert": self._tls.certificate,
            "tls_client_key": self._tls.key,
        }
        try:
            security = Security(
                require_encryption=True, **{name: file for name, file in given.items() if file is not None}
            )
            context = security.get_connection_args("client").get("ssl_context")  # reads the files now
        except (OSError, ValueError, TypeError, ImportError) as error:
            raise Fault("cluster.tls_files", reason=_words(error)) from error
        if context is None:
            raise Fault("cluster.tls_files", reason="an authority and a certificate are needed")
        return security


def _words(error: object) -> str:
    """Return what a library of others says, short and in one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}"[:160] if said else type(error).__name__

"""Threads that work on one file, and the thread that watches them: the first failure and the person stop all of them.

Unlike readers, they are waited for: nobody may still be writing when the file is closed.
"""

import threading
from collections.abc import Callable
from typing import Final

from shardscope.engine.model.progress import Cancelled, check

POLL: Final = 1 / 30
"""Seconds between looks at `cancel` and reports of progress."""


class Crew:
    """Start jobs, then `wait`."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None

    def check(self) -> None:
        """Raise `Cancelled` once the work is to stop. Jobs ask at least every 100 ms."""
        check(self._stop)

    def start(self, name: str, job: Callable[[], object]) -> None:
        """Run `job` in a thread."""
        thread = threading.Thread(target=self._run, args=(job,), name=name)
        self._threads.append(thread)
        thread.start()

    def wait(
        self, cancel: threading.Event | None, watch: Callable[[], object], stop: Callable[[], object]
    ) -> None:
        """Wait for all jobs; `watch` is called between looks, `stop` once where the work ends early.

        Raises what the first job to fail raised, or `Cancelled`.
        """
        try:
            for thread in self._threads:
                while thread.is_alive():
                    check(cancel)
                    watch()
                    if self._stop.is_set():
                        stop()
                    thread.join(POLL)
        except BaseException:
            self._stop.set()
            raise
        finally:
            if self._stop.is_set():
                stop()
            for thread in self._threads:
                thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self, job: Callable[[], object]) -> None:
        try:
            job()
        except Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            with self._turn:
                self._failure = self._failure or error
            self._stop.set()

"""The server: textual-serve behind a guard. The one module of the product that listens, and only when it is asked to."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import web
from textual_serve.server import Server

from shardscope.app.serving.guard import HEADERS, host_allowed, origin_allowed

SESSIONS: Final = 4
"""Explorers that run at once: each is a process."""
WIDEST: Final = 1_000
"""Columns and lines of a terminal that is asked for."""
PATIENCE: Final = 3.0
"""Seconds that sessions have to end when the server does."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Guarded(Server):
    """textual-serve with a page of our own, a word in the path, and an eye on who asks."""

    def __init__(self, command: str, host: str, port: int, token: str, name: str) -> None:
        """`command` is a line for a shell, quoted; `name` is what the page is called."""
        super().__init__(command, host=host, port=port, title=name)
        self.token = token
        self._sessions = 0

    async def application(self) -> web.Application:
        """Return the whole: what textual-serve answers, below the word."""
        inner = web.Application()
        inner.add_routes(
            [
                web.get("/", self.handle_index, name="index"),
                web.get("/page.js", _file("page.js")),
                web.get("/page.css", _file("page.css")),
                web.get("/ws", self.handle_websocket, name="websocket"),
                web.static("/static", self.statics_path, name="static"),
            ]
        )
        outer = web.Application(middlewares=[self._guard])
        outer.add_subapp(f"/{self.token}", inner)
        outer.on_response_prepare.append(_harden)
        return outer

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not host_allowed(request.headers.get("Host"), self.host):
            raise web.HTTPForbidden(text="This server does not answer to that name.\n")
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Send the page. It names no address: everything in it is relative to its own."""
        return await _file("page.html")(request)

    async def handle_websocket(self, request: web.Request) -> web.StreamResponse:  # type: ignore[override]  # or a refusal
        """Open a session for a page of ours, while there are not too many."""
        if not origin_allowed(request.headers.get("Origin"), request.headers.get("Host")):
            raise web.HTTPForbidden(text="Only the page of this server may open a session.\n")
        if self._sessions >= SESSIONS:
            raise web.HTTPServiceUnavailable(text="Too many sessions are open.\n")
        if any(not 1 <= _number(request.query.get(each)) <= WIDEST for each in ("width", "height")):
            raise web.HTTPBadRequest(text="A terminal has a width and a height.\n")
        self._sessions += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._sessions -= 1

    async def run(self, ready: Callable[[int], None]) -> None:
        """Listen until a signal ends it; `ready` hears the port. Raises `OSError` where the address cannot be had."""
        logging.getLogger("textual-serve").setLevel(logging.CRITICAL)  # it logs with what clients sent
        runner = web.AppRunner(await self.application(), access_log=None, shutdown_timeout=PATIENCE)
        await runner.setup()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        try:
            await web.TCPSite(runner, self.host, self.port).start()
            ready(runner.addresses[0][1])
            await stop.wait()
        finally:
            await runner.cleanup()


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else 0


async def _harden(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _file(name: str) -> Handler:
    path = Path(__file__).parent / name

    async def send(_: web.Request) -> web.StreamResponse:
        return web.FileResponse(path)

    return send

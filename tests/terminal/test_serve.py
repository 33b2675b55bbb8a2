"""The explorer in a browser: by a client that speaks the protocol, and in headless Chromium where there is one."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil  # type: ignore[import-untyped]
import pytest

from tests.app.terminal import environment
from tests.checkpoints import write_sharded
from tests.terminal import chromium

STYLES = re.compile(rb"\x1b\[[0-9;]*m")
pytestmark = [pytest.mark.terminal, pytest.mark.timeout(90)]


class Served:
    """A server on a port of its own, with a small checkpoint."""

    def __init__(self, folder: Path) -> None:
        checkpoint = str(write_sharded(folder / "ckpt"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shardscope", "serve", checkpoint, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(TERM="dumb"),
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(self.url))

    def sessions(self) -> list[psutil.Process]:
        """Return the explorers that run for it."""
        found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return found

    def end(self) -> int:
        """Interrupt it and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        assert server.process.stdout is not None
        server.process.stdout.close()


async def until(socket: aiohttp.ClientWebSocketResponse, awaited: bytes) -> bytes:
    """Return what a session writes, up to the words `awaited`, which styles may take apart."""
    written = b""
    while awaited not in STYLES.sub(b"", written):
        message = await socket.receive(timeout=30)
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
        written += message.data if isinstance(message.data, bytes) else b""
    return written


async def test_a_session_is_opened_by_its_own_page_alone_and_ends_with_the_server(served: Served) -> None:
    url, own = served.url, {"Origin": served.origin}
    socket = f"{url.replace('http', 'ws', 1)}ws?width=100&height=30"
    async with aiohttp.ClientSession() as client:

        async def status(address: str, **headers: str) -> int:
            async with client.get(address, headers=headers) as answer:
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                return answer.status

        assert urlsplit(url).hostname == "127.0.0.1"
        assert await status(url) == 200
        assert await status(f"{served.origin}/") == 404
        assert await status(f"{served.origin}/ws") == 404
        assert await status(url, Host="evil.example") == 403
        for headers in ({}, {"Origin": "http://evil.example"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(socket, headers=headers)
            assert refused.value.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(socket.replace("100", "100000"), headers=own)
        assert refused.value.status == 400
        assert served.sessions() == []

        async with client.ws_connect(socket, headers=own) as session:
            written = await until(session, b"whole?")
            assert b"\x1b[?1049h" in written
            await session.send_str(json.dumps(["stdin", "3"]))
            await until(session, b"in what was examined")
            await session.send_str(json.dumps(["stdin", "q"]))
            while (await session.receive(timeout=60)).type is not aiohttp.WSMsgType.CLOSE:
                pass
        while served.sessions():
            await asyncio.sleep(0.05)

        second = await client.ws_connect(socket, headers=own)
        await until(second, b"whole?")
        running = served.sessions()
        assert running
        os.kill(served.process.pid, signal.SIGKILL)  # the hardest end: nobody tells the explorer
        gone, alive = await asyncio.to_thread(psutil.wait_procs, running, timeout=30)
        assert gone
        assert not alive
        await second.close()


@pytest.mark.skipif(chromium.BINARY is None, reason="needs Chromium")
async def test_a_browser_draws_it_takes_keys_and_loads_nothing_from_elsewhere(
    served: Served, tmp_path: Path
) -> None:
    async with chromium.page(tmp_path / "profile") as page:
        await page.call("Page.navigate", url=served.url)
        await page.until("document.body.classList.contains('-first-byte')")
        await page.until_received(b"whole?")
        await page.until("document.querySelector('canvas') !== null")
        await page.type("?")
        await page.until_received(b"Keys and words")
        assert (await page.picture()).startswith(b"\x89PNG")
        await page.type("\x1b")
        await page.type("q")
        await page.call("Page.navigate", url="about:blank")

        elsewhere = [
            each
            for each in page.requests
            if "127.0.0.1" not in each and not each.startswith(("data:", "about:"))
        ]
        assert elsewhere == []
        assert any(each.startswith("ws://127.0.0.1") for each in page.requests)
        assert not any("Content Security Policy" in each for each in page.complaints), page.complaints
    assert await asyncio.to_thread(served.end) == 0

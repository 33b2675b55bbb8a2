"""A headless Chromium for tests, driven over its own debugging protocol."""

import asyncio
import base64
import itertools
import re
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

BINARY: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE: Final = 60.0
STYLES: Final = re.compile(rb"\x1b\[[0-9;]*m")
_QUIET: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--window-size=1000,640",
    "--remote-debugging-port=0", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


class Page:
    """One page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.requests: list[str] = []
        """Every address that the page asked for."""
        self.received = b""
        """What came over its sockets."""
        self.complaints: list[str] = []
        """What the browser had to say about it."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser for something."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            said = await self._socket.receive_json(timeout=PATIENCE)
            if said.get("method") == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"])
            elif said.get("method") == "Network.webSocketCreated":
                self.requests.append(said["params"]["url"])
            elif said.get("method") == "Network.webSocketFrameReceived":
                frame = said["params"]["response"]
                if frame["opcode"] == 2:  # binary, which the protocol writes in base64
                    self.received += base64.b64decode(frame["payloadData"])
            elif said.get("method") == "Log.entryAdded":
                self.complaints.append(said["params"]["entry"]["text"])
            if said.get("id") == number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result

    async def value(self, script: str) -> Any:
        """Return what a script says."""
        return (await self.call("Runtime.evaluate", expression=script, returnByValue=True))["result"].get(
            "value"
        )

    async def until(self, script: str) -> None:
        """Wait until a script says something true."""
        end = time.monotonic() + PATIENCE
        while not await self.value(script):
            assert time.monotonic() < end, f"waited for {script}"
            await asyncio.sleep(0.1)

    async def until_received(self, words: bytes) -> None:
        """Wait until words came over a socket, which styles may take apart."""
        end = time.monotonic() + PATIENCE
        while words not in STYLES.sub(b"", self.received):
            assert time.monotonic() < end, f"waited for {words!r}"
            await self.value("0")
            await asyncio.sleep(0.05)

    async def type(self, text: str) -> None:
        """Type into what has the focus."""
        for char in text:
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=char, key=char)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=char)

    async def picture(self) -> bytes:
        """Return what is seen, as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def page(folder: Path) -> AsyncIterator[Page]:
    """Start a browser whose profile is in `folder`, with an empty page."""
    assert BINARY is not None
    told = folder / "DevToolsActivePort"
    command = [BINARY, *_QUIET, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + PATIENCE
            while not (told.exists() and "\n" in told.read_text()):
                assert time.monotonic() < end, "the browser did not start"
                await asyncio.sleep(0.05)
            port = told.read_text().split("\n")[0]
            async with aiohttp.ClientSession() as client:
                async with client.get(f"http://127.0.0.1:{port}/json") as answer:
                    targets = await answer.json(content_type=None)
                url = next(each["webSocketDebuggerUrl"] for each in targets if each["type"] == "page")
                async with client.ws_connect(url, max_msg_size=0) as socket:
                    found = Page(socket)
                    for domain in ("Page", "Network", "Log", "Runtime"):
                        await found.call(f"{domain}.enable")
                    yield found
        finally:
            process.kill()

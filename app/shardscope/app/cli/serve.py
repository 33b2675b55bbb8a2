"""`shardscope serve [PATH]`: the explorer in a browser on the same machine."""

import shlex
import sys

import click

from shardscope.app.cli.command import command
from shardscope.app.cli.examine import bounds
from shardscope.app.cli.session import Session
from shardscope.engine.model.exits import ExitCode


@command(
    "serve",
    short_help="Serve the explorer to a browser on this machine.",
    examples=(
        ("shardscope serve ./ckpt", "Print the address to open in a browser."),
        ("shardscope serve ./ckpt --port 0", "On any port that is free."),
        ("ssh -L 8000:localhost:8000 host shardscope serve ./ckpt", "From another machine, through SSH."),
    ),
    notes="""The server is an extra: pip install 'shardscope[serve]'. It listens on this machine alone unless --host names
    another address, and answers only to whoever knows the address that it prints, which is another one each time. Whoever
    has it reads and converts with your rights. The page loads nothing from anywhere else. Ctrl-C ends it and its sessions.""",
    exits=(ExitCode.OK, ExitCode.USAGE, ExitCode.UNSUPPORTED, ExitCode.OUTPUT),
)
@click.argument("path", required=False, type=click.Path())
@bounds
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free."
)
@click.option("--theme", metavar="NAME", help="Colour theme.")
@click.pass_obj
def serve(
    session: Session,
    path: str | None,
    host: str,
    port: int,
    theme: str | None,
    limits: tuple[tuple[str, int], ...],
    hf_cache: bool,
) -> None:
    """Serve the explorer to a browser on this machine, until Ctrl-C.

    Each page that opens the address gets an explorer of its own, up to four at once.
    """
    try:
        from shardscope.app.serving.server import Guarded
    except ImportError as error:
        from shardscope.engine.model.blocker import Fault

        raise Fault("serve.no_library", library=error.name or "textual_serve") from None
    import asyncio

    from shardscope.app.serving.guard import is_loopback, new_token

    if not is_loopback(host):
        session.narrate(
            f"shardscope: {host} is not this machine alone. Whoever learns the address below reads what you can read, and the "
            "connection is not encrypted. Prefer 127.0.0.1 and `ssh -L`."
        )
    words = [sys.executable, "-m", "shardscope", "explore", "--served"]
    words += ["--hf-cache"] if hf_cache else []
    words += ["--theme", theme] if theme is not None else []
    for name, value in limits:
        words += ["--limit", f"{name}={value}"]
    words += [] if path is None else ["--", path]
    token = new_token()
    server = Guarded(shlex.join(words), host, port, token, "shardscope")

    def ready(bound: int) -> None:
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - what was typed
        named = f"[{shown}]" if ":" in shown else shown
        session.out.write_text(f"http://{named}:{bound}/{token}/\n")
        session.narrate("Open this address in a browser. Ctrl-C ends the server and its sessions.")

    try:
        asyncio.run(server.run(ready))
    except OSError as error:
        from shardscope.engine.model.blocker import Fault

        reason = (error.strerror or type(error).__name__).lower()
        raise Fault("serve.address", address=f"{host}:{port}", reason=reason) from None

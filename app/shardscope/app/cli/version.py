"""`shardscope --version`."""

from shardscope.app.cli.session import Session
from shardscope.engine.model.schemas import NAMES
from shardscope.engine.version import __version__


def show(session: Session) -> None:
    """Print the version, and the versions of the documents that it writes."""
    documents = ", ".join(name.partition(".")[2] for name in NAMES)
    session.out.write_text(f"shardscope {__version__} ({documents})\n")

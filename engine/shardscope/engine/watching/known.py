"""The events that an earlier watch printed: by them a new one knows which folders were told."""

import msgspec

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.schemas import WATCH
from shardscope.engine.model.watch import WatchEvent, WatchWord
from shardscope.engine.source.source import Source


def read_known(path: str, limits: Limits | None = None) -> dict[str, str]:
    """Return the content of each folder that was last told as complete, by its name. A file that is not there says nothing.

    A last line without a line break was cut off and is passed over. Raises `Fault`: `watch.known_malformed`,
    `limit.json_bytes`, and what reading a file raises.
    """
    limits = limits or Limits()
    try:
        with Source(path, limits=limits) as source:
            files = source.walk().files
            if len(files) != 1 or source.root.file is None:
                raise Fault("watch.known_malformed", file=path, line=1)
            (file,) = files
            if file.size > limits.json_bytes:
                raise Fault("limit.json_bytes", file=file.text, limit=limits.json_bytes, found=file.size)
            with source.open(file) as reader:
                data = reader.pread(0, file.size)
    except Fault as fault:
        if fault.finding.code == "source.missing":
            return {}
        raise
    decoder = msgspec.json.Decoder(WatchEvent)
    known: dict[str, str] = {}
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        if not line.strip():
            continue
        try:
            event = decoder.decode(line)
            if event.schema != WATCH:
                raise msgspec.ValidationError
        except msgspec.MsgspecError as error:
            raise Fault("watch.known_malformed", file=file.text, line=number) from error
        if event.folder is None:
            continue
        if event.event is WatchWord.COMPLETE and event.content is not None:
            known[event.folder] = event.content
        elif event.event is not WatchWord.INCOMPLETE:
            known.pop(event.folder, None)
    return known

"""A stretch of an open file, read as a file of its own: an archive within a larger file."""

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Reader


class Part:
    """Reads from `begin` on, and not beyond the end of the stretch."""

    __slots__ = ("_begin", "_reader", "size")

    def __init__(self, reader: Reader, begin: int, length: int | None = None) -> None:
        """Take `length` bytes from `begin`, or all that follow. Raises `Fault` `torch.part_range`."""
        if begin < 0 or (length or 0) < 0 or begin + (length or 0) > reader.size:
            raise Fault("torch.part_range", begin=begin, length=length or 0, size=reader.size)
        self._reader = reader
        self._begin = begin
        self.size = reader.size - begin if length is None else length

    def pread(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes at `offset`; fewer only at the end of the stretch."""
        return self._reader.pread(self._begin + offset, max(0, min(length, self.size - offset)))

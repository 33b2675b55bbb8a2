"""Where everything is in a GGUF file: header, tensors, what fills them up, and what belongs to none."""

from shardscope.engine.model.facts import GgufHeader
from shardscope.engine.model.file_layout import ByteRange


def gguf_ranges(header: GgufHeader, size: int) -> list[ByteRange]:
    """Return the stretches of a file of `size` bytes, in order. What its header places beyond the end is cut there."""
    pairs, tensors = header.head.pairs, len(header.names)
    begin = min(header.header_end, size)
    ranges = [
        ByteRange(0, begin, "header", note=f"{pairs:,} metadata keys, {tensors:,} descriptions of tensors")
    ]
    at = begin
    for number in sorted(range(tensors), key=header.begins.__getitem__):
        first, last = min(header.begins[number], size), min(header.ends[number], size)
        ranges += _between(at, first, header.alignment, header.data_begin)
        note = f"{header.dtypes[number]} [{', '.join(map(str, header.shapes[number]))}]"
        if header.ends[number] > size:
            note += f", {header.ends[number] - max(header.begins[number], size):,} bytes of it are missing"
        ranges.append(ByteRange(first, last, "tensor", header.names[number], note))
        at = max(at, last)
    padded = min(size, _aligned(at, header.alignment, header.data_begin))
    if at < padded:
        ranges.append(ByteRange(at, padded, "padding"))
    if padded < size:
        ranges.append(ByteRange(padded, size, "trailing"))
    return ranges


def _between(at: int, until: int, alignment: int, data_begin: int) -> list[ByteRange]:
    if at >= until:
        return []
    if until <= _aligned(at, alignment, data_begin):
        return [ByteRange(at, until, "padding")]
    return [ByteRange(at, until, "gap")]


def _aligned(at: int, alignment: int, data_begin: int) -> int:
    """Return the next place where a tensor may begin: multiples of the alignment, counted from the start of the data."""
    if at <= data_begin:
        return data_begin
    return data_begin + -(-(at - data_begin) // alignment) * alignment

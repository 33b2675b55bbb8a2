"""Native experts of DeepSpeed, counted: a layer's router has a row for each of them (deepspeed `moe/sharded_moe.py`, `TopKGate`)."""

import re
from collections.abc import Iterable
from typing import Final

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.source import Entry

_ROUTER: Final = re.compile(r"(?P<layer>.*\.deepspeed_moe)\.gate\.wg\.weight", re.ASCII)
_EXPERT: Final = re.compile(
    r"(?P<layer>.*\.deepspeed_moe)\.experts\.deepspeed_experts\.(?P<number>\d{1,6})\..+", re.ASCII
)


def check_experts(decoder: Decoder, tensors: Iterable[LogicalTensor], subject: Entry) -> None:
    """Report layers that hold fewer experts than their router chooses among: the file of a last one leaves no gap in numbers."""
    rows: dict[str, int] = {}
    there: dict[str, set[int]] = {}
    for tensor in tensors:
        if router := _ROUTER.fullmatch(tensor.name):
            rows[router["layer"]] = tensor.shape[0] if tensor.shape else 0
        elif expert := _EXPERT.fullmatch(tensor.name):
            there.setdefault(expert["layer"], set()).add(int(expert["number"]))
    for layer, total in rows.items():
        held = there.get(layer, set())
        absent = total - sum(number < total for number in held)
        if absent:
            first = next(number for number in range(total) if number not in held)
            decoder.probe.report(
                "deepspeed.experts_missing", subject, layer=layer, count=absent, total=total, first=first
            )

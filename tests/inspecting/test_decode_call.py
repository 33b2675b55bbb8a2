"""What the explorer needs of the call that decodes: progress, digests that are kept, and which formats are worth asking for."""

import os
import shutil
from pathlib import Path

from shardscope.engine.formats.decode import decode_of
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import carry_digests, inspect, with_digests
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.format_names import DECODED, FORMAT_TITLES, HEADERS_ONLY
from shardscope.engine.model.progress import Progress

ZERO = Path(__file__).parents[1] / "fixtures/deepspeed/zero2-w4-bf16/checkpoint"


def wish() -> Decoding:
    return Decoding(Intent("inspect", "dialog"))


def test_decoding_is_offered_for_the_formats_that_it_lists() -> None:
    assert {name for name in FORMAT_TITLES if decode_of(name) is not None} == DECODED | HEADERS_ONLY


def test_decoding_tells_how_far_it_is() -> None:
    told: list[Progress] = []
    inspect(ZERO, digest="none", decoding=wish(), progress=told.append)

    decoded = [each for each in told if each.stage == "decode"]
    assert decoded
    assert {(each.unit, each.total) for each in decoded} == {("pickles", None)}


def test_digests_are_carried_to_what_decoding_found(tmp_path: Path) -> None:
    folder = shutil.copytree(ZERO, tmp_path / "ckpt")
    before = with_digests(inspect(folder, digest="none"), "all")
    carried = carry_digests(inspect(folder, digest="none", decoding=wish()), before)

    assert carried is not None
    kept, hashed = carried.descriptor.source, before.descriptor.source
    assert [each.digest for each in kept.entries] == [each.digest for each in hashed.entries]
    assert any(each.digest.sha256 for each in kept.entries)
    assert not any(each.opaque for each in kept.entries)
    assert carried.catalogue is not None
    assert len(carried.tensors) == 33


def test_digests_of_a_file_that_was_touched_are_not_carried(tmp_path: Path) -> None:
    folder = shutil.copytree(ZERO, tmp_path / "ckpt")
    before = with_digests(inspect(folder, digest="none"), "all")
    os.utime(folder / "latest", ns=(0, 0))

    assert carry_digests(inspect(folder, digest="none"), before) is None

"""The commands that the explorer hands out: they say the same, and they are safe to show and to paste."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.app.explorer.target import Asked, Target, inspect_command, quoted, tensors_command
from shardscope.engine.model.limits import DecodeLimits, Limits
from shardscope.engine.model.text import UNSAFE
from tests.hostile import HOSTILE


def test_a_plain_path_stays_as_it_is() -> None:
    assert inspect_command(Target("runs/42")) == "shardscope inspect runs/42"


def test_what_was_asked_for_is_asked_for_again() -> None:
    target = Target("a b", Limits(header_bytes=10), hf_cache=True)

    assert inspect_command(target, digest="all") == (
        "shardscope inspect 'a b' --hf-cache --limit header_bytes=10 --digest all"
    )
    assert tensors_command(target, "*.q_proj.*", "bytes") == (
        "shardscope tensors 'a b' --hf-cache --limit header_bytes=10 --filter '*.q_proj.*' --sort bytes"
    )


def test_what_was_decoded_is_said_with_its_component() -> None:
    target = Target("ckpt", decode_limits=DecodeLimits(pickle_seconds=9))

    assert inspect_command(target, digest="all", asked=Asked("optimizer", checksums=True)) == (
        "shardscope inspect ckpt --limit pickle_seconds=9 --decode --component optimizer --checksums --digest all"
    )
    assert tensors_command(target, "*.weight", asked=Asked("all", checksums=True)) == (
        "shardscope tensors ckpt --limit pickle_seconds=9 --decode --component all --filter '*.weight'"
    )


def test_a_path_is_never_taken_for_an_option() -> None:
    assert inspect_command(Target("--help")) == "shardscope inspect ./--help"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "raw", [raw for raw, _ in HOSTILE.values() if "\x00" not in raw and "\ud800" not in raw]
)
def test_a_shell_reads_back_the_same_bytes(raw: str) -> None:
    word = quoted(raw)
    read = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout

    assert not UNSAFE.search(word)
    assert read == os.fsencode(raw)


@given(st.text())
def test_nothing_unsafe_is_ever_in_a_word(text: str) -> None:
    assert not UNSAFE.search(quoted(text))

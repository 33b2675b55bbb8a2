"""The list of tensors: filters, order, and three outputs of the same rows."""

import csv
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import shardscope.engine
from shardscope.app.cli.tensors import chosen, csv_parts, json_parts, text_parts
from shardscope.engine.model.descriptor import TensorsOverview
from shardscope.engine.model.documents import TensorsDocument
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import TENSORS
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import UNSAFE
from tests.app.fakes import FakeInspection, entry, inspection, llama_rows, tensor_table
from tests.app.terminal import Command
from tests.checkpoints import write_safetensors
from tests.hostile import HOSTILE
from tests.schemas import validate

Rows = list[tuple[str, str, tuple[int, ...], int, str]]
SMALL: Rows = [
    ("b.weight", "BF16", (2, 3), 12, "one.safetensors"),
    ("a.weight", "F32", (1024, 1024), 4 << 20, "one.safetensors"),
    ("scale", "U8", (), 1, "two.safetensors"),
]


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the engine find these tensors."""

    def finds(rows: Rows, opaque: int = 0, code: ExitCode = ExitCode.OK) -> None:
        found = inspection([entry("one.safetensors", 5 << 20)], table=tensor_table(rows))
        overview = TensorsOverview(len(rows), None, None, files_opaque=opaque)
        descriptor = msgspec.structs.replace(found.descriptor, tensors=overview)

        class Found(FakeInspection):
            def exit_code(self, fail_on: object = None) -> ExitCode:
                return code

        answer = Found(descriptor, found.tensors, found.inventory)

        def inspect(*_: Any, digest: str, **__: Any) -> FakeInspection:
            assert digest == "none"
            return answer

        monkeypatch.setitem(vars(shardscope.engine), "inspect", inspect)

    return finds


def names(table: TensorTable, rows: Any) -> list[str]:
    return [table.names[row] for row in rows]


@pytest.mark.parametrize(
    ("patterns", "sort", "expected"),
    [
        ((), None, ["b.weight", "a.weight", "scale"]),
        ((), "name", ["a.weight", "b.weight", "scale"]),
        ((), "bytes", ["a.weight", "b.weight", "scale"]),
        (("*.weight",), None, ["b.weight", "a.weight"]),
        (("[a]*", "sc?le"), None, ["a.weight", "scale"]),
        (("*.WEIGHT",), None, []),
        (("weight",), None, []),
    ],
)
def test_rows_are_chosen_and_ordered(
    patterns: tuple[str, ...], sort: str | None, expected: list[str]
) -> None:
    table = tensor_table(SMALL)

    assert names(table, chosen(table, patterns, sort)) == expected


def test_the_table_is_aligned_and_totalled(command: Command, listing: Callable[..., None]) -> None:
    listing(SMALL)

    said = command("tensors", "x")

    assert said.out.splitlines() == [
        "      size  dtype  shape         name      file",
        "      12 B  BF16   [2, 3]        b.weight  one.safetensors",
        "   4.0 MiB  F32    [1024, 1024]  a.weight  one.safetensors",
        "       1 B  U8     []            scale     two.safetensors",
    ]
    assert said.err == "3 tensors, 4.0 MiB\n"
    assert command("tensors", "x", "--quiet").err == ""


def test_a_heading_that_is_wider_than_every_name_is_aligned(tmp_path: Path, command: Command) -> None:
    for number in (1, 2):
        write_safetensors(tmp_path / f"{number}.safetensors", {f"{number}": ("F32", (2,))})

    heading, *rows = command("tensors", str(tmp_path)).out.splitlines()

    assert [row.index(".safetensors") - 1 for row in rows] == [heading.index("file")] * 2


def test_one_file_needs_no_column(command: Command, listing: Callable[..., None]) -> None:
    listing(SMALL[:2])

    said = command("tensors", "x", "--filter", "a*")
    assert said.err == "1 of 2 tensors, 4.0 MiB\n"
    assert command("tensors", "x", "--filter", "[").err == "0 of 2 tensors, 0 B\n"
    assert said.out.splitlines() == [
        "      size  dtype  shape         name",
        "   4.0 MiB  F32    [1024, 1024]  a.weight",
    ]


# R005
def test_the_document_is_valid_and_its_ranges_are_half_open(
    command: Command, listing: Callable[..., None]
) -> None:
    listing(SMALL)

    said = command("tensors", "x", "--json")
    document = json.loads(said.out)

    validate(document, TENSORS)
    assert (document["count"], document["opaque_files"]) == (3, 0)
    assert document["tensors"][1] == {
        "name": "a.weight",
        "dtype": "F32",
        "shape": [1024, 1024],
        "bytes": 4 << 20,
        "file": "one.safetensors",
        "begin": 2060,
        "end": 2060 + (4 << 20),
    }
    assert said.err == ""


def test_no_tensor_is_still_a_document(command: Command, listing: Callable[..., None]) -> None:
    listing([])

    assert json.loads(command("tensors", "x", "--json").out)["tensors"] == []
    assert command("tensors", "x", "--csv").out.splitlines() == ["name,dtype,shape,bytes,file,begin,end"]
    assert command("tensors", "x").out == ""


def test_opaque_files_need_decoding(command: Command, listing: Callable[..., None]) -> None:
    listing([], opaque=8)

    said = command("tensors", "x")
    document = json.loads(command("tensors", "x", "--json").out)

    assert said.code == ExitCode.NEEDS_DECODING
    assert "No tensor can be listed: 8 of the files" in said.err
    assert document["exit"] == ExitCode.NEEDS_DECODING
    assert document["error"]["code"] == "tensors.opaque"


def test_what_is_not_listed_is_said(command: Command, listing: Callable[..., None]) -> None:
    listing(SMALL, opaque=2, code=ExitCode.BLOCKED)

    said = command("tensors", "x")

    assert said.code == ExitCode.BLOCKED
    assert "3 tensors, 4.0 MiB, and 2 opaque files not listed" in said.err
    assert "may be incomplete" in said.err
    assert json.loads(command("tensors", "x", "--json").out)["opaque_files"] == 2


def test_csv_is_safe_to_open_in_a_spreadsheet() -> None:
    hostile = ["=1+1", "+1", "-1", "@sum", "\t=1", 'a,"b"']
    table = tensor_table([(name, "F32", (1, 2), 8, "=cmd.safetensors") for name in hostile])

    rows = list(csv.DictReader(io.StringIO("".join(csv_parts(table, range(len(table)))))))

    assert [row["name"] for row in rows] == ["'=1+1", "'+1", "'-1", "'@sum", "→=1", 'a,"b"']
    assert {row["file"] for row in rows} == {"'=cmd.safetensors"}
    assert rows[0]["shape"] == "1x2"


@pytest.mark.parametrize("flags", [(), ("--csv",), ("--json",)])
def test_no_name_reaches_the_terminal_raw(
    command: Command, listing: Callable[..., None], flags: tuple[str, ...]
) -> None:
    listing(
        [
            (raw, raw, (1,), 4, file)
            for raw, _ in HOSTILE.values()
            if not any("\ud800" <= char <= "\udfff" for char in raw)
            for file in ("one", "two")
        ]
    )

    said = command("tensors", "x", *flags)

    assert said.code == ExitCode.OK
    assert not UNSAFE.search(said.out.replace("\n", ""))
    if flags == ("--json",):  # exact, for a machine
        assert {row["name"] for row in json.loads(said.out)["tensors"]} >= {"a\x1b[2Jb", "a\u202eb", "a\x00b"}


def test_columns_count_cells_and_not_characters() -> None:
    table = tensor_table([("模型.权重", "F32", (1,), 4, "one"), ("weight", "F32", (1,), 4, "two")])

    lines = "".join(text_parts(table, range(2))).splitlines()

    assert lines[1].endswith("模型.权重  one")
    assert lines[2].endswith("weight     two")


def test_json_and_csv_do_not_mix(command: Command) -> None:
    said = command("tensors", "x", "--csv", "--json")

    assert said.code == ExitCode.USAGE
    assert "Choose one" in json.loads(said.out)["error"]["message"]


@pytest.mark.parametrize("parts", [json_parts, csv_parts, text_parts])
def test_a_long_list_is_never_held_as_a_whole(parts: Any) -> None:
    table = tensor_table(llama_rows(6_000))  # 54,000 tensors, 8 MB as JSON
    arguments = (table, range(len(table)), 0) if parts is json_parts else (table, range(len(table)))
    next(iter(parts(*arguments)))  # whatever is imported on the way
    tracemalloc.start()
    try:
        size = sum(len(part) for part in parts(*arguments))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size > 4 << 20
    assert peak < size // 3


def test_the_pieces_make_one_document() -> None:
    table = tensor_table(llama_rows(600))

    document = msgspec.json.decode(b"".join(json_parts(table, range(len(table)), 0)), type=TensorsDocument)

    assert document.count == len(document.tensors) == len(table)
    assert list(document.tensors) == list(table)

"""The registry is closed, and a row stands in it only with everything that its qualification retained."""

import ast
import inspect

import msgspec
import pytest

from shardscope.engine.capabilities import registry
from shardscope.engine.capabilities.checks import registry_findings
from shardscope.engine.model.capability import Row
from shardscope.engine.model.qualification import Qualification
from tests.capabilities.statements import capability

RETAINED = Qualification(
    producer_version="torch 2.9.1",
    adapter_version="0.1.0",
    fixture_digest="0" * 64,
    candidate_commit="1" * 40,
    environment="Linux 6.8, Python 3.11",
    topology="dp 2",
    retained_result="a file",
)


# R050
def test_the_registry_is_a_tuple_written_out_in_the_source() -> None:
    tree = ast.parse(inspect.getsource(registry))
    (assigned,) = [node for node in tree.body if isinstance(node, ast.AnnAssign)]

    assert isinstance(assigned.value, ast.Tuple)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


# R050
def test_a_row_with_all_that_was_retained_stands() -> None:
    assert registry_findings([Row(capability(), RETAINED)]) == []


# R050 R125
@pytest.mark.parametrize("item", Qualification.__struct_fields__)
def test_a_row_falls_with_any_item(item: str) -> None:
    (finding,) = registry_findings([Row(capability(), msgspec.structs.replace(RETAINED, **{item: None}))])

    assert (finding.code, finding.params["items"]) == ("capability.unqualified", item)


# R138
@pytest.mark.parametrize("format_name", ["deepspeed_zero", "deepspeed_universal"])
def test_a_deepspeed_adapter_pins_the_exact_source(format_name: str) -> None:
    loose = capability(format=format_name, producer="deepspeed")

    assert [finding.code for finding in registry_findings([Row(loose, RETAINED)])] == [
        "capability.revision_missing"
    ]
    pinned = msgspec.structs.replace(loose, producer_revision="a" * 40)
    assert registry_findings([Row(pinned, RETAINED)]) == []

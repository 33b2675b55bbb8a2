"""Ordered rules: each name goes through all of them, and nothing is lost on the way."""

import pytest

from shardscope.engine.convert.plans.renaming import Renaming, common_prefix, wrappers_in
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.plan import RenameRule


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        (RenameRule("b", name="a"), "a", "b"),
        (RenameRule("b", name="a"), "a.weight", "a.weight"),
        (RenameRule("", prefix="module."), "module.a", "a"),
        (RenameRule("", prefix="module."), "a.module.b", "a.module.b"),
        (RenameRule("h.{1}.{2}", pattern="layers.*.mlp.*"), "layers.3.mlp.weight", "h.3.weight"),
        (RenameRule("h.{1}", pattern="layers.*"), "layers.3.mlp", "layers.3.mlp"),
        (RenameRule("{1}{2}", pattern="**_orig_mod.**"), "a._orig_mod.b", "a.b"),
        (RenameRule("x", pattern="a.b"), "aXb", "aXb"),
        (RenameRule("{1}", pattern="*\n"), "a\n", "a"),
    ],
)
def test_a_rule_renames_what_it_names_and_nothing_else(rule: RenameRule, name: str, expected: str) -> None:
    assert Renaming((rule,))(name) == expected


def test_each_rule_sees_what_the_one_before_it_made() -> None:
    rules = (RenameRule("", prefix="module."), RenameRule("model.", prefix="transformer."))

    assert Renaming(rules)("module.transformer.h") == "model.h"


@pytest.mark.parametrize(
    "rule",
    [
        RenameRule("a"),
        RenameRule("a", name="b", prefix="c"),
        RenameRule("{1}", prefix="a."),
        RenameRule("{2}", pattern="a.*"),
        RenameRule("{0}", pattern="a.*"),
    ],
)
def test_a_rule_that_says_too_little_or_too_much_is_refused_by_its_number(rule: RenameRule) -> None:
    with pytest.raises(Fault) as caught:
        Renaming((RenameRule("", prefix="x."), rule))

    assert caught.value.finding.code == "convert.rename_rule"
    assert caught.value.finding.params["number"] == 2


def test_wrappers_are_found_at_the_start_and_within_names() -> None:
    names = ["_orig_mod.a", "b._fsdp_wrapped_module.c", "submodule.d", "module.e"]

    assert wrappers_in(names) == {"_orig_mod.": 1, "_fsdp_wrapped_module.": 1, "module.": 1}


def test_a_common_first_part_is_named_where_all_names_share_it() -> None:
    assert common_prefix(["model.a", "model.b.c"]) == "model."
    assert common_prefix(["model.a", "lm_head.weight"]) is None
    assert common_prefix(["model.a"]) is None

"""Odd tensor names get a word each kind, ordinary ones none, and the quick way agrees with the thorough one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.parse import names as names_module
from shardscope.engine.parse.names import note_names


def kinds(names: list[str]) -> dict[str, object]:
    return {note.code.removeprefix("header.name_"): note.params["count"] for note in note_names(names)}


def test_the_names_of_real_models_are_ordinary() -> None:
    assert kinds([]) == {}
    assert (
        kinds(
            [
                "model.embed_tokens.weight",
                *(f"model.layers.{i}.self_attn.q_proj.weight" for i in range(200)),
                "model.layers.0.self_attn.q_proj.weight.absmax",
                "params/dense/kernel",
                "lora_unet_down_blocks_0_attentions_1.lora_down.weight",
                "module.encoder:0",
                "v-head.weight",
            ]
        )
        == {}
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([""], {"empty": 1}),
        (["a" * 513, "b" * 512], {"long": 1}),
        (["w\x1b[2J"], {"control": 1, "structure": 1}),
        (["a\nb"], {"control": 1}),
        (["a\nb", "a", "b"], {"control": 1}),
        (["w\u202ex", "w\u200b"], {"invisible": 2}),
        (["w\ue000", "w\uffff"], {"invisible": 2}),
        (["Weight", "weight"], {"confusable": 1}),
        (["caf\u00e9", "cafe\u0301"], {"confusable": 1}),
        (["w\u0435ight"], {"confusable": 1}),
        (["w", "w "], {"confusable": 1}),
        (["a..b", ".a", "a.", "a//b"], {"structure": 4}),
        (["/etc/passwd", "../x", "C:/x", "a\\b", "~/x"], {"structure": 5}),
        (["[bold]w[/]", "<script>", "=1+1", "$(id)", "-x"], {"structure": 5}),
        (["__class__", "None"], {"structure": 2}),
        (["layers.1000000000.w", "layers.\u00b2.w"], {"structure": 2}),
        ([".".join("a" * 65)], {"structure": 1}),
        (["重み.0", "\u2026"], {}),
    ],
)
def test_each_kind_of_odd_name_is_counted(names: list[str], expected: dict[str, int]) -> None:
    assert kinds(names) == expected


def test_findings_repeat_no_name() -> None:
    assert all("alice" not in str(note) for note in note_names(["/home/alice/\x1b", "Alice", "alice"]))


letters = st.text("aA01_./:-N\n~x é\u200b", max_size=8)


@given(st.lists(letters | st.sampled_from(["None", "__x__", "C:/x", "1" * 11]), max_size=5, unique=True))
def test_the_quick_way_never_hides_what_the_thorough_way_finds(names: list[str]) -> None:
    quick = note_names(names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names_module, "_are_ordinary", lambda _: False)
        assert note_names(names) == quick

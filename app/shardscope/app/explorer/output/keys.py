"""The keys that every screen has that makes an output: of its steps, and of the run and what follows it."""

from collections.abc import Sequence

from textual.binding import Binding, BindingType

from shardscope.app.explorer.output.steps import Step


def keys_of_steps(screen: str, steps: Sequence[Step]) -> list[BindingType]:
    """Return the keys that go from one of `steps` to another; `screen` begins their ids."""
    return [
        Binding(
            "n", "next", "Next", id=f"{screen}.next", tooltip="The next step; the last one asks for a word"
        ),
        *(
            Binding(
                str(number),
                f"step('{step}')",
                f"Step {step}",
                show=False,
                id=f"{screen}.{step}",
                tooltip="Go to this step",
            )
            for number, step in enumerate(steps, start=1)
        ),
        Binding(
            "tab",
            "page",
            "Text",
            show=False,
            id=f"{screen}.page",
            tooltip="From the choices to the text and back",
        ),
    ]


def keys_of_run(screen: str, work: str, before: str) -> list[BindingType]:
    """Return the keys of a run and of its end; `work` is what is run, `before` what was shown before it."""
    return [
        Binding("c,escape", "stop", "Stop", id=f"{screen}.stop", tooltip=f"Stop the {work}; asks first"),
        Binding(
            "r",
            "again",
            f"Back to the {before}",
            id=f"{screen}.again",
            tooltip="Change something, or go on with what was kept",
        ),
        Binding(
            "o", "look_at", "Look at it", id=f"{screen}.look_at", tooltip="Look at the output in the explorer"
        ),
        Binding(
            "v",
            "verify",
            "Copy verify",
            show=False,
            id=f"{screen}.verify",
            tooltip="Copy the command that verifies the output once more",
        ),
        Binding(
            "y", "copy", "Copy command", id=f"{screen}.copy", tooltip="Copy the command that does the same"
        ),
        Binding("escape", "back", "Back", id=f"{screen}.back", tooltip="One step back; nothing is written"),
    ]

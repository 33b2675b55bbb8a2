"""The paths of the Compare screen: the other checkpoint, and an adapter that was merged into it."""

import os

from textual import on
from textual.widgets import Input

from shardscope.app.explorer.compare.frame import At
from shardscope.app.explorer.compare.listing import Listing
from shardscope.app.explorer.compare.messages import Completed
from shardscope.app.explorer.target import Target

FIELDS = ("other", "adapter")


class Asking(Listing):
    """What a person types of paths."""

    def __init__(self, target: Target, crumbs: tuple[str, ...]) -> None:
        super().__init__(target, crumbs)
        self._other = ""
        self._adapter = ""
        """Empty where none was named."""

    def _look_again(self) -> None:
        """Inspect what was named, and compare it."""
        raise NotImplementedError

    @property
    def _field(self) -> Input | None:
        """The line of a path that has the focus."""
        focused = self.focused
        return focused if isinstance(focused, Input) and focused.id in FIELDS else None

    @on(Input.Submitted, "#other, #adapter")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        path = os.path.expanduser(event.value.strip())
        if self.at is At.READING:
            return
        if event.input.id == "adapter":
            self._adapter = path
            self.query_one("#merged").display = bool(path)
        elif path:
            self._other = path
        if self._other:
            self._forget_search()
            self._look_again()
        else:
            self.query_one("#other").focus()

    def _leave_field(self) -> None:
        self.query_one("#merged").display = bool(self._adapter)
        self.set_focus(self.table)

    def action_other(self) -> None:
        """Ask for another checkpoint."""
        self.query_one("#other").focus()

    def action_adapter(self) -> None:
        """Ask for an adapter that was merged into B."""
        self.query_one("#merged").display = True
        self.query_one("#adapter").focus()

    async def action_complete(self) -> None:
        """Complete the path."""
        from shardscope.app.explorer.open.completion import completed

        field = self._field
        if field is None or field.id is None:
            return
        name, typed = field.id, field.value
        self.app.run_worker(
            lambda: self.post_message(Completed(name, typed, completed(typed))),
            group="complete",
            description="completing a path",
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    @on(Completed)
    def _completed(self, event: Completed) -> None:
        field = self.query_one(f"#{event.field}", Input)
        if field.value == event.typed:
            field.value = event.path
            field.cursor_position = len(event.path)

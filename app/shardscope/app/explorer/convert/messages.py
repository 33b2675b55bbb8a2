"""What the workers of a guided conversion tell its screen. Each message is a thing that has happened."""

from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.convert.draft import Draft

if TYPE_CHECKING:
    from shardscope.engine.convert.stage.resuming import Resumable
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.decoded import ComponentFigures
    from shardscope.engine.model.plan import Plan
    from shardscope.widgets.plan_words import PlanFacts


class Read(Message):
    """What plans are made of is known."""

    def __init__(self, found: "Inspection", components: "tuple[ComponentFigures, ...]") -> None:
        super().__init__()
        self.found = found
        self.components = components
        """What tensors there are."""


class Unread(Message):
    """The checkpoint could not be read for a plan; without a blocker the person stopped it."""

    def __init__(self, blocker: "Blocker | None") -> None:
        super().__init__()
        self.blocker = blocker


class Planned(Message):
    """A plan was made of a draft, with its admission where a target is known."""

    def __init__(
        self,
        draft: Draft,
        prepared: "Prepared",
        plan: "Plan",
        facts: "PlanFacts",
        earlier: "Resumable | None",
    ) -> None:
        super().__init__()
        self.draft = draft
        self.prepared = prepared
        self.plan = plan
        self.facts = facts
        self.earlier = earlier
        """What a run of the same plan has left at the target."""


class Unplanned(Message):
    """No plan can be made of a draft."""

    def __init__(self, draft: Draft, blocker: "Blocker | None") -> None:
        super().__init__()
        self.draft = draft
        self.blocker = blocker
        """Null where the person stopped it."""


class RenamesRead(Message):
    """The rules of a file were read, or could not be."""

    def __init__(self, path: str, draft: "Draft | None", blocker: "Blocker | None" = None) -> None:
        super().__init__()
        self.path = path
        self.draft = draft
        """What the draft becomes by them."""
        self.blocker = blocker

"""What the workers of a fix tell its screen. Each message is a thing that has happened."""

from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.fix.draft import Draft

if TYPE_CHECKING:
    from shardscope.app.explorer.fix.made import Made, Matched
    from shardscope.app.explorer.fix.metadata import KeyOf
    from shardscope.engine.convert.stage.resuming import Resumable
    from shardscope.engine.converting.fixing import Fix, FixLook
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.plan import Plan, RenameRule
    from shardscope.widgets.plan_words import PlanFacts


class Looked(Message):
    """What is wrong is known."""

    def __init__(self, draft: Draft, seen: "FixLook", keys: "tuple[KeyOf, ...]") -> None:
        super().__init__()
        self.draft = draft
        self.seen = seen
        self.keys = keys
        """Of the metadata of all headers."""


class NotLooked(Message):
    """Nothing here can be fixed, or could be looked at; without a blocker the person stopped it."""

    def __init__(self, draft: Draft, blocker: "Blocker | None") -> None:
        super().__init__()
        self.draft = draft
        self.blocker = blocker


class Planned(Message):
    """A plan was made of a draft, with its admission where a target is known."""

    def __init__(
        self,
        draft: Draft,
        fix: "Fix",
        made: "Made",
        matched: "tuple[Matched, ...]",
        plan: "Plan",
        facts: "PlanFacts",
        earlier: "Resumable | None",
    ) -> None:
        super().__init__()
        self.draft = draft
        self.fix = fix
        self.made = made
        self.matched = matched
        self.plan = plan
        self.facts = facts
        self.earlier = earlier


class Unplanned(Message):
    """No plan is made of a draft."""

    def __init__(self, draft: Draft, matched: "tuple[Matched, ...]", blocker: "Blocker | None") -> None:
        super().__init__()
        self.draft = draft
        self.matched = matched
        self.blocker = blocker
        """Null where nothing was chosen."""


class RulesRead(Message):
    """The rules of a file were read, or could not be."""

    def __init__(
        self, path: str, rules: "tuple[RenameRule, ...]" = (), blocker: "Blocker | None" = None
    ) -> None:
        super().__init__()
        self.path = path
        self.rules = rules
        self.blocker = blocker

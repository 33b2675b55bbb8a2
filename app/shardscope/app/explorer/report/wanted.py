"""What a person wants to have in a report, and the command that makes the same one."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from shardscope.app.explorer.target import Asked, Target, inspect_command, options, quoted
from shardscope.engine.model.reports import DESIRED, PARTS, Desired, ModelReference, ReportPart

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import DigestMode
    from shardscope.engine.reporting import Request

OUTPUT: Final = "report.zip"
DECODED: Final = "decoded.json"
"""Where the command of a decoded report reads its descriptor."""
WISHES: Final[tuple[Desired | None, ...]] = (None, *DESIRED)


class Wanted(Struct, frozen=True):
    """The choices."""

    without: frozenset[ReportPart] = frozenset()
    hashed: bool = False
    """Whether common words of names are replaced, too."""
    desired: Desired | None = None
    decoded: bool = False
    """Whether the descriptor is the one that decoding made."""
    model: str = ""
    revision: str = ""

    def request(self, target: Target, digest: "DigestMode") -> "Request":
        """Return what the engine is asked for."""
        from msgspec import to_builtins

        from shardscope.engine.reporting import Request

        bounds, usual = (to_builtins(each) for each in (target.limits, type(target.limits)()))
        return Request(
            names="hash" if self.hashed else "keep",
            digest="auto" if self.decoded else digest,  # the descriptor has those that it was made with
            hf_cache=target.hf_cache,
            desired=self.desired,
            model=ModelReference(self.model or None, self.revision or None),
            without=tuple(part for part in PARTS if part in self.without),
            limits=tuple((name, bound) for name, bound in bounds.items() if bound != usual[name]),
        )


def report_command(
    target: Target, wanted: Wanted, digest: "DigestMode", asked: Asked | None, output: str = OUTPUT
) -> str:
    """Return the command that writes the same report to `output`; two, where its descriptor has to be made first."""
    words = ["shardscope", "report", quoted(target.path), "-o", quoted(output)]
    for option, value in wanted.request(target, digest).options().items():
        words += (option, quoted(value))
    first = ""
    if wanted.decoded:
        words += ("--descriptor", DECODED)
        first = f"{inspect_command(target, digest=digest, asked=asked)} --json > {DECODED} && "
    reading = Target(target.path, target.limits, target.hf_cache)  # a report decodes nothing
    return first + " ".join((*words, *options(reading)))

"""What a producer's own description of a parameter comes to in the language of shard maps."""

from msgspec import Struct

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import TensorMap


class Translation(Struct, frozen=True):
    """One parameter: a map, or the reason why there is none."""

    name: str
    category: str
    """`affine_map`, `replicated`, `row`, `sub_params`, `two_sub_params`, `vocabulary`, `average`, `unsupported`, `experts`,
    `unmatched`, or `ambiguous`."""
    lowered: Lowered | None = None
    """On the ranks 0, 1, 2, ... of the tensor-parallel axis; null where refused."""
    map: TensorMap | None = None
    """The tree that `lowered` comes from, on a mesh of the one axis `tp`; null for an affine map, which has none."""
    refusal: Finding | None = None
    warnings: tuple[Finding, ...] = ()
    padded_rows: int | None = None
    """Rows of a padded vocabulary, of which `lowered` has only those that are data; null where nothing is cut off."""
    pipeline_replicated: bool = False
    """The parameter is tied across pipeline stages: the first stage holds it, and the copies of later ones are dropped."""
    decided: str = ""
    """What was not in the metadata but decided: by shapes alone, or by a person. Empty for nearly all."""


class Translations(Struct, frozen=True):
    """All parameters of a checkpoint, and what was wrong beyond any one of them."""

    parameters: dict[str, Translation]
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> tuple[Translation, ...]:
        """Those without a map."""
        return tuple(found for found in self.parameters.values() if found.refusal is not None)

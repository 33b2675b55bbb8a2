"""Mapping tables: what the tensors of a producer are made of, and what they are to a model, as data (`shardscope.mapping/1`).

A *layout* lists the kinds of tensors that a producer writes: how they are named, which dimension its ranks cut, and of which
sections (query, key, value; gate, up) a dimension is made. A *naming* says which tensors of a model's own naming are made of
which sections. Neither holds code: sizes are numbers or names of facts that the checkpoint declares, and names are templates
without any matching but that of numbers.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from shardscope.engine.model.schemas import MAPPING

SCHEMA: Final = MAPPING

Number = Literal["layers", "heads", "groups", "heads_per_group", "head_size", "experts", "vocabulary"]
"""Facts that are sizes."""
Quality = Literal["gated", "qkv", "normalization", "positions", "moe", "tied"]
"""Facts that choose between kinds and between namings."""
Size = Annotated[int, Meta(ge=1)] | Number | None
"""Null is what the others leave."""
Template = Annotated[str, Meta(min_length=1, max_length=512)]
"""Text in which `{layer}` is a number, `(a|b)` one of several texts, and `[.{layer}]` a number that may be an axis of the tensor
instead: where it is left out, the tensor has a leading axis of that name.
"""
Id = Annotated[str, Meta(pattern=r"^[a-z0-9_.\-]{1,64}$")]


class ModelFacts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a checkpoint declares of its model, as far as mapping tables ask for it. Null is unknown."""

    layers: int | None = None
    heads: int | None = None
    """Attention heads: of queries."""
    groups: int | None = None
    """Heads of keys, and of values."""
    head_size: int | None = None
    experts: int | None = None
    vocabulary: int | None = None
    """Without padding."""
    gated: bool | None = None
    """The feed-forward layer has a gate beside its up projection."""
    qkv: Literal["grouped", "parts_first", "parts_last"] | None = None
    """Order of the rows of a fused projection: by group and then by part, by part first, by part within each row of a head."""
    normalization: str | None = None
    positions: str | None = None
    tied: bool | None = None
    """The output layer has the embedding's weights, and both have one name."""
    architecture: str | None = None
    """The class of transformers that a configuration names."""

    @property
    def heads_per_group(self) -> int | None:
        """Query heads that share a key and a value."""
        if not self.heads or not self.groups or self.heads % self.groups:
            return None
        return self.heads // self.groups

    @property
    def moe(self) -> bool:
        """Whether there are experts."""
        return bool(self.experts)


class _Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all parts of a table share."""


class Section(_Part, frozen=True):
    """One of the parts that lie one after the other along a dimension."""

    name: Id
    size: Size = None
    shared: bool = False
    """Where it has fewer units than there are ranks, several ranks in a row hold the same unit. Its size is then given."""


class View(_Part, frozen=True):
    """Dimension `dim`, seen as [*before, sections, *after]: the sections lie one after the other within each place of `before`."""

    dim: Annotated[int, Meta(ge=0, le=7)]
    before: tuple[Size, ...] = ()
    sections: tuple[Section, ...] = ()
    after: tuple[Size, ...] = ()


class Kind(_Part, frozen=True):
    """One kind of tensor of a producer."""

    id: Id
    names: tuple[Template, ...]
    aliases: tuple[Template, ...] = ()
    """What other versions of the producer call it. It is listed under the first of `names`."""
    cut: Annotated[int, Meta(ge=0, le=7)] | None = None
    """The dimension (without leading axes) that tensor-parallel ranks cut evenly; null: each of them holds all of it."""
    each: bool = False
    """Each section is cut on its own: a rank holds its share of each, one after the other."""
    group: Literal["dense", "expert"] = "dense"
    stage: Literal["first", "last"] | None = None
    """Of a pipeline, for a kind without a layer: where it is when a model is cut anew."""
    view: View | None = None
    when: dict[Quality, bool | str] = {}
    """Facts that must hold. Of several kinds with one name the first that holds is meant."""


class Target(_Part, frozen=True):
    """A tensor of a model's own naming, made of one tensor of the producer."""

    name: Template
    take: tuple[Id, ...] = ()
    """The sections that it has, in this order; none: all of the tensor."""
    order: tuple[int, ...] = ()
    """The factors of the view, in the target's order; none: as they are."""
    transpose: bool = False
    """Rows and columns are exchanged."""


class Made(_Part, frozen=True):
    """What is made of one kind."""

    of: Id
    to: tuple[Target, ...]
    """None: the model works it out by itself, and it is left out."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="purpose"):
    """What both purposes share."""


class Layout(_Table, frozen=True, tag="layout", kw_only=True):
    """How a producer names and cuts its tensors."""

    prefixes: tuple[str, ...] = ()
    """Texts that may stand before every name."""
    kinds: tuple[Kind, ...]
    formats: tuple[Id, ...] = ()
    """Families of checkpoints that have these names."""


class Naming(_Table, frozen=True, tag="naming", kw_only=True):
    """What a producer's tensors are in a model's own names."""

    layout: Id
    """The table that it rests on."""
    models: tuple[str, ...]
    """Classes of transformers that have these names."""
    needs: dict[Quality, bool | str] = {}
    """Facts that must hold for the table to fit."""
    assumes: str | None = None
    """One clause: what no file says and the table takes for granted. It is shown as inferred."""
    made: tuple[Made, ...]


class MappingDocument(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One mapping table."""

    schema: str
    name: Id
    title: str
    source: str
    """Where its facts come from: project and file."""
    table: Layout | Naming

"""What the tensors of a model say against each other and against its configuration."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_LOAD: Final = (Blocks.LOAD,)


def _row(
    code: str, severity: Severity, message: str, remedy: str, meaning: str, blocks: tuple[Blocks, ...] = _LOAD
) -> Code:
    return Code(code, severity, Stage.VALIDATE, message, remedy, meaning, blocks)


TABLE: Final = (
    _row(
        "model.contradiction",
        Severity.ERROR,
        "{fact:word}: the configuration asks for {declared:word}, {tensor:name} has {found:word}.",
        "Take the configuration and the weights from the same save.",
        "A loader builds the model by its configuration and then finds weights of other shapes. Either file can be the wrong one.",
    ),
    _row(
        "model.contradiction_some",
        Severity.WARNING,
        "{fact:word}: {count:count layer} of {total:count} {count:verb differ} from the configuration, the first in {tensor:name}: "
        "{found:word} instead of {declared:word}.",
        "Check whether this architecture has layers of several shapes.",
        "Some architectures have layers that differ, and say so in fields that are not read here. Otherwise one layer is from "
        "another model.",
        (),
    ),
    _row(
        "model.layers_declared",
        Severity.ERROR,
        "The configuration asks for {declared:count layer}; the weights have {found:count} in {family:name}.",
        "Take both from the same save, or fetch the files that are missing.",
        "A layer that is absent is filled with random numbers by a loader, with no more than a warning.",
    ),
    _row(
        "model.layer_gap",
        Severity.ERROR,
        "{family:name} lacks {missing:word}.",
        "Fetch the files that hold them.",
        "Layers are numbered without gaps. A number between the first and the last that is not there is lost weights.",
    ),
    _row(
        "model.layer_lacks",
        Severity.WARNING,
        "Layer {layer:word} of {family:name} lacks {count:count tensor} that {others:count layer} like it {others:verb have}, "
        "the first {tensor:name}.",
        "Fetch the files that hold them, unless the architecture has layers that differ.",
        "Its other tensors are the same as those of its neighbours, so that the rest is probably lost.",
    ),
    _row(
        "model.layer_odd",
        Severity.WARNING,
        "Layer {layer:word} of {family:name} has {tensor:name} as {found:word}; {others:count layer} {others:verb have} {usual:word}.",
        "Check whether this architecture has layers of several shapes.",
        "One layer of another type or shape than all others is seldom meant.",
        (),
    ),
    _row(
        "model.experts_missing",
        Severity.ERROR,
        "{family:name} has {found:count expert} in layer {layer:word}, and {usual:count} in others.",
        "Fetch the files that hold them.",
        "Every layer of a mixture of experts has the same number of them, and its router a row for each.",
    ),
    _row(
        "model.companion_missing",
        Severity.ERROR,
        "{scheme:word}: {count:count module} {count:verb lack} {companion:word}, the first {tensor:name}.",
        "Fetch the files that hold them.",
        "A packed weight cannot be read without its scales.",
    ),
    _row(
        "model.packing_shape",
        Severity.ERROR,
        "{scheme:word}: {count:count module} whose packed weight and scales do not fit each other, the first {tensor:name}.",
        "Take all tensors of a module from one save.",
        "Rows and columns of the scales follow from those of the weight and the size of a group.",
    ),
    _row(
        "model.packing_declared",
        Severity.WARNING,
        "The configuration declares {fact:word} {declared:word}; the weights are packed with {found:word}.",
        "Take both from the same save.",
        "A loader unpacks by the configuration. With another size of groups or number of bits it makes other numbers.",
    ),
    _row(
        "model.packing_undeclared",
        Severity.WARNING,
        "The weights are packed ({scheme:word}), and no configuration here says so.",
        "Take config.json of the quantised model, not of the one that it was made from.",
        "Without a declaration a loader takes packed integers for weights, or refuses their shapes.",
    ),
    _row(
        "model.packing_absent",
        Severity.WARNING,
        "The configuration declares {method:word}; no weight here is packed in a way that is known.",
        "Check that weights and configuration belong together.",
        "Some methods pack while loading, others are not known here.",
        (),
    ),
    _row(
        "model.adapter_pair",
        Severity.ERROR,
        "{count:count module} {count:verb have} one of the two factors of LoRA, the first {tensor:name}.",
        "Save the adapter again.",
        "The change of a weight is the product of both.",
    ),
    _row(
        "model.adapter_rank",
        Severity.WARNING,
        "{count:count module} {count:verb have} a rank other than the declared {declared:count}, the first {tensor:name}: {found:count}.",
        "Look for rank_pattern in adapter_config.json.",
        "Scaling divides by the rank that the configuration gives for a module.",
        (),
    ),
    _row(
        "model.adapter_base",
        Severity.ERROR,
        "{count:count tensor} of the adapter {count:verb do} not fit the base, the first {tensor:name}: {reason:word}.",
        "Use the base model that the adapter was trained on.",
        "Factors have a column for each input and a row for each output of the module that they change.",
    ),
    _row(
        "model.several",
        Severity.WARNING,
        "Several sets of weights stand here; the figures are those of all of them together.",
        "Look at one of them: name its file or folder.",
        "Parameters, types and memory add up over everything that is listed.",
        (),
    ),
    _row(
        "model.parts",
        Severity.WARNING,
        "The tensors that are listed are parts that ranks hold; what several ranks hold alike counts more than once.",
        "Look at whole tensors: a save before it was cut for ranks, or one put together again.",
        "Shapes of parts say nothing of a configuration's sizes, so that they are not held against each other.",
        (),
    ),
    _row(
        "model.damaged",
        Severity.WARNING,
        "Inspection found {count:count error}, the first {first:word}; figures are of what is listed, and leave out what is not.",
        "Run `shardscope inspect`: it names each of them, and what to do.",
        "Files that are missing, cut off or at odds with each other have tensors that no list has, or that cannot be read.",
        (),
    ),
    _row(
        "model.partial",
        Severity.WARNING,
        "{files:count file} could not be looked into; the figures leave out what they hold.",
        "Run it with --decode, where that can read them.",
        "Tensors behind pickles are listed when a person asks for it.",
        (),
    ),
)

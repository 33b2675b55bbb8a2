"""Megatron-LM and Megatron Core saves, decoded: declared arguments, numbering, sections of fused tensors, optimizers."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)

TABLE: Final = (
    Code(
        "megatron.args_missing",
        Severity.ERROR,
        Stage.DECODE,
        "{file:path} holds no training arguments, or not the {fact:word} that is needed to place its tensors.",
        "Keep the arguments with the checkpoint, or convert it with the tools of the version that wrote it.",
        "The layers, the experts and the fused projections of a rank are placed by the arguments of the run, which Megatron-LM "
        "saves with them. Nothing is guessed in their place.",
        _USE,
    ),
    Code(
        "megatron.common_args",
        Severity.WARNING,
        Stage.DECODE,
        "{file:path} holds no arguments of the run: sizes of the model and degrees of parallelism are not declared.",
        "Keep common.pt of the same save; give the facts that a mapping table asks for when you convert.",
        "Offsets and shapes put every tensor together without them. What its sections are (heads, a gate, padding) is in the "
        "arguments alone.",
        (),
    ),
    Code(
        "megatron.args_differ",
        Severity.ERROR,
        Stage.DECODE,
        "{file:path} declares another {fact:word} than {first:path}: {found:text} instead of {expected:text}.",
        "Keep the rank folders of one save.",
        "All ranks of a save have the same model and the same degrees of parallelism. These folders are from different runs.",
        _USE,
    ),
    Code(
        "megatron.args_ranks",
        Severity.ERROR,
        Stage.DECODE,
        "The arguments declare {expected:count rank} on the axis {axis:word}, and the names of the folders span {found:count}.",
        "Copy the missing rank folders from the same save.",
        "The degrees of parallelism in the arguments say which rank folders there are. Layers or slices of the others are "
        "missing.",
        _USE,
    ),
    Code(
        "megatron.model_empty",
        Severity.ERROR,
        Stage.DECODE,
        "{count:count rank file} {count:verb hold} no tensor of a model, the first {file:path}.",
        "Look for the weights elsewhere: the files keep other state, or are of another program.",
        "Megatron-LM keeps the model of a rank under the key model, or under model0, model1 and so on, one for each virtual "
        "stage of a pipeline.",
        _USE,
    ),
    Code(
        "megatron.version_unknown",
        Severity.ERROR,
        Stage.DECODE,
        "{file:path} has the checkpoint version {found:text}, whose order of query, key and value is not known.",
        "Convert it with the version of Megatron-LM that wrote it.",
        "The rows of fused projections were ordered differently before version 2, and versions up to 3 are known.",
        _USE,
    ),
    Code(
        "megatron.layers_uneven",
        Severity.ERROR,
        Stage.DECODE,
        "The pipeline does not hold the declared {layers:count layer}: {reason:word}.",
        "Keep all stages of one save; other divisions of the layers than the declared one cannot be numbered.",
        "Layers are numbered anew on each stage of a pipeline. Their place in the model follows from the declared division, "
        "which must come to the declared number of layers.",
        _USE,
    ),
    Code(
        "megatron.experts_uneven",
        Severity.ERROR,
        Stage.DECODE,
        "The ranks do not hold the declared {experts:count expert}: {reason:word}.",
        "Keep all expert-parallel ranks of one save.",
        "Experts are numbered anew on each expert-parallel rank, which holds an equal run of them.",
        _USE,
    ),
    Code(
        "megatron.name_unknown",
        Severity.ERROR,
        Stage.DECODE,
        "{count:count tensor} {count:verb have} names that the layout table {table:name} does not know, the first {tensor:name}: how the "
        "ranks cut them is not told.",
        "Give a layout table for this kind of model.",
        "A rank file holds slices without saying along which dimension they were cut. That is looked up by name, and a name "
        "that is not in the table is not guessed: these tensors are not listed.",
        _USE,
    ),
    Code(
        "megatron.shard_missing",
        Severity.ERROR,
        Stage.DECODE,
        "{count:count tensor} {count:verb lack} the part of a rank, the first {tensor:name}, which {file:path} does not hold.",
        "Copy the file again from the same save.",
        "Each tensor-parallel rank holds a part of each tensor of its stage. These cannot be put together.",
        _USE,
    ),
    Code(
        "megatron.shard_shape",
        Severity.ERROR,
        Stage.DECODE,
        "{count:count tensor} cannot be put together, the first {tensor:name}: {reason:word}.",
        "Compare the arguments of the run with the tensors; the files may be of different saves.",
        "The shards of a tensor have the shape that their declared cut gives them. Other shapes mean other arguments, another "
        "kind of model or files of another save.",
        _USE,
    ),
    Code(
        "megatron.layer_missing",
        Severity.ERROR,
        Stage.DECODE,
        "{count:count} of {layers:count layer} {count:verb hold} no tensors, the first is layer {first:count}.",
        "Copy the missing pipeline stages from the same save.",
        "The declared number of layers is larger than that of the layers that the files hold.",
        _USE,
    ),
    Code(
        "megatron.layout_chosen",
        Severity.INFO,
        Stage.DECODE,
        "{count:count tensor} {count:verb are} put together by the layout table {table:name}, chosen by what the arguments declare: "
        "{facts:word}.",
        "Nothing is needed; look whether the facts are those of the model.",
        "Tensor-parallel slices are joined by a table of names and dimensions. Which of its rules holds (a gated feed-forward "
        "layer, an order of query, key and value) is decided by the arguments that the run saved.",
        (),
    ),
    Code(
        "megatron.names_kept",
        Severity.WARNING,
        Stage.DECODE,
        "The tensors keep Megatron's names and fused layouts; {fitting:word}.",
        "Choose a mapping table when you convert; only then are there names that another framework loads.",
        "Nothing in a Megatron checkpoint says what its tensors are to another model. A mapping table says so, and which one "
        "holds is for a person to decide.",
        (Blocks.LOAD,),
    ),
    Code(
        "megatron.optimizer_buckets",
        Severity.WARNING,
        Stage.DECODE,
        "The optimizer's state lies in flat buckets of the distributed optimizer ({kind:name}), not by parameter; it is not "
        "listed and cannot be converted.",
        "Convert the model alone, or save again with a fully reshardable optimizer.",
        "A bucket is a run of the flattened parameters of some ranks, whose order stands nowhere in the checkpoint. The "
        "model's weights do not depend on it.",
        (),
    ),
    Code(
        "megatron.optimizer_numbered",
        Severity.WARNING,
        Stage.DECODE,
        "{count:count file} keep optimizer state by number instead of by name, the first {first:path}; it is not listed and "
        "cannot be converted.",
        "Convert the model alone.",
        "Megatron-LM's optimizers number the parameters of each rank in the order in which the run grouped them, which is "
        "nowhere in the checkpoint.",
        (),
    ),
    Code(
        "megatron.extra_state",
        Severity.INFO,
        Stage.DECODE,
        "{count:count value} of _extra_state were left out: bytes of Transformer Engine, not tensors of the model.",
        "Nothing is needed, unless the run trained in FP8: its scaling factors are in them.",
        "Transformer Engine keeps its own state beside each layer, for each rank, as opaque bytes.",
        (),
    ),
    Code(
        "megatron.tensor_parallel_differs",
        Severity.ERROR,
        Stage.DECODE,
        "The arguments declare {expected:count} tensor-parallel ranks, and {tensor:name} is cut into {found:count chunk}.",
        "Keep common.pt and the shards of one save together.",
        "The cut of one weight tells the degree of tensor parallelism of the run that wrote it. The arguments beside it are "
        "from another run.",
        _USE,
    ),
    Code(
        "megatron.flat_unknown",
        Severity.ERROR,
        Stage.DECODE,
        "{tensor:name} is stored flattened, and its own shape does not follow: {reason:word}.",
        "Convert it with the version of Megatron Core that wrote it.",
        "Older versions of Megatron Core wrote optimizer state as stretches of flattened shards, with the true shape beside "
        "it. The two must fit together.",
        _USE,
    ),
    Code(
        "megatron.chunk_fill",
        Severity.ERROR,
        Stage.DECODE,
        "{arrays:count array} {arrays:verb lack} chunks for which .zarray gives a value to fill in ({value:text} for {count:count chunk} of "
        "{tensor:name}); they are not put together.",
        "Copy the missing chunk files from the same save.",
        "A zarr library would fill the gap with a constant. In a checkpoint that is lost weights.",
        _USE,
    ),
)

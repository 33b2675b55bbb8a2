"""Decoded DeepSpeed saves: partitions held against shapes, masters against the module, a Universal folder against its copies."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE: Final = (Blocks.CONVERT, Blocks.LOAD)
_SAME: Final = "Copy all files of one save again."


def _error(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.ERROR, Stage.DECODE, message, remedy, meaning, _USE)


def _warning(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.WARNING, Stage.DECODE, message, remedy, meaning, ())


def _info(code: str, message: str, remedy: str, meaning: str) -> Code:
    return Code(code, Severity.INFO, Stage.DECODE, message, remedy, meaning, ())


_FILES: Final = (
    _error(
        "deepspeed.not_states",
        "The file is named like model states and holds none of their keys.",
        "Copy the file again from the save, or move away what does not belong to it.",
        "Model states hold the module, the shapes of the parameters and the configuration under fixed names.",
    ),
    _error(
        "deepspeed.not_partition",
        "The file is named like an optimizer partition and holds no flat weights.",
        "Copy the file again from the save, or move away what does not belong to it.",
        "A partition of ZeRO holds its weights under single_partition_of_fp32_groups (stage 1 and 2) or fp32_flat_groups "
        "(stage 3).",
    ),
    _error(
        "deepspeed.elastic",
        "The partition is of an elastic checkpoint, whose layout is not read here.",
        "Load it with DeepSpeed and save it again with elastic_checkpoint off.",
        "Elastic checkpoints keep the optimizer's state for each group apart, without padding. No such file was available to "
        "prove a reader on.",
    ),
    _error(
        "deepspeed.on_nvme",
        "{what:word} of this save is kept on an NVMe device, and not in the files.",
        "Load this save with DeepSpeed on the same number of ranks and save it again without NVMe offload.",
        "With offload to NVMe tensors stay in swap files of the ranks, and the partitions hold placeholders.",
    ),
    _error(
        "deepspeed.shapes_malformed",
        "param_shapes is no list of names with shapes.",
        _SAME,
        "Names and shapes in the order of the flat buffer are all that tells where a parameter is in it.",
    ),
    _error(
        "deepspeed.entry_unreadable",
        "{place:name} cannot be read: {reason:word}.",
        "Take the entry from an unedited save.",
        "The entry describes how shards make up a tensor, and is read whole or not at all.",
    ),
    _error(
        "deepspeed.info_differs",
        "Tensor-parallel ranks of stage {stage:count} describe the parameters differently in universal_checkpoint_info.",
        _SAME,
        "All tensor-parallel ranks write the same entry. Where they differ, the files are of two saves.",
    ),
    _error(
        "deepspeed.files_differ",
        "Files of the save say different things of {field:word}: {found:word}.",
        _SAME,
        "All ranks of a save write the same numbers there. Where they differ, the files are of two saves.",
    ),
    _error(
        "deepspeed.stages_differ",
        "Files of the save are of different ZeRO stages: {found:word}.",
        "Keep the files of one save.",
        "Partitions of stage 3 are laid out otherwise than those of the stages below it, and no save writes both.",
    ),
    _error(
        "deepspeed.degrees_differ",
        "The save declares {declared:count} {axis:word} ranks, and its files speak of {found:count}.",
        _SAME,
        "The degrees of parallelism decide which rank holds what. Where a declared degree and the files contradict each "
        "other, nothing can be put together.",
    ),
    _error(
        "deepspeed.partitions_absent",
        "{missing:count} of {total:count} optimizer partitions that the save calls for are not there: {ranks:word}.",
        "Copy the partitions of those ranks from the same save.",
        "Every partition records among how many ranks the weights are cut, so that also the last ones are missed. Tensors "
        "that lie on other ranks alone are whole.",
    ),
)

_CUTS: Final = (
    _error(
        "deepspeed.groups_differ",
        "The model states list {shapes:count parameter group}, the partitions hold {partitions:word}.",
        _SAME,
        "A flat buffer belongs to each group of param_shapes. Another number means that the files are of two saves.",
    ),
    _error(
        "deepspeed.partition_short",
        "The shapes call for {used:count element}, and {ranks:count partition} {ranks:verb hold} {held:count}.",
        _SAME,
        "Parameters lie end to end in the flat buffer. One that ends before its last parameter was cut off, or belongs to "
        "another save.",
    ),
    _error(
        "deepspeed.partition_rest",
        "{ranks:count partition} {ranks:verb hold} {held:count element}, and the shapes account for {used:count} of them.",
        _SAME,
        "Behind the last parameter there is padding, never more than alignment needs. More than that is a parameter that "
        "the shapes do not name.",
    ),
    _error(
        "deepspeed.experts_indivisible",
        "{ranks:count data-parallel rank} do not divide into groups of {among:count} that hold the same experts.",
        _SAME,
        "Experts are cut among those data-parallel ranks that hold the same ones, and each group has as many.",
    ),
    _error(
        "deepspeed.experts_absent",
        "Shards of {tensor:name} are there for {found:count} of {total:count expert-parallel rank}.",
        "Copy the files of all ranks from the same save.",
        "Each expert-parallel rank holds its own experts and nobody else does.",
    ),
    _error(
        "deepspeed.experts_missing",
        "The router of {layer:name} chooses among {total:count expert}, and {count:count} of them {count:verb are} in no file, first "
        "expert {first:count}.",
        "Copy all expert files of the same save.",
        "The weight of a layer's router has a row for each expert. The numbers in file names have no gap where the last ones are "
        "absent.",
    ),
    _error(
        "deepspeed.experts_folded",
        "{tensor:name} is cut by tensor parallelism ({tp:count}) or stages ({pp:count}) and by experts at once.",
        "Save with one of them, or consolidate with DeepSpeed.",
        "How both cuts meet is described by metadata that no released writer has settled.",
    ),
    _error(
        "deepspeed.shards_differ",
        "Shards of {tensor:name} have different {what:word}: {found:word}.",
        _SAME,
        "All shards of one tensor have its type, and all stages that hold it have its shape.",
    ),
    _error(
        "deepspeed.shard_absent",
        "{tensor:name} is not on tensor-parallel rank {rank:count} of {total:count}.",
        _SAME,
        "Every tensor-parallel rank keeps its part of each parameter, if only one without elements.",
    ),
    _error(
        "deepspeed.cut_unknown",
        "Nothing says how {ranks:count tensor-parallel rank} make up {count:count tensor}, first {first:name}.",
        "Give their maps, or save with a writer that records universal_checkpoint_info.",
        "Shapes of shards do not tell along which dimension they were cut, nor whether they are several parts. They are not "
        "joined along a guessed one.",
    ),
    _error(
        "deepspeed.refused_alike",
        "Another {count:count tensor} could not be put together for the same reason: {refusal:word}.",
        "Look that code up; what helps one of them helps all.",
        "Of many tensors that are refused alike the first are named, and the rest is counted.",
    ),
    Code(
        "deepspeed.cut_by_convention",
        Severity.WARNING,
        Stage.DECODE,
        "In no category, and taken as cut along dimension 0: {count:count tensor}, first {first:name}.",
        "Check that those are plain column-parallel weights before you convert.",
        "DeepSpeed's writers list replicated, row-parallel and fused parameters, and mean a plain cut along dimension 0 by "
        "listing one nowhere. Its converter joins what is left so without a word. Releases since 0.19.7 record a map of "
        "every parameter instead, and nothing is left.",
        (Blocks.CONVERT,),
    ),
    _error(
        "deepspeed.tensor_absent",
        "Named, and stored nowhere: {count:count tensor}, first {first:name}.",
        _SAME,
        "The module of a stage 3 save holds placeholders; the values are in partitions or in fragments of frozen parameters.",
    ),
    _warning(
        "deepspeed.scaled_states",
        "Optimizer states of {count:count parameter} {count:verb are} not listed, first {first:name}: their shards hold the parameter "
        "times a factor.",
        "Convert the weights alone.",
        "The moments of a scaled parameter scale by other powers, and step sizes stay in the coordinates of the shard.",
    ),
    _info(
        "deepspeed.extra_states",
        "Of what modules hold, {count:count item} cannot be listed as tensors, first {first:name}.",
        "Nothing needs to be done.",
        "Layers can keep an extra state of their own, which is no weight.",
    ),
    _info(
        "deepspeed.module_precision",
        "Without an fp32 master, and listed in the precision of the module: {count:count tensor}, first {first:name}.",
        "Nothing needs to be done: nothing more precise was saved.",
        "Frozen parameters and everything in a save without partitions are stored in the module alone. DeepSpeed's own "
        "recovery script leaves frozen parameters of stage 1 out without a word.",
    ),
)

_TRUTH: Final = (
    _warning(
        "deepspeed.slice_mappings",
        "param_slice_mappings puts {count:count parameter} elsewhere than param_shapes does, first {first:name}.",
        "Do not convert this save with ds_to_universal, which follows the mappings.",
        "With round_robin_gradients the flat buffer is in another order than the mappings say, and the order of param_shapes is "
        "the right one. DeepSpeed's converter to Universal writes wrong weights then, without an error.",
    ),
    _error(
        "deepspeed.masters_differ",
        "The fp32 masters of {count:count} of {total:count tensor} {count:verb are} not what the module holds rounded, first {first:name} "
        "({said:word}).",
        "Do not convert this save. Compare files and save again; copy all files of one save.",
        "A module in 16 bit holds the rounded masters, so both must agree in every element. Where they do not, the files are "
        "of two saves, or the flat buffer was cut in another order than it was written in.",
    ),
    _error(
        "deepspeed.universal_values",
        "{count:count} of {total:count tensor} under zero/ have other values than the copied module, first {first:name} "
        "({said:word}).",
        "Convert the source checkpoint with shardscope instead of this folder.",
        "The folder was converted from the save whose model states stand beside it, and the module there holds the same "
        "weights rounded. Another value is one that the converter wrote wrongly: it does so for saves with round robin.",
    ),
    _error(
        "deepspeed.universal_shape",
        "{tensor:name} under zero/ is {found:word}; the copied model states make it {expected:word}.",
        "Convert the source checkpoint with shardscope instead of this folder.",
        "The converter writes tied and frozen names from one tensor-parallel rank alone, and the rows of the others are "
        "lost.",
    ),
    _error(
        "deepspeed.universal_payload",
        "{file:path} holds no tensor where a state of a parameter belongs.",
        "Convert the source checkpoint again.",
        "A state is a tensor, or a mapping with the tensor under param.",
    ),
    _error(
        "deepspeed.universal_flat",
        "{tensor:name} is stored flat with {found:count element}, and no copied model states say its shape.",
        "Copy the *_model_states.pt files of the source checkpoint beside zero/.",
        "From stage 3 the converter writes parameters flat. Their shapes are in the copied model states alone.",
    ),
    _info(
        "deepspeed.universal_copies",
        "Listed from the copied model states, since it is not under zero/ or not in its own type: {count:count tensor}, first "
        "{first:name}.",
        "Nothing needs to be done.",
        "The converter leaves frozen, tied and buffer entries of stage 3 out, and turns buffers of every type into floats.",
    ),
    _warning(
        "deepspeed.universal_unknown",
        "Under zero/, and named nowhere in the copied model states: {count:count parameter}, first {first:name}.",
        "Move away what does not belong to the save.",
        "Every parameter of the save is named in the model states that the converter copied.",
    ),
)

TABLE: Final = (*_FILES, *_CUTS, *_TRUTH)

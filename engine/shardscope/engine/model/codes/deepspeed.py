"""DeepSpeed saves: ranks, generations and what consolidation asks for."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage

_USE = (Blocks.CONVERT, Blocks.LOAD)
_ALL = (Blocks.DECODE, *_USE)

TABLE: Final = (
    Code(
        "deepspeed.rank_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{missing:count} of {total:count} {what:word} files that the numbers call for are absent, the first {first:path}.",
        "Copy the missing files from the same save. Ranks after the last one seen cannot be noticed from names.",
        "The names of the files span a rectangle of ranks, and not every rank of it is here. Each rank holds a part of "
        "every tensor or of every state, so nothing can be put together from the rest.",
        _ALL,
    ),
    Code(
        "deepspeed.rank_duplicate",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count file} carry the numbers of one rank, among them {first:path}.",
        "Keep the files of one save.",
        "Names that differ in padding or prefix can mean the same rank. Which of them belongs to the others is not told.",
        _ALL,
    ),
    Code(
        "deepspeed.prefix_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Optimizer partitions of different prefixes stand here side by side: {prefixes:word}.",
        "Move the files of one of the saves away.",
        "A save writes bf16_zero_pp_rank_* where bf16 is on and zero_pp_rank_* where it is not, never both. Two saves were "
        "written over each other.",
        _ALL,
    ),
    Code(
        "deepspeed.stages_mixed",
        Severity.ERROR,
        Stage.DESCRIBE,
        "Model states of ZeRO stage 3 ({three:count file}) and of a lower stage ({lower:count file}) stand side by side.",
        "Move the files of one of the saves away.",
        "Stage 3 writes zero_pp_rank_*_model_states.pt for each rank, lower stages mp_rank_*_model_states.pt. No save "
        "writes both, and partitions of one cannot be read as the other.",
        _ALL,
    ),
    Code(
        "deepspeed.model_states_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There are optimizer states ({count:count file}) and no model states beside them.",
        "Copy the *_model_states.pt files of the same save.",
        "Names and shapes of the parameters are kept in the model states; the partitions are flat without them.",
        _ALL,
    ),
    Code(
        "deepspeed.partitions_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There are model states of ZeRO stage 3 ({count:count file}) and no optimizer partitions beside them.",
        "Copy the *_optim_states.pt files of the same save.",
        "In stage 3 the fp32 weights are in the optimizer partitions; the model states hold names, shapes and buffers.",
        _ALL,
    ),
    Code(
        "deepspeed.optimizer_absent",
        Severity.WARNING,
        Stage.DESCRIBE,
        "There is no optimizer partition here, although {script:path} is left only by saves that have some.",
        "Copy the *_optim_states.pt files if this is a save of ZeRO stage 1 or 2.",
        "DeepSpeed leaves its recovery script beside saves of ZeRO. Without partitions the fp32 weights and the optimizer "
        "are gone; weights of lower precision may be in the model states.",
        _USE,
    ),
    Code(
        "deepspeed.layer_gap",
        Severity.WARNING,
        Stage.DESCRIBE,
        "The layer files skip {missing:count number}, the first is {first:count}.",
        "Compare with the pipeline of the model: layers without parameters write no file.",
        "A pipeline module numbers all of its layers, functions too, and writes files for those with parameters. A gap "
        "can be normal or a lost file, and names do not tell which.",
        (Blocks.CONVERT,),
    ),
    Code(
        "deepspeed.expert_counts",
        Severity.WARNING,
        Stage.DESCRIBE,
        "Layers hold different numbers of experts: {counts:word}.",
        "Compare with the configuration of the model.",
        "Some models are built so; otherwise the last experts of a layer were lost.",
        (Blocks.CONVERT,),
    ),
    Code(
        "deepspeed.offloaded",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} holds offloaded tensors: the fp32 weights and the optimizer are not in the .pt files.",
        "Load this save with DeepSpeed on the same number of ranks and save it again without NVMe offload.",
        "With optimizer offload to NVMe the state stays in swap files of the ranks, which have no self-contained layout.",
        _ALL,
    ),
    Code(
        "deepspeed.no_latest",
        Severity.WARNING,
        Stage.DESCRIBE,
        "There is no {tracker:word} beside {folder:path}.",
        "Make sure that the save was finished, and name the tag when you load it.",
        "DeepSpeed writes that file when a save is complete. An interrupted save has none, and a save that was asked not "
        "to update it has none either.",
        (),
    ),
    Code(
        "deepspeed.consolidation_memory",
        Severity.INFO,
        Stage.DESCRIBE,
        "Consolidating {stage:word} with DeepSpeed's own tools can need much CPU memory.",
        "Run them on a machine with memory to spare for all weights in fp32, and watch it.",
        "DeepSpeed's documentation warns that gathering partitioned weights into one state needs substantial CPU memory. "
        "How much depends on version and options; no factor is promised here.",
        (),
    ),
    Code(
        "deepspeed.universal_empty",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count parameter folder} under {folder:path} {count:verb hold} no state, the first {first:name}.",
        "Convert the source checkpoint again, or copy the folders from the same save.",
        "Each folder under zero/ is a parameter and holds at least its fp32.pt. Empty ones are left from an interrupted "
        "conversion or copy.",
        _ALL,
    ),
    Code(
        "deepspeed.universal_no_parameters",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} holds no parameter.",
        "Convert the source checkpoint again.",
        "The zero/ folder of a Universal checkpoint holds a folder for each parameter. Without any, no weight is here.",
        _ALL,
    ),
    Code(
        "deepspeed.universal_weights_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count parameter} under {folder:path} {count:verb have} states but no fp32.pt, the first {first:name}.",
        "Copy fp32.pt of those parameters from the same save.",
        "fp32.pt holds the weight itself. Moments alone cannot give it back.",
        _ALL,
    ),
    Code(
        "deepspeed.universal_states_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{count:count parameter} under {folder:path} {count:verb lack} states that the others have: {first:name} has no {state:name}.",
        "Copy the missing files from the same save.",
        "Every trained parameter of a save has the same optimizer states. One that has only some of them lost the rest.",
        _USE,
    ),
    Code(
        "deepspeed.universal_moments_absent",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count} of {total:count parameter} {count:verb have} weights and no optimizer state, the first {first:name}.",
        "Expect that of frozen parameters, buffers and tied names alone.",
        "The converter writes fp32.pt for names that the optimizer does not know, from one rank's copy in the precision of "
        "the model. For a trained parameter the missing files mean a damaged save.",
        (Blocks.CONVERT,),
    ),
    Code(
        "deepspeed.universal_unexpected",
        Severity.WARNING,
        Stage.DESCRIBE,
        "{count:count item} under zero/ fit no parameter, the first {first:path}.",
        "Move away what does not belong to the save.",
        "Under zero/ stand folders of parameters with one .pt file for each state, and optimizer_state.pt.",
        (),
    ),
    Code(
        "deepspeed.universal_model_states_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "There are no copies of the model states beside {folder:path}.",
        "Copy the *_model_states.pt files of the source checkpoint beside it.",
        "The converter copies the model states beside zero/; DeepSpeed reads progress, shapes and configuration there.",
        (Blocks.LOAD,),
    ),
    Code(
        "deepspeed.universal_optimizer_missing",
        Severity.ERROR,
        Stage.DESCRIBE,
        "{folder:path} holds no optimizer_state.pt.",
        "Convert the source checkpoint again, or copy the file from the same save.",
        "The converter writes what the optimizer keeps beside the parameters into that file, at the end.",
        (Blocks.LOAD,),
    ),
)

"""The closed table of understood names: what a call of each comes to. Everything else stays opaque and is listed as foreign.

A row is added for a class that real checkpoints hold and whose fields somebody reads, or that is harmless to show as its fields.
"""

from typing import Final

from shardscope.engine.parse.pickled import arrays, dcp, plain, tensors
from shardscope.engine.parse.pickled.facts import Rule, Table
from shardscope.engine.parse.pickled.plain import fields, mapping, sequence

Rules = dict[tuple[str, str], Rule]


def _all(module: str, rule: Rule, *names: str) -> Rules:
    return {(module, name): rule for name in names}


def _records(module: str, *names: str) -> Rules:
    """Classes that are nothing but their fields."""
    return {(module, name): fields(name.rpartition(".")[2]) for name in names}


def _values(module: str, *names: str) -> Rules:
    """Enumerations, whose one argument is a value."""
    return {(module, name): fields(name, ("value",)) for name in names}


_BUILTINS: Final[Rules] = {
    (module, name): rule
    for module in ("builtins", "__builtin__")
    for name, rule in {
        "set": sequence("set"),
        "frozenset": sequence("frozenset"),
        "list": sequence("list"),
        "tuple": sequence("tuple"),
        "dict": mapping("dict"),
        "bytes": plain.text_bytes,
        "bytearray": plain.text_bytes,
        "complex": fields("complex", ("real", "imag")),
        "slice": fields("slice", ("start", "stop", "step")),
        "range": fields("range", ("start", "stop", "step")),
        "xrange": fields("range", ("start", "stop", "step")),
        "getattr": plain.attribute,
    }.items()
}

_LIBRARY: Final[Rules] = {
    ("collections", "OrderedDict"): mapping("OrderedDict"),
    ("collections", "defaultdict"): mapping("defaultdict"),
    ("collections", "Counter"): mapping("Counter"),
    ("collections", "deque"): sequence("list"),
    ("argparse", "Namespace"): fields("Namespace"),
    ("types", "SimpleNamespace"): fields("Namespace"),
    **{
        (module, name): plain.path
        for module in ("pathlib", "pathlib._local")
        for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath", "Path", "PurePath")
    },
    ("uuid", "UUID"): fields("UUID"),
    ("datetime", "datetime"): fields("datetime", ("packed", "timezone")),
    ("datetime", "date"): fields("date", ("packed",)),
    ("datetime", "time"): fields("time", ("packed", "timezone")),
    ("datetime", "timedelta"): fields("timedelta", ("days", "seconds", "microseconds")),
    ("datetime", "timezone"): fields("timezone", ("offset", "name")),
    ("decimal", "Decimal"): fields("Decimal", ("text",)),
    ("fractions", "Fraction"): fields("Fraction", ("text", "denominator")),
    ("_io", "BytesIO"): arrays.bytes_io,
    ("io", "BytesIO"): arrays.bytes_io,
    ("_codecs", "encode"): arrays.encoded,
    **{
        (module, name): plain.remade
        for module in ("copyreg", "copy_reg")
        for name in ("_reconstructor", "__newobj__")
    },
}

_NUMPY: Final[Rules] = {
    ("numpy", "dtype"): arrays.dtype,
    **{
        (f"numpy.{core}.multiarray", name): rule
        for core in ("core", "_core")
        for name, rule in {"_reconstruct": arrays.array, "scalar": arrays.scalar}.items()
    },
    ("numpy.core.numeric", "_frombuffer"): arrays.frombuffer,
    ("numpy._core.numeric", "_frombuffer"): arrays.frombuffer,
    **_all(
        "numpy.random._pickle",
        fields("RandomState", ("bit_generator", "constructor")),
        "__randomstate_ctor", "__generator_ctor",
    ),
    ("numpy.random._pickle", "__bit_generator_ctor"): fields("BitGenerator", ("name",), ("state", "seed_sequence")),
    ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"): fields(
        "SeedSequence", ("class", "checksum", "state"), ("entropy", "n_children_spawned", "pool", "pool_size", "spawn_key")
    ),
    ("numpy.random.mtrand", "RandomState"): fields("RandomState", ("seed",)),
}  # fmt: skip

_TORCH: Final[Rules] = {
    ("torch._utils", "_rebuild_tensor"): tensors.tensor_v1,
    ("torch._utils", "_rebuild_tensor_v2"): tensors.tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): tensors.tensor_v3,
    ("torch._utils", "_rebuild_parameter"): tensors.parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): tensors.parameter,
    ("torch._utils", "_rebuild_sparse_tensor"): tensors.sparse,
    ("torch._utils", "_rebuild_sparse_csr_tensor"): tensors.sparse,
    ("torch._utils", "_rebuild_qtensor"): tensors.quantized,
    ("torch._utils", "_rebuild_nested_tensor"): tensors.nested,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): tensors.meta,
    ("torch._utils", "_rebuild_wrapper_subclass"): tensors.wrapper,
    ("torch._utils", "_rebuild_device_tensor_from_numpy"): arrays.from_array,
    ("torch._utils", "_rebuild_xla_tensor"): arrays.from_array,
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"): arrays.from_tensor,
    **{
        (module, name): tensors.typed
        for module in ("torch._tensor", "torch.tensor")
        for name in ("_rebuild_from_type_v2", "_rebuild_from_type")
    },
    ("torch", "Size"): plain.torch_size,
    ("torch", "device"): plain.device,
    ("torch.serialization", "_get_layout"): tensors.layout,
    ("torch.storage", "_load_from_bytes"): plain.nested,
    ("torch", "Generator"): fields("Generator", ("device",)),
}

_SHARD: Final = "torch.distributed._shard"
_TENSOR: Final = ("torch.distributed.tensor", "torch.distributed._tensor")
_STATE: Final = tensors.STATE_NAMES["torch.distributed._shard.sharded_tensor.api.ShardedTensor"]
_PROPERTIES: Final = fields("TensorProperties", (), dcp.PROPERTIES)

_DISTRIBUTED: Final[Rules] = {
    ("torch.distributed.checkpoint.metadata", "Metadata"): dcp.metadata,
    **_records(
        "torch.distributed.checkpoint.metadata",
        "StorageMeta", "MetadataIndex", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata",
    ),
    ("torch.distributed.checkpoint.metadata", "TensorProperties"): _PROPERTIES,
    (dcp.OLD_MODULE, "TensorProperties"): _PROPERTIES,
    **_records(dcp.OLD_MODULE, "ShardedTensorMetadata"),
    **_records("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    **_records("torch.distributed.checkpoint.planner", "SavePlan", "WriteItem", "TensorWriteData", "BytesIOWriteData"),
    (f"{_SHARD}.sharded_tensor.api", "ShardedTensor"): fields("ShardedTensor", (), _STATE),
    **_records(f"{_SHARD}.sharded_tensor.api", "ShardedTensor.ProcessGroupState"),
    **_records(f"{_SHARD}.sharded_tensor.shard", "Shard"),
    **_records(f"{_SHARD}.metadata", "ShardMetadata"),
    **_records(f"{_SHARD}.sharding_spec.chunk_sharding_spec", "ChunkShardingSpec"),
    **_records(f"{_SHARD}.sharding_spec.api", "EnumerableShardingSpec", "DevicePlacementSpec"),
    **_records("torch.distributed.remote_device", "_remote_device"),
    **_records("torch.distributed.device_mesh", "DeviceMesh"),
    **_records("torch.distributed._tensor.device_mesh", "DeviceMesh"),
    **_records("torch.distributed._mesh_layout", "_MeshLayout", "_FlatLayout"),
    **{
        (f"{module}{part}", name): rule
        for module in _TENSOR
        for part, rules in {
            "": {"DTensor": fields("DTensor")},
            ".api": {"DTensor": fields("DTensor")},
            "._api": {"DTensor": fields("DTensor")},
            "._dtensor_spec": {
                "DTensorSpec": fields("DTensorSpec"),
                "TensorMeta": fields("TensorMeta", ("shape", "stride", "dtype")),
                "ShardOrderEntry": fields("ShardOrderEntry", ("tensor_dim", "mesh_dims")),
            },
            ".placement_types": {
                name: fields(name) for name in ("Shard", "Replicate", "_StridedShard", "Partial", "_Partial", "DTensorSpec")
            }
            | {"TensorMeta": fields("TensorMeta", ("shape", "stride", "dtype"))},
        }.items()
        for name, rule in rules.items()
    },
    ("torch.distributed.distributed_c10d", "ReduceOp"): fields("ReduceOp", ("value",)),
    ("torch._C._distributed_c10d", "ReduceOp"): fields("ReduceOp", ("value",)),
}  # fmt: skip

_DEEPSPEED: Final[Rules] = {
    **_records("deepspeed.runtime.fp16.loss_scaler", "LossScaler", "DynamicLossScaler", "LossScalerBase"),
    ("deepspeed.utils.tensor_fragment", "fragment_address"): fields("fragment_address", ("numel", "start")),
    ("deepspeed.checkpoint.universal_checkpoint", "SubparamShape"): fields(
        "SubparamShape", ("patterns", "shape", "partition_dim")
    ),
}

_MEGATRON: Final[Rules] = {
    **_records(
        "megatron.core.dist_checkpointing.mapping",
        "ShardedObject", "ShardedTensor", "ShardedTensorFactory", "LocalNonpersistentObject", "ReplicaId",
    ),
    **_records(
        "megatron.core.rerun_state_machine",
        "RerunErrorInjector", "QuickStats", "Call", "Caller",
    ),
    **_records("megatron.core.transformer.transformer_config", "TransformerConfig", "MLATransformerConfig"),
    **_records("megatron.core.optimizer.optimizer_config", "OptimizerConfig"),
    **_records("megatron.core.distributed.distributed_data_parallel_config", "DistributedDataParallelConfig"),
}  # fmt: skip

_TRAINERS: Final[Rules] = {
    **_records(
        "transformers.training_args",
        "TrainingArguments",
    ),
    **_records("transformers.training_args_seq2seq", "Seq2SeqTrainingArguments"),
    **_records("transformers.trainer_pt_utils", "AcceleratorConfig"),
    **_records("accelerate.state", "PartialState", "AcceleratorState"),
    **_records("accelerate.utils.dataclasses", "DeepSpeedPlugin"),
    **{
        (module, "AttributeDict"): mapping("dict")
        for module in (
            "pytorch_lightning.utilities.parsing", "lightning.pytorch.utilities.parsing", "lightning_fabric.utilities.data",
            "lightning.fabric.utilities.data",
        )
    },
}  # fmt: skip

_MASKS: Final = ("ModelType", "LayerType", "AttnType", "AttnMaskType")

_ENUMERATIONS: Final[Rules] = {
    **_values("uuid", "SafeUUID"),
    **_values("torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"),
    **_values(dcp.OLD_MODULE, "MEM_FORMAT_ENCODING"),
    **_values("torch.distributed.checkpoint.planner", "WriteItemType"),
    **_values("deepspeed.runtime.zero.config", "ZeroStageEnum"),
    **_values("deepspeed.runtime.zero.offload_config", "OffloadDeviceEnum"),
    **_values("megatron.core.enums", "ModelType", "Fp8Recipe", "Fp4Recipe"),
    **_values("megatron.core.transformer.enums", *_MASKS, "AttnBackend", "CudaGraphScope", "InferenceCudaGraphScope"),
    **_values("megatron.model.enums", *_MASKS),
    **_values("megatron.legacy.model.enums", *_MASKS),
    **_values("megatron.core.rerun_state_machine", "RerunMode", "RerunState", "RerunDiagnostic", "SerializableStateType"),
    **_values("transformers.training_args", "OptimizerNames", "ParallelMode"),
    **_values(
        "transformers.trainer_utils",
        "IntervalStrategy", "SchedulerType", "HubStrategy", "SaveStrategy", "EvaluationStrategy", "FSDPOption",
    ),
    **_values("transformers.debug_utils", "DebugOption"),
    **_values("accelerate.utils.dataclasses", "DistributedType", "DynamoBackend"),
    **_values("peft.utils.peft_types", "PeftType", "TaskType"),
}  # fmt: skip

_NAMES: Final = frozenset(
    {("torch", name) for name in tensors.DTYPES}
    | {
        ("torch", name)
        for name in (
            "Tensor", "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged",
            "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
            "per_channel_affine_float_qparams", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format",
        )
    }
    | tensors.STORAGE_CLASSES
    | {
        ("torch._tensor", "Tensor"),
        ("torch.nn.parameter", "Parameter"),
        ("torch.nn.parameter", "Buffer"),
        ("torch.storage", "TypedStorage"),
        ("numpy", "ndarray"),
        ("builtins", "object"),
        ("__builtin__", "object"),
    }
    | {(module, name) for module in ("builtins", "__builtin__") for name in ("int", "float", "str", "bool", "unicode", "long")}
    | {(f"numpy.random._{kind.lower()}", kind) for kind in ("MT19937", "PCG64", "Philox", "SFC64")}
    | {("numpy.random._pcg64", "PCG64DXSM"), ("numpy.random.bit_generator", "SeedSequence")}
)  # fmt: skip

TABLE: Final = Table(
    _BUILTINS
    | _LIBRARY
    | _NUMPY
    | _TORCH
    | _DISTRIBUTED
    | _DEEPSPEED
    | _MEGATRON
    | _TRAINERS
    | _ENUMERATIONS,
    _NAMES,
    frozenset(_ENUMERATIONS),
    tensors.persistent,
)

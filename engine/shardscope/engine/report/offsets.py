"""What "offset" means in each format, by the field or interface that carries it."""

from typing import Final

from shardscope.engine.model.reports import OffsetMeaning

_HEADER: Final = OffsetMeaning(
    "data_offsets of a safetensors header",
    "bytes",
    "where a tensor begins and ends in the data of its file, counted from the end of the header",
)
_LISTED: Final = OffsetMeaning(
    "begin and end of a tensor in the descriptor",
    "bytes",
    "where a tensor begins and ends in its file, counted from the start of the file",
)
_STORAGE: Final = OffsetMeaning(
    "storage_offset of a torch tensor",
    "elements",
    "where a tensor begins in the storage that it is a view of",
)
_DCP: Final = (
    OffsetMeaning(
        "ChunkStorageMetadata.offsets and MetadataIndex.offset",
        "elements",
        "where a fragment begins in the full tensor, one number for each dimension",
    ),
    OffsetMeaning("_StorageInfo.offset", "bytes", "where the item of a fragment begins in its file"),
)
_FLAT: Final = OffsetMeaning(
    "place of a partition in the flat buffer of a parameter group",
    "elements",
    "where a rank's part begins in the parameters laid end to end, padding included",
)

OFFSETS: Final[dict[str, tuple[OffsetMeaning, ...]]] = {
    "hf_safetensors": (_HEADER, _LISTED),
    "vllm_sharded_state": (_HEADER, _LISTED),
    "accelerate_offload": (_HEADER, _LISTED),
    "mistral_consolidated": (_HEADER, _LISTED),
    "peft_adapter": (_HEADER, _LISTED),
    "bundle": (_HEADER, _LISTED),
    "torch_dcp": _DCP,
    "torch_dcp_safetensors": (
        _HEADER,
        _LISTED,
        OffsetMeaning(
            "saved_offsets in the metadata of a safetensors header",
            "elements",
            "where the fragment of a rank begins in the full tensor, one number for each dimension",
        ),
    ),
    "megatron_dist": (
        OffsetMeaning(
            "global_offset of a ShardedTensor",
            "elements",
            "where a fragment begins in the logical tensor, one number for each dimension",
        ),
        *_DCP,
    ),
    "deepspeed_zero": (_FLAT, _STORAGE),
    "fsdp_rank_files": (_FLAT, _STORAGE),
    "hf_torch": (_STORAGE,),
    "torch_save": (_STORAGE,),
    "accelerate_state": (_STORAGE,),
    "meta_consolidated": (_STORAGE,),
    "megatron_legacy": (_STORAGE,),
    "deepspeed_universal": (_STORAGE,),
}
"""By format. A format that is not listed has no offset that this release knows of."""

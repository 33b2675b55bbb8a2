"""What we say to each case of the corpus: the manifest's codes in our words, and where our verdict is another.

`docs/format-notes.md` argues each entry of `EXCEPTIONS`; a test compares the two.
"""

from typing import Any, NamedTuple

Case = dict[str, Any]

CODES: dict[str, frozenset[str]] = {
    manifest: frozenset(ours.split())
    for manifest, ours in {
        "FILE_EMPTY": "file.empty",
        "FILE_LFS_POINTER": "file.lfs_pointer",
        "FILE_HTML": "file.html",
        "FILE_TEXT_INSTEAD": "file.text",
        "FILE_WRONG_FORMAT": "file.wrong_format index.foreign_file",
        "FILE_COMPRESSED": "file.compressed",
        "FILE_INCOMPLETE": "file.incomplete",
        "JSON_SYNTAX": "json.syntax header.syntax",
        "JSON_NOT_UTF8": "json.not_utf8 header.not_utf8",
        "JSON_ENCODING": "json.encoding",
        "JSON_BOM": "json.bom",
        "JSON_NOT_OBJECT": "json.not_object header.not_object index.not_object",
        "JSON_TOO_DEEP": "limit.json_depth",
        "JSON_DUPLICATE_KEY": "json.duplicate_key header.field_duplicate header.metadata_twice header.metadata_duplicate",
        "JSON_NONFINITE": "json.nonfinite header.nonfinite",
        "JSON_LONE_SURROGATE": "json.lone_surrogate header.lone_surrogate",
        "JSON_NUMBER_RANGE": "json.integer_range json.number_range header.number_range",
        "JSON_TOO_LARGE": "limit.json_bytes",
        "ST_TOO_SHORT": "header.too_short",
        "ST_HEADER_LEN_ZERO": "header.length_zero file.zeros",
        "ST_HEADER_PAST_EOF": "header.past_eof",
        "ST_HEADER_TOO_LARGE": "limit.header_bytes",
        "ST_HEADER_BAD_START": "header.bad_start header.leading_space",
        "ST_HEADER_PADDING": "header.padding header.padding_space",
        "ST_DATA_TRUNCATED": "header.truncated",
        "ST_TRAILING_BYTES": "header.overlong",
        "ST_ENTRY_TYPE": "header.entry_type",
        "ST_FIELD_MISSING": "header.field_missing",
        "ST_FIELD_EXTRA": "header.field_extra",
        "ST_METADATA_TYPE": "header.metadata_not_object header.metadata_type header.metadata_null",
        "ST_METADATA_LARGE": "header.metadata_large",
        "ST_OFFSETS_TYPE": "header.offsets_type",
        "ST_OFFSETS_REVERSED": "header.reversed",
        "ST_OFFSETS_GAP": "header.gap",
        "ST_OFFSETS_OVERLAP": "header.overlap",
        "ST_SHAPE_TYPE": "header.shape_type",
        "ST_SHAPE_OVERFLOW": "header.shape_overflow",
        "ST_RANK_LARGE": "header.rank_large limit.tensor_rank",
        "ST_DTYPE_TYPE": "header.dtype_type",
        "ST_DTYPE_UNKNOWN": "header.dtype_unknown",
        "ST_SUBBYTE_UNALIGNED": "header.subbyte_unaligned",
        "ST_SIZE_MISMATCH": "header.size_mismatch",
        "ST_MANY_TENSORS": "",
        "NAME_DUPLICATE": "header.name_duplicate",
        "NAME_EMPTY": "header.name_empty",
        "NAME_LONG": "header.name_long",
        "NAME_CONTROL": "header.name_control header.metadata_control",
        "NAME_BIDI": "header.name_invisible",
        "NAME_CONFUSABLE": "header.name_confusable",
        "NAME_STRUCTURE": "header.name_structure",
        "IDX_SHARD_MISSING": "index.shard_missing",
        "IDX_SHARD_UNLISTED": "index.shard_unlisted index.absent",
        "IDX_SHARD_UNREADABLE": "index.shard_unreadable",
        "IDX_PATH_UNSAFE": "index.path_unsafe index.path_subfolder",
        "IDX_MAP_MISSING": "index.map_missing",
        "IDX_MAP_TYPE": "index.map_type",
        "IDX_MAP_EMPTY": "index.map_empty",
        "IDX_VALUE_TYPE": "index.value_type",
        "IDX_TOTAL_SIZE": "index.total_size",
        "IDX_TOTAL_SIZE_TYPE": "index.total_size_type",
        "IDX_TENSOR_MISSING": "index.tensor_missing index.tensor_elsewhere",
        "IDX_TENSOR_UNLISTED": "index.tensor_unlisted",
        "IDX_TENSOR_DUPLICATE": "index.tensor_duplicate",
        "IDX_SELF": "index.self",
        "IDX_MULTIPLE": "layout.weight_sets",
        "IDX_SHARD_GAP": "layout.shard_gap",
        "IDX_TOTALS_MIXED": "layout.totals_mixed",
        "IDX_NUMBER_RANGE": "layout.shard_number",
        "ZIP_NO_EOCD": "zip.no_end_record",
        "ZIP_MULTI_EOCD": "zip.multiple_end_records",
        "ZIP_EOCD_MISMATCH": "zip.end_record_mismatch",
        "ZIP_CD_BAD": "zip.directory_bad",
        "ZIP_ENTRY_RANGE": "zip.entry_range",
        "ZIP_OVERLAP": "zip.overlap",
        "ZIP_PATH_UNSAFE": "zip.path_unsafe",
        "ZIP_NAME_ODD": "zip.name_odd",
        "ZIP_DUPLICATE": "zip.duplicate",
        "ZIP_SIZE_LIE": "zip.size_lie",
        "ZIP_COMPRESSED": "zip.compressed",
        "ZIP_METHOD": "zip.method",
        "ZIP_ENCRYPTED": "zip.encrypted",
        "ZIP_LOCAL_MISMATCH": "zip.local_mismatch",
        "ZIP_ZIP64_BAD": "zip.zip64_bad zip.zip64_unneeded",
        "ZIP_MULTIDISK": "zip.multi_disk",
        "ZIP_PREFIX": "zip.prefix",
        "ZIP_TRAILING": "zip.trailing",
        "ZIP_COMMENT": "zip.comment",
        "ZIP_MANY_ENTRIES": "limit.zip_entries",
        "ZIP_SYMLINK": "zip.symlink",
        "PT_NO_DATA_PKL": "torch.no_data_pkl",
        "PT_MULTI_ROOT": "torch.multiple_roots",
        "PT_VERSION": "torch.version",
        "PT_BYTEORDER": "torch.byteorder torch.big_endian",
        "PT_TORCHSCRIPT": "torch.torchscript",
        "PKL_EMPTY": "torch.empty_pickle",
        "FS_SYMLINK": "source.link source.root_link source.link_hf_cache",
        "FS_SYMLINK_OUTSIDE": "source.link_outside",
        "FS_SYMLINK_BROKEN": "source.link_broken",
        "FS_SYMLINK_LOOP": "source.link_loop",
        "FS_HARDLINK": "source.hardlink_alias source.hardlink_outside",
        "FS_NOT_REGULAR": "source.not_regular",
        "FS_PERMISSION": "source.unreadable",
        "FS_NAME_BYTES": "source.name_not_utf8",
        "FS_NAME_ODD": "source.name_odd",
        "FS_NAME_COLLISION": "source.name_collision",
        "FS_TOO_DEEP": "limit.path_depth limit.path_bytes",
        "FS_IS_DIR": "layout.folder_as_file",
        "FS_MISSING": "source.missing",
        "FS_EMPTY_DIR": "layout.empty",
        "FS_SPARSE": "source.hole",
        "FS_MTIME": "source.mtime_odd",
        "FS_HIDDEN": "source.hidden",
        "CFG_FIELD_TYPE": "config.field_type config.field_value config.dtype_unknown config.case_twins config.path_reference",
        "CFG_SECRET": "config.secret",
        "CFG_CODE_REF": "config.code_reference",
    }.items()
}
"""The manifest's codes in our words: any of them, where there are several. Those of group D and `NEEDS_DECODING` are missing."""


class Deviation(NamedTuple):
    """A case to which we say something else than the manifest, and why."""

    codes: frozenset[str]
    """What we say: any of them. Empty: nothing needs to be said."""
    reason: str
    verdict: str | None = None
    """Our class, where it is another: `accept`, `reject` or `conditional`."""


def _say(codes: str, reason: str, verdict: str | None = None) -> Deviation:
    return Deviation(frozenset(codes.split()), reason, verdict)


_HARD_LINK = "two names of one file are one tensor read twice, and a change of one changes the other"

_NAMES_ARE_DATA = "a name is told where names are listed; no sentence repeats what looks like a secret in it"

ORDINARY_NAMES = (
    "E.name-255",
    "E.name-255-multibyte",
    "E.name-backslash",
    "E.name-backup",
    "E.name-braces",
    "E.name-colon",
    "E.name-csv",
    "E.name-dash",
    "E.name-dashes",
    "E.name-device",
    "E.name-double-ext",
    "E.name-email",
    "E.name-glob",
    "E.name-html",
    "E.name-markup",
    "E.name-markup-close",
    "E.name-only-ext",
    "E.name-percent",
    "E.name-quotes",
    "E.name-tilde",
    "E.name-trailing-dot",
    "E.name-upper-ext",
)
"""Names that a shell, a template or a spreadsheet would take for something else: none of them reads ours."""

EXCEPTIONS: dict[str, Deviation] = {
    "A.past-eof-u64": _say(
        "header.shape_overflow", "a range of 2**64 - 1 bytes overflows in bits before the file's end matters"
    ),
    "A.past-eof-i64": _say(
        "header.shape_overflow", "a range of 2**63 bytes overflows in bits before the file's end matters"
    ),
    "A.shape-zero-then-huge": _say(
        "", "no step of the product overflows, and the reference library opens it"
    ),
    "C.name-65535": _say(
        "zip.entry_range", "a header with a name of 65,535 bytes does not fit before the directory"
    ),
    "C.entry-no-local-header": _say(
        "zip.overlap",
        "the directory alone shows that the place lies within another entry; nothing is read there",
    ),
    "C.zip64-extensible": _say("", "the specification allows the extension, and every figure agrees"),
    "C.many-entries": _say("", "500 entries are far below the limit"),
    "F.nul-bytes": _say("file.zeros", "a file of zeros was never written, whatever it was meant to hold"),
    "F.long-string": _say("", "within the limits, and shortened only where it is shown"),
    "F.long-key": _say("", "within the limits, and shortened only where it is shown"),
    "F.nul-in-string": _say("", "an escape that is valid JSON; it is made visible wherever it is shown"),
    "F.escapes": _say("", "escapes that are valid JSON; they are made visible wherever they are shown"),
    "B.index-binary": _say("file.zeros", "a file of zeros was never written, whatever it was meant to hold"),
    "B.shard-extra": _say(
        "layout.weight_sets", "a file with a name of its own is another model beside the one of the index"
    ),
    "F.secret-lookalikes": _say("", "values that look like secrets and are none are left as they are"),
    "F.meta-tensor-names": _say("", _NAMES_ARE_DATA),
    "F.meta-file-names": _say("", _NAMES_ARE_DATA),
    "E.hardlink-pair": _say("source.hardlink_alias", _HARD_LINK, "reject"),
    "E.hardlink-300": _say("source.hardlink_alias", _HARD_LINK, "reject"),
    "E.symlink-hub-cache": _say(
        "source.link_hf_cache", "links of the cache are admitted where --hf-cache asks for it", "reject"
    ),
    "E.symlink-root-dangling": _say(
        "source.root_link", "a root that is a link is refused before anybody asks where it leads"
    ),
    "E.dir-named-deep": _say("", "a folder that holds a checkpoint of its own is a folder like any other"),
    **dict.fromkeys(
        ORDINARY_NAMES, _say("", "printable text that shows as it is and cannot pass for another name")
    ),
}
"""By case. Every entry is argued in `docs/format-notes.md`."""

NEEDS_DECODING: dict[str, str] = {
    "C.data-pkl-not-pickle": "the bytes of data.pkl are no pickle",
    "C.storage-missing": "the pickle names a storage that is not there",
    "C.storage-short": "the pickle asks for more bytes than the storage has",
    "C.storage-long": "the pickle asks for fewer bytes than the storage has",
    "C.storage-extra": "the pickle does not name every storage",
    "C.storage-key-path": "the pickle names a storage by a path",
    "C.crc-wrong": "a checksum covers the bytes of a storage",
    "C.crc-wrong-pkl": "a checksum covers the bytes of data.pkl",
    "C.deflate-corrupt": "data.pkl does not inflate",
    "C.deflate-truncated": "data.pkl does not inflate to its end",
    "C.deflate-bomb-pkl": "data.pkl inflates to millions of opcodes",
    "F.meta-pickle-strings": "the strings of a pickle",
    "E.sparse-pkl": "the pickle has no end",
}
"""Cases that look whole from the directory: the fault lies in bytes that the safe plane does not read."""


def expected(case: Case) -> set[str]:
    """Return our codes for a case, of which at least one has to be said; empty where nothing needs to be said."""
    if case["id"] in EXCEPTIONS:
        return set(EXCEPTIONS[case["id"]].codes)
    if case["id"] in NEEDS_DECODING or case["code"] is None:
        return set()
    own = CODES[case["code"]]
    if not own:
        return set()
    return set(own).union(*(CODES.get(code, frozenset()) for code in case.get("also_ok", ())))


def verdict(case: Case) -> str:
    """Return the class of a case in the safe plane: `accept`, `reject` or `conditional`."""
    if case["id"] in NEEDS_DECODING:
        return "conditional"
    deviation = EXCEPTIONS.get(case["id"])
    return deviation.verdict if deviation and deviation.verdict else str(case["expected"])

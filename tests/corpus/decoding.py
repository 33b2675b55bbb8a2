"""What the decoder says to each case of group D: the manifest's codes in our words, and where our verdict is another.

`docs/format-notes.md` names each entry of `DEVIATIONS`; a test compares the two.
"""

from typing import Final

from tests.corpus.expectations import Case, Deviation

CODES: Final[dict[str, frozenset[str]]] = {
    manifest: frozenset(ours.split())
    for manifest, ours in {
        "FILE_EMPTY": "pickle.truncated",
        "PKL_TRUNCATED": "pickle.truncated",
        "PKL_NO_STOP": "pickle.truncated",
        "PKL_LENGTH": "pickle.truncated pickle.length",
        "PKL_FRAME": "pickle.frame pickle.frame_length",
        "PKL_OPCODE": "pickle.opcode",
        "PKL_PROTO": "pickle.protocol pickle.protocol_again",
        "PKL_STACK": "pickle.stack pickle.stack_left",
        "PKL_MARK": "pickle.stack pickle.stack_left limit.pickle_depth",
        "PKL_MEMO_UNSET": "pickle.memo_unset",
        "PKL_MEMO_INDEX": "pickle.memo_place",
        "PKL_TOO_DEEP": "limit.pickle_depth",
        "PKL_TARGET": "pickle.target pickle.arguments",
        "PKL_KEY": "pickle.key",
        "PKL_DUPLICATE_KEY": "pickle.duplicate_key",
        "PKL_STRING": "pickle.text pickle.text_form pickle.surrogate pickle.python2_bytes",
        "PKL_TEXT_ARG": "pickle.text_form",
        "PKL_NUMBER": "",
        "PKL_BUFFER": "pickle.buffer",
        "PKL_EXT": "pickle.extension",
        "PKL_PERSID": "pickle.text_form pickle.persistent_id pickle.storage_key pickle.storage_conflict",
        "PKL_TENSOR_ARGS": "pickle.arguments pickle.tensor_overlap",
        "PKL_FOREIGN_GLOBAL": "pickle.foreign_call pickle.foreign_name",
        "PKL_GLOBAL_NAME": "pickle.name",
        "PKL_NESTED_PICKLE": "pickle.nested",
        "PKL_TRAILING": "pickle.trailing",
        "PKL_LIMIT": "limit.pickle_stack limit.pickle_memo limit.pickle_elements limit.pickle_opcodes",
        "PT_STORAGE_SIZE": "torch.stream_cut torch.stream_count torch.stream_rest",
        "PT_STORAGE_MISSING": "torch.stream_keys",
        "PT_LEGACY": "",
    }.items()
}
"""Any of them, where there are several; empty where nothing has to be said: a number is a number."""

_GRAPH: Final = "a pickle is a graph: what is shared or leads back is read once and stays one thing"
_SPACE: Final = "far below the limits, and nothing is kept for the numbers between"
_CATALOGUE: Final = "names are told where tensors are listed; the decoder hands them on exactly"
_TABLE: Final = "these names are in the table: they hold data that checkpoints are full of"

DEVIATIONS: Final[dict[str, Deviation]] = {
    case: Deviation(frozenset(codes.split()), reason)
    for cases, codes, reason in (
        (
            "cycle-list cycle-dict cycle-pair cycle-tuple cycle-state shared-tuples-60 shared-lists-60 shared-dicts-60 shared-key-60",
            "",
            _GRAPH,
        ),
        ("memo-huge-put memo-huge-put-2g memoize-50k appends-1m append-single-30k build-20k", "", _SPACE),
        ("proto-lower", "", "no loader looks at it, and every opcode means the same in each protocol"),
        ("key-tensor", "", "PyTorch takes tensors as keys, by identity; such a key is no name"),
        ("key-ansi key-empty-and-dots", "", _CATALOGUE),
        ("persid-location", "", "any device is a place that a tensor was saved from"),
        ("foreign-numpy foreign-in-state-dict foreign-build-setstate", "", _TABLE),
        ("build-none-state", "", "loaders ignore an empty state, and nothing is lost"),
        ("tensor-zero-size", "", "a tensor without elements has no bytes, whatever its other lengths are"),
        ("tensor-parameter-nested", "", "a parameter of a parameter is that parameter"),
    )
    for case in (f"D.{name}" for name in cases.split())
}
"""By case: what we say instead."""

UNDERSTOOD: Final = ("D.foreign-numpy", "D.foreign-in-state-dict", "D.foreign-build-setstate")
"""Cases whose foreign names are in our table."""


def expected(case: Case) -> set[str]:
    """Return our codes for a case, of which at least one has to be said; empty where nothing needs to be said."""
    if case["id"] in DEVIATIONS:
        return set(DEVIATIONS[case["id"]].codes)
    if case["code"] is None or not CODES[case["code"]]:
        return set()
    return set(CODES[case["code"]]).union(*(CODES.get(code, frozenset()) for code in case.get("also_ok", ())))

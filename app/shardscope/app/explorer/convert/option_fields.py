"""How the output is made: types, names, files, memory, verification."""

from typing import Final

from msgspec.structs import replace

from shardscope.app.explorer.convert.draft import CASTS
from shardscope.app.explorer.convert.fields import Field, said_of, turned_option, with_options
from shardscope.app.explorer.output.destination import size_word
from shardscope.app.explorer.output.fields import bytes_of, given, number_in, text_in, words_in
from shardscope.widgets.figures import plural, size
from shardscope.widgets.safe import Tone

MOST_WORKERS: Final = 64

OPTIONS: Final = (
    Field(
        "dtype",
        "d",
        "types",
        "Cast floats, round to nearest even; integers, booleans and floats of eight bits and less stay",
        lambda draft, _: "kept" if draft.options.dtype == "keep" else f"cast to {draft.options.dtype}",
        "--dtype",
        turned=turned_option("dtype", tuple(CASTS)),
    ),
    Field(
        "ties",
        "t",
        "tied tensors",
        "Tied tensors under one name, or under each",
        said_of("ties", {"once": "one copy", "both": "under each name"}),
        "--ties",
        turned=turned_option("ties", ("once", "both")),
    ),
    Field(
        "vocab",
        "v",
        "vocabulary",
        "Rows of the vocabulary without its padding; empty: by evidence of the configuration, never by guess",
        lambda draft, _: (
            "by evidence" if draft.options.vocab_size is None else f"{draft.options.vocab_size:,} rows"
        ),
        "--vocab-size",
        typed=lambda draft, text: with_options(draft, vocab_size=number_in(text) if text.strip() else None),
        text=lambda draft: "" if draft.options.vocab_size is None else str(draft.options.vocab_size),
    ),
    Field(
        "mapping",
        "m",
        "names",
        "A mapping table that makes a model's own names of a producer's, by name or file; empty: the checkpoint's own",
        lambda draft, _: given(draft.options.mapping, "as in the checkpoint"),
        "--mapping",
        typed=lambda draft, text: with_options(draft, mapping=text_in(text)),
        text=lambda draft: draft.options.mapping or "",
    ),
    Field(
        "renames",
        "r",
        "rename rules",
        "A file of ordered rules of renaming (`shardscope schema renames`)",
        lambda draft, _: (
            ("none", Tone.MUTED)
            if draft.renames_file is None
            else f"{plural(len(draft.options.renames), 'rule')}"
        ),
        "--rename",
        text=lambda draft: draft.renames_file or "",
    ),
    Field(
        "include",
        "i",
        "only",
        "Only names of the source that match one of these patterns, with spaces between",
        lambda draft, _: given(" ".join(draft.options.include) or None, "all names"),
        "--include",
        typed=lambda draft, text: with_options(draft, include=words_in(text)),
        text=lambda draft: " ".join(draft.options.include),
    ),
    Field(
        "exclude",
        "x",
        "without",
        "Not names of the source that match one of these patterns, with spaces between",
        lambda draft, _: given(" ".join(draft.options.exclude) or None, "nothing left out"),
        "--exclude",
        typed=lambda draft, text: with_options(draft, exclude=words_in(text)),
        text=lambda draft: " ".join(draft.options.exclude),
    ),
    Field(
        "shard",
        "s",
        "file size",
        "Bytes of tensors in one file; a run that ends early keeps whole files",
        lambda draft, _: f"at most {size_word(draft.options.max_shard_bytes)}",
        "--max-shard-size",
        typed=lambda draft, text: with_options(draft, max_shard_bytes=bytes_of(text)),
        text=lambda draft: size_word(draft.options.max_shard_bytes),
    ),
    Field(
        "memory",
        "b",
        "buffers",
        "Bytes of buffers, all workers together",
        lambda draft, _: f"{size(draft.options.memory_bytes)}",
        "--memory",
        typed=lambda draft, text: with_options(draft, memory_bytes=bytes_of(text)),
        text=lambda draft: size_word(draft.options.memory_bytes),
    ),
    Field(
        "workers",
        "w",
        "workers",
        "Threads that copy",
        lambda draft, _: plural(draft.options.workers, "thread"),
        "--workers",
        typed=lambda draft, text: with_options(draft, workers=number_in(text, MOST_WORKERS)),
        text=lambda draft: str(draft.options.workers),
    ),
    Field(
        "verify",
        "f",
        "verified",
        "How much of the staged output is compared with the source before it appears",
        said_of("verify", {"full": "every byte", "sample": "a sample", "headers": "headers alone"}),
        "--verify",
        turned=turned_option("verify", ("sample", "full", "headers")),
    ),
    Field(
        "digest",
        "e",
        "digests",
        "SHA-256 of the output files; without them a run cannot be gone on with",
        said_of("digest", {"sha256": "SHA-256", "none": ("none", Tone.CAUTION)}),
        "--digest",
        turned=turned_option("digest", ("sha256", "none")),
    ),
    Field(
        "digest_source",
        "u",
        "of the source",
        "Hash the source, too, and record it in the manifest",
        said_of("digest_source", {True: "SHA-256", False: ("not hashed", Tone.MUTED)}),
        "--digest-source",
        turned=turned_option("digest_source", (False, True)),
    ),
    Field(
        "crc",
        "z",
        "checksums",
        "Check the checksums that zip records carry",
        said_of("check_crc", {True: "checked", False: ("not checked", Tone.CAUTION)}),
        "--crc",
        turned=turned_option("check_crc", (True, False)),
    ),
    Field(
        "carry",
        "a",
        "carried along",
        "Copy configuration and tokenizer files along",
        said_of("carry", {True: "config, tokenizer", False: "nothing"}),
        "--carry",
        turned=turned_option("carry", (True, False)),
    ),
    Field(
        "config",
        "o",
        "config from",
        "A folder with configuration and tokenizer to carry, in place of those beside the source",
        lambda draft, _: given(draft.config, "beside the source"),
        "--config",
        typed=lambda draft, text: replace(draft, config=text_in(text)),
        text=lambda draft: draft.config or "",
    ),
)

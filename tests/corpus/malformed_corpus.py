# ruff: noqa: B905, C408, C420, C901, E742, N802, N806, N818, PLC3002, Q001, Q003, RUF005, UP031
# fmt: off
# mypy: ignore-errors
"""Deterministic corpus of malformed and unusual model-weight inputs.

    python malformed_corpus.py OUTDIR                  write the corpus and OUTDIR/MANIFEST.json
    python malformed_corpus.py OUTDIR --large          also write the cases of 8 MB and more
    python malformed_corpus.py OUTDIR --no-sparse      skip sparse files over 1 GiB
    python malformed_corpus.py --clean OUTDIR          remove a corpus (also mode-000 entries)
    python malformed_corpus.py OUTDIR --verify PY      compare the recorded verdicts with a fresh
                                                       run; PY is a python that has `safetensors`
    python malformed_corpus.py OUTDIR --record PY      print a fresh table of verdicts

Standard library only.  Nothing here is ever unpickled: the pickle streams are put together from
opcode bytes, and are checked with `pickletools` (a disassembler) alone.  Every token, key, host
and address is made up (RFC 2606 / RFC 5737 names, vendors' public EXAMPLE keys).

Manifest, one object a case:
  id           stable, "GROUP.slug"
  group        A safetensors | B index and shards | C zip | D pickle | E file system | F JSON
  path         what to hand to the reader, relative to OUTDIR, always plain ASCII; a file or folder
               (OUTDIR as a whole is a good last test: every group in one scan)
  kind         file | dir | other (missing, FIFO, dangling link)
  entry_hex    (E) bytes of the odd name inside `path`, in hex, where the name is not plain ASCII
  expected     accept: read in full, `code` (if any) is only a note
               reject: the input is refused with `code`, everything beside it is still reported
               conditional: reading on and refusing are both defensible, `condition` says why;
               a reader that notices the oddity says `code`, as a note or as the error
  code         suggested stable code, see `codes`; also_ok lists codes that fit as well
  hazards      what a careless reader does: memory, cpu, hang, recursion, terminal, path-escape,
               leak, exec, crash
  facts        what a correct reader reports
  reference    what another reader says (tool, verdict, kind, detail); recorded, not run here
  size, sha256 (file) or entries, bytes, tree_sha256 (dir); sha256 is null for large sparse files
  requires     "non-root": meaningless when the tests run as root
  skipped      why the case was not written (needs --large, or refused by this platform)

Do NOT copy or archive a corpus with a tool that fills holes: sparse files claim up to 1 TiB each
(A, B, C and E hold some; `sparse` or `sparse_files` marks them).
"""
from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import unicodedata
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

GENERATOR = "malformed_corpus/1"
U64 = 1 << 64
GROUP_DIRS = {
    "A": "A_safetensors", "B": "B_index", "C": "C_zip",
    "D": "D_pickle", "E": "E_filesystem", "F": "F_json",
}
GROUP_TITLES = {
    "A": "safetensors files", "B": "index JSON and shard sets", "C": "zip containers",
    "D": "pickle opcode streams", "E": "file system entries", "F": "JSON configs and secrets",
}

CODES = {
    # any file
    "FILE_EMPTY": "the file has no bytes",
    "FILE_LFS_POINTER": "a git-LFS pointer stands where the weights should be",
    "FILE_HTML": "an HTML page stands where the weights should be",
    "FILE_TEXT_INSTEAD": "a JSON or text error stands where the weights should be",
    "FILE_WRONG_FORMAT": "the content is another format than the name says",
    "FILE_COMPRESSED": "the file is compressed as a whole (gzip, xz, zstd)",
    "FILE_INCOMPLETE": "the name marks an unfinished download",
    # JSON in general
    "JSON_SYNTAX": "not valid JSON",
    "JSON_NOT_UTF8": "not valid UTF-8",
    "JSON_ENCODING": "UTF-16/32 instead of UTF-8",
    "JSON_BOM": "starts with a byte-order mark",
    "JSON_NOT_OBJECT": "the top level is not an object",
    "JSON_TOO_DEEP": "nested deeper than the limit",
    "JSON_DUPLICATE_KEY": "the same key twice in one object",
    "JSON_NONFINITE": "NaN or Infinity",
    "JSON_LONE_SURROGATE": "an unpaired UTF-16 surrogate escape",
    "JSON_NUMBER_RANGE": "a number outside the supported range",
    "JSON_TOO_LARGE": "larger than the limit for its kind",
    # safetensors framing
    "ST_TOO_SHORT": "fewer than the 8 bytes of the length prefix",
    "ST_HEADER_LEN_ZERO": "header length 0",
    "ST_HEADER_PAST_EOF": "header length reaches past the end of the file",
    "ST_HEADER_TOO_LARGE": "header length over 100,000,000",
    "ST_HEADER_BAD_START": "the header does not begin with '{'",
    "ST_HEADER_PADDING": "header padded with something other than spaces",
    "ST_DATA_TRUNCATED": "the data section is shorter than the header says",
    "ST_TRAILING_BYTES": "bytes after the last tensor",
    # safetensors entries
    "ST_ENTRY_TYPE": "a tensor entry is not an object",
    "ST_FIELD_MISSING": "dtype, shape or data_offsets is missing",
    "ST_FIELD_EXTRA": "a field that the format does not name",
    "ST_METADATA_TYPE": "__metadata__ is not an object of strings",
    "ST_METADATA_LARGE": "very large __metadata__",
    "ST_OFFSETS_TYPE": "data_offsets is not two non-negative 64-bit integers",
    "ST_OFFSETS_REVERSED": "begin is after end",
    "ST_OFFSETS_GAP": "a hole in the data section",
    "ST_OFFSETS_OVERLAP": "two tensors share bytes",
    "ST_SHAPE_TYPE": "shape is not a list of non-negative 64-bit integers",
    "ST_SHAPE_OVERFLOW": "shape times element size does not fit 64 bits",
    "ST_RANK_LARGE": "more dimensions than usual libraries support",
    "ST_DTYPE_TYPE": "dtype is not a string",
    "ST_DTYPE_UNKNOWN": "dtype is not in the list",
    "ST_SUBBYTE_UNALIGNED": "a sub-byte tensor does not end on a byte boundary",
    "ST_SIZE_MISMATCH": "end - begin is not shape times element size",
    "ST_MANY_TENSORS": "very many tensors",
    # names
    "NAME_DUPLICATE": "the same tensor name twice",
    "NAME_EMPTY": "empty name",
    "NAME_LONG": "very long name",
    "NAME_CONTROL": "control characters or escape sequences in a name",
    "NAME_BIDI": "invisible or direction-changing characters in a name",
    "NAME_CONFUSABLE": "names that look the same",
    "NAME_STRUCTURE": "a name that breaks naive splitting, sorting or counting",
    # index and shards
    "IDX_SHARD_MISSING": "the index names a file that is not there",
    "IDX_SHARD_UNLISTED": "a weight file that the index does not name",
    "IDX_SHARD_UNREADABLE": "a shard that the index names cannot be read",
    "IDX_PATH_UNSAFE": "a shard path leaves the folder or is not a plain relative path",
    "IDX_MAP_MISSING": "no weight_map",
    "IDX_MAP_TYPE": "weight_map is not an object",
    "IDX_MAP_EMPTY": "weight_map is empty",
    "IDX_VALUE_TYPE": "a weight_map value is not a string",
    "IDX_TOTAL_SIZE": "metadata.total_size is wrong",
    "IDX_TOTAL_SIZE_TYPE": "metadata.total_size is not a non-negative integer",
    "IDX_TENSOR_MISSING": "the index puts a tensor in a file that lacks it",
    "IDX_TENSOR_UNLISTED": "a shard holds a tensor that the index does not name",
    "IDX_TENSOR_DUPLICATE": "a tensor is in two shards",
    "IDX_SELF": "the index names itself as a shard",
    "IDX_MULTIPLE": "more than one index or an index beside a whole model",
    "IDX_SHARD_GAP": "numbers are missing in NNNNN-of-NNNNN",
    "IDX_TOTALS_MIXED": "shards with different -of-NNNNN totals",
    "IDX_NUMBER_RANGE": "a shard number is 0 or above its total",
    # zip
    "ZIP_NO_EOCD": "no end-of-central-directory record",
    "ZIP_MULTI_EOCD": "more than one candidate end record",
    "ZIP_EOCD_MISMATCH": "end record disagrees with the central directory",
    "ZIP_CD_BAD": "the central directory is out of range or malformed",
    "ZIP_ENTRY_RANGE": "an entry lies outside the file or over the directory",
    "ZIP_OVERLAP": "entries overlap",
    "ZIP_PATH_UNSAFE": "an entry name is absolute, has '..', a drive, NUL or a backslash",
    "ZIP_NAME_ODD": "an entry name is empty, very long or not text",
    "ZIP_DUPLICATE": "the same entry name twice",
    "ZIP_SIZE_LIE": "declared sizes cannot be true",
    "ZIP_COMPRESSED": "a compressed entry",
    "ZIP_METHOD": "an unsupported compression method",
    "ZIP_ENCRYPTED": "an encrypted entry",
    "ZIP_LOCAL_MISMATCH": "local and central headers disagree",
    "ZIP_ZIP64_BAD": "broken or contradictory zip64 records",
    "ZIP_MULTIDISK": "multi-disk fields are used",
    "ZIP_PREFIX": "bytes before the first entry",
    "ZIP_TRAILING": "bytes after the end record",
    "ZIP_COMMENT": "an archive comment",
    "ZIP_CRC": "a CRC that does not match",
    "ZIP_MANY_ENTRIES": "very many entries",
    "ZIP_SYMLINK": "an entry marked as a symbolic link",
    "PT_NO_DATA_PKL": "no data.pkl in the archive",
    "PT_MULTI_ROOT": "more than one top folder",
    "PT_STORAGE_MISSING": "a storage named by the pickle is not in the archive",
    "PT_STORAGE_SIZE": "a storage has another size than the pickle says",
    "PT_STORAGE_UNREFERENCED": "a storage that the pickle does not name",
    "PT_VERSION": "an unknown container version",
    "PT_BYTEORDER": "big-endian or unknown byte order",
    "PT_TORCHSCRIPT": "a TorchScript archive",
    "PT_LEGACY": "a legacy (pre-zip) torch file",
    # pickle
    "PKL_EMPTY": "no opcodes",
    "PKL_TRUNCATED": "ends inside an opcode or its argument",
    "PKL_NO_STOP": "ends without STOP",
    "PKL_TRAILING": "bytes after STOP",
    "PKL_OPCODE": "unknown opcode",
    "PKL_PROTO": "unsupported or misplaced PROTO",
    "PKL_LENGTH": "a length prefix is negative or reaches past the end",
    "PKL_FRAME": "FRAME does not match the stream",
    "PKL_MEMO_UNSET": "reads a memo slot that was never set",
    "PKL_MEMO_INDEX": "a memo index that is negative, huge or not a number",
    "PKL_STACK": "stack underflow or wrong stack at STOP",
    "PKL_MARK": "MARK missing or left over",
    "PKL_TOO_DEEP": "nested deeper than the limit",
    "PKL_CYCLE": "an object contains itself",
    "PKL_SHARED": "heavily shared objects, expansion would be exponential",
    "PKL_LIMIT": "over the limit for opcodes, stack or memo",
    "PKL_KEY": "an unhashable or non-string dict key",
    "PKL_DUPLICATE_KEY": "the same dict key twice",
    "PKL_TARGET": "an opcode is applied to an object of the wrong kind",
    "PKL_TEXT_ARG": "a protocol-0 text argument that does not parse",
    "PKL_STRING": "a string that is not valid UTF-8 or has a bad escape",
    "PKL_NUMBER": "an integer too large to show or a non-finite float",
    "PKL_BUFFER": "out-of-band buffers",
    "PKL_EXT": "extension registry codes",
    "PKL_PERSID": "a persistent id that is not a torch storage",
    "PKL_GLOBAL_NAME": "an empty, odd or non-string global name",
    "PKL_FOREIGN_GLOBAL": "names a global outside the known list; reported, never imported",
    "PKL_TENSOR_ARGS": "a tensor rebuild with impossible arguments",
    "PKL_NESTED_PICKLE": "bytes that a call would unpickle again; not followed",
    # file system
    "FS_SYMLINK": "a symbolic link (followed or not by policy)",
    "FS_SYMLINK_OUTSIDE": "a symbolic link that leaves the scanned folder",
    "FS_SYMLINK_BROKEN": "a dangling symbolic link",
    "FS_SYMLINK_LOOP": "a symbolic link loop",
    "FS_HARDLINK": "the same file under two names",
    "FS_NOT_REGULAR": "not a regular file (FIFO, socket, device)",
    "FS_PERMISSION": "not readable",
    "FS_NAME_BYTES": "a name that is not valid UTF-8",
    "FS_NAME_ODD": "control, direction, markup or whitespace characters in a name",
    "FS_NAME_COLLISION": "names that differ only by case or normalisation",
    "FS_TOO_DEEP": "folders nested deeper than the limit or a path over PATH_MAX",
    "FS_IS_DIR": "a folder where a file is expected",
    "FS_MISSING": "the path does not exist",
    "FS_EMPTY_DIR": "nothing to report",
    "FS_SPARSE": "a file with far fewer blocks than bytes",
    "FS_MTIME": "a modification time that dates cannot show",
    "FS_HIDDEN": "a hidden entry (shown or not by policy)",
    # configs
    "CFG_FIELD_TYPE": "a field has an unexpected type or an absurd value",
    "CFG_SECRET": "a secret-looking value that a sanitised report must not repeat",
    "CFG_CODE_REF": "names remote code; shown, never imported",
}


class Sparse:
    """A file of `size` bytes with `head` at the start and `tail` at the end, holes between."""

    def __init__(self, size: int, head: bytes = b"", tail: bytes = b""):
        self.size, self.head, self.tail = size, head, tail


def write_file(path, data) -> None:
    if isinstance(data, Sparse):
        with open(path, "wb") as f:
            f.write(data.head)
            f.truncate(data.size)
            if data.tail:
                f.seek(data.size - len(data.tail))
                f.write(data.tail)
    else:
        with open(path, "wb") as f:
            f.write(data)


def sha256_file(path, limit=32 << 20):
    st = os.stat(path)
    if st.st_size > limit:
        return None
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for b in iter(lambda: f.read(1 << 20), b""):
            h.update(b)
    return h.hexdigest()


def tree_facts(root) -> dict:
    """Entries, bytes and a digest of a folder; never opens anything but small regular files."""
    rootb = os.fsencode(root)
    rows, nbytes, sparse = [], 0, 0
    for top, dirs, files, fd in os.fwalk(rootb):
        dirs.sort()
        rel = top[len(rootb):].lstrip(b"/")
        for name in sorted(dirs + files):
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            what = b"?"
            if stat.S_ISLNK(st.st_mode):
                what = b"l" + os.readlink(name, dir_fd=fd)
            elif stat.S_ISDIR(st.st_mode):
                what = b"d"
            elif stat.S_ISREG(st.st_mode):
                what = b"f%d" % st.st_size
                if st.st_size <= 32 << 20:
                    nbytes += st.st_size
                    h = os.open(name, os.O_RDONLY, dir_fd=fd)
                    with os.fdopen(h, "rb") as f:
                        what += hashlib.sha256(f.read()).digest()
                else:
                    sparse += 1
            elif stat.S_ISFIFO(st.st_mode):
                what = b"p"
            elif stat.S_ISSOCK(st.st_mode):
                what = b"s"
            rows.append((rel + b"/" + name, what))
    h = hashlib.sha256()
    for name, what in sorted(rows):
        h.update(struct.pack("<Q", len(name)) + name + struct.pack("<Q", len(what)) + what)
    out = {"entries": len(rows), "bytes": nbytes, "tree_sha256": h.hexdigest()}
    if sparse:
        out["sparse_files"] = sparse
    return out


class Corpus:
    def __init__(self, out: Path, large=False, sparse=True):
        self.out, self.large, self.sparse = out, large, sparse
        self.cases: list[dict] = []
        self.seen: set[str] = set()
        self.late: list[tuple] = []  # (mode, path): applied after the digests
        for g in GROUP_DIRS.values():
            (out / g).mkdir(parents=True, exist_ok=True)

    def _register(self, group, slug, description, expected, code, path, kind, *, hazards=(),
                  facts=None, condition=None, also_ok=(), subject=None, severity=None, tool=None,
                  requires=None, skipped=None):
        cid = f"{group}.{slug}"
        assert cid not in self.seen, cid
        assert expected in ("accept", "reject", "conditional"), cid
        assert code is None or code in CODES, (cid, code)
        assert all(a in CODES for a in also_ok), (cid, also_ok)
        assert expected == "accept" or code, cid
        assert (expected == "conditional") == bool(condition), (cid, "condition")
        assert description.isascii(), cid
        self.seen.add(cid)
        row = {"id": cid, "group": group, "path": path, "kind": kind,
               "description": description, "expected": expected, "code": code}
        if code:
            row["severity"] = severity or {"reject": "error", "conditional": "warning",
                                           "accept": "info"}[expected]
        if also_ok:
            row["also_ok"] = sorted(also_ok)
        if condition:
            row["condition"] = condition
        if hazards:
            row["hazards"] = sorted(hazards)
        if facts:
            row["facts"] = facts
        if subject is not None:
            row["reference_subject"] = subject
        if tool:
            row["_tool"] = tool
        if requires:
            row["requires"] = requires
        if skipped:
            row["skipped"] = skipped
        self.cases.append(row)
        return row

    def file(self, group, slug, ext, description, expected, code, data, *, large=False, tool=None,
             **kw):
        rel = f"{GROUP_DIRS[group]}/{slug}{ext}"
        skipped = None
        if large and not self.large:
            skipped = "needs --large"
        elif isinstance(data, Sparse) and data.size > 1 << 30 and not self.sparse:
            skipped = "--no-sparse"
        row = self._register(group, slug, description, expected, code, rel, "file", tool=tool,
                             skipped=skipped, **kw)
        if large:
            row["large"] = True
        if skipped:
            return
        p = self.out / rel
        try:
            write_file(p, data() if callable(data) else data)
        except OSError as e:
            row["skipped"] = f"platform: {errno.errorcode.get(e.errno, e.errno)}"
            if p.exists():
                p.unlink()
            return
        row["size"] = p.stat().st_size
        row["sha256"] = sha256_file(p)
        if isinstance(data, Sparse):
            row["sparse"] = True

    def dir(self, group, slug, description, expected, code, files: dict, *, subject=None, tool=None,
            **kw):
        rel = f"{GROUP_DIRS[group]}/{slug}"
        row = self._register(group, slug, description, expected, code, rel, "dir",
                             subject=subject, tool=tool, **kw)
        base = self.out / rel
        base.mkdir()
        for name, data in files.items():
            p = base / name
            p.parent.mkdir(parents=True, exist_ok=True)
            if data is None:
                p.mkdir()
            else:
                write_file(p, data)
        row.update(tree_facts(base))


# ------------------------------------------------------------------------------------------------
# A. safetensors files
# ------------------------------------------------------------------------------------------------

def js(obj) -> str:
    return json.dumps(obj, separators=(",", ":"))


def st(header, data: bytes = b"", n: int | None = None) -> bytes:
    """A safetensors file: header given as bytes, text or object; n overrides the length prefix."""
    if not isinstance(header, (bytes, str)):
        header = js(header)
    if isinstance(header, str):
        header = header.encode("utf-8")
    return struct.pack("<Q", (len(header) if n is None else n) % U64) + header + data


def raw(dtype='"F32"', shape="[2]", off="[0,8]", name='"w"', more="", outer="") -> str:
    """A one-tensor header as text, each part given as JSON source."""
    return f'{{{name}:{{"dtype":{dtype},"shape":{shape},"data_offsets":{off}{more}}}{outer}}}'


def entry(dtype, shape, begin, end) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def named(*names: str) -> bytes:
    """A valid file with one U8 scalar a name (names written with JSON escapes)."""
    body = ",".join(f"{json.dumps(n)}:{js(entry('U8', [], i, i + 1))}" for i, n in enumerate(names))
    return st("{" + body + "}", bytes(len(names)))


BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
        "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
        "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
        "U64": 64}
D8 = bytes(range(8))
OK = raw()  # {"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}, wants 8 bytes of data


def group_a(c: Corpus) -> None:
    def A(slug, description, expected, code, data, **kw):
        c.file("A", slug, ".safetensors", description, expected, code, data,
               tool="safetensors", **kw)

    # -- baselines -------------------------------------------------------------------------------
    A("ok-one", "baseline: one F32 tensor", "accept", None, st(OK, D8), facts={"tensors": 1})
    A("ok-empty-object", "header {} and no data", "accept", None, st("{}"), facts={"tensors": 0})
    A("ok-metadata-only", "only __metadata__, no tensor", "accept", None,
      st({"__metadata__": {"format": "pt"}}), facts={"tensors": 0})
    A("ok-unpadded", "header length not a multiple of 8", "accept", None,
      st('{"a":' + js(entry("U8", [3], 0, 3)) + "}", b"abc"), facts={"tensors": 1})
    A("ok-padded", "header padded with spaces to a multiple of 8", "accept", None,
      st(OK + " " * (-len(OK) % 8), D8), facts={"tensors": 1})
    A("ok-padded-far", "header padded with 16 KiB of spaces", "accept", None,
      st(OK + " " * 16384, D8), facts={"tensors": 1})
    off, hdr, blob = 0, {}, b""
    for name, bits in BITS.items():
        hdr["t." + name] = entry(name, [8], off, off + bits)
        off += bits
        blob += bytes(bits)
    A("ok-all-dtypes", "one tensor of each of the 22 dtypes of safetensors 0.8", "accept", None,
      st(hdr, blob), facts={"tensors": len(BITS), "dtypes": sorted(BITS)})
    A("ok-unordered", "JSON order differs from offset order", "accept", None,
      st('{"b":%s,"a":%s}' % (js(entry("U8", [4], 4, 8)), js(entry("U8", [4], 0, 4))), D8),
      facts={"tensors": 2})
    A("ok-scalar", "0-rank tensor, shape []", "accept", None, st(raw(shape="[]", off="[0,4]"), D8[:4]),
      facts={"tensors": 1, "elements": 1})
    A("ok-zero-size", "shape [0,3], begin = end = 0, no data", "accept", None,
      st(raw(shape="[0,3]", off="[0,0]")), facts={"tensors": 1, "elements": 0})
    A("ok-zero-size-mixed", "empty tensors before, between and after full ones", "accept", None,
      st({"z0": entry("F32", [0], 0, 0), "a": entry("U8", [4], 0, 4), "z1": entry("F32", [4, 0], 4, 4),
          "b": entry("U8", [4], 4, 8), "z2": entry("BF16", [0], 8, 8)}, D8), facts={"tensors": 5})
    A("ok-json-spread", "insignificant white space (tabs, newlines) between the JSON tokens", "accept",
      None, st(json.dumps({"w": entry("F32", [2], 0, 8)}, indent="\t").replace("\n", "\r\n"), D8),
      facts={"tensors": 1})
    A("ok-escaped-keys", "field names written with \\u escapes", "accept", None,
      st('{"\\u0077":{"\\u0064type":"\\u004632","sh\\u0061pe":[2],"data_offsets":[0,8]}}', D8),
      facts={"tensors": 1, "names": ["w"], "dtypes": ["F32"]})

    # -- framing ---------------------------------------------------------------------------------
    A("empty-file", "0 bytes", "reject", "FILE_EMPTY", b"", also_ok=["ST_TOO_SHORT"])
    A("one-byte", "1 byte", "reject", "ST_TOO_SHORT", b"\x08")
    A("seven-bytes", "7 bytes, one short of the length prefix", "reject", "ST_TOO_SHORT",
      b"\x02\0\0\0\0\0\0")
    A("len-zero-only", "8 zero bytes: header length 0, nothing after", "reject",
      "ST_HEADER_LEN_ZERO", bytes(8))
    A("len-zero-with-data", "header length 0, then 16 bytes", "reject", "ST_HEADER_LEN_ZERO",
      bytes(8) + bytes(16))
    A("len-one", "header length 1, header is a single brace", "reject", "JSON_SYNTAX", st("{"))
    A("len-two-cut", "header length 2 but a 54-byte header: JSON is cut", "reject", "JSON_SYNTAX",
      st(OK, D8, n=2))
    A("len-past-eof-by-one", "header length is one more than there is", "reject",
      "ST_HEADER_PAST_EOF", st(OK, n=len(OK) + 1))
    A("len-short-by-one", "header length is one less: the closing brace is left out", "reject",
      "JSON_SYNTAX", st(OK, D8, n=len(OK) - 1))
    A("len-truncated-header", "file ends in the middle of the header (cut download)", "reject",
      "ST_HEADER_PAST_EOF", st(OK, D8)[:40])
    for slug, n, text in [
        ("len-1-tib", 1 << 40, "2**40"), ("len-2-63", 1 << 63, "2**63"),
        ("len-2-63-minus-1", (1 << 63) - 1, "2**63-1, the largest signed value"),
        ("len-2-64-minus-1", U64 - 1, "2**64-1, -1 when read as signed"),
        ("len-2-64-minus-8", U64 - 8, "2**64-8, so that 8 + length wraps to 0"),
        ("len-100m-plus-1", 100_000_001, "100,000,001, one over the limit"),
    ]:
        A(slug, f"header length {text} in a small file", "reject", "ST_HEADER_TOO_LARGE",
          st(OK, D8, n=n), also_ok=["ST_HEADER_PAST_EOF"], hazards=["memory"])
    A("len-100m", "header length 100,000,000 (the limit itself) in a small file", "reject",
      "ST_HEADER_PAST_EOF", st(OK, D8, n=100_000_000), hazards=["memory"])
    A("len-big-endian", "length prefix written big-endian", "reject", "ST_HEADER_TOO_LARGE",
      struct.pack(">Q", len(OK)) + OK.encode() + D8, also_ok=["ST_HEADER_PAST_EOF"],
      hazards=["memory"])
    A("len-4-byte", "4-byte length prefix", "reject", "ST_HEADER_TOO_LARGE",
      struct.pack("<I", len(OK)) + OK.encode() + D8, also_ok=["ST_HEADER_PAST_EOF"])
    A("sparse-header-100m-plus-1", "header length 100,000,001 and a sparse file that has the bytes",
      "reject", "ST_HEADER_TOO_LARGE", Sparse(8 + 100_000_001, struct.pack("<Q", 100_000_001) + b"{}"),
      hazards=["memory"])
    A("sparse-header-100m-nul", "100,000,000-byte header: {} then NUL bytes (sparse)", "reject",
      "JSON_SYNTAX", Sparse(8 + 100_000_000, struct.pack("<Q", 100_000_000) + b"{}"),
      hazards=["memory", "cpu"], also_ok=["ST_HEADER_PADDING", "JSON_TOO_LARGE"])
    A("sparse-header-6g", "header length 6 GiB in a sparse file that has the bytes", "reject",
      "ST_HEADER_TOO_LARGE", Sparse(8 + (6 << 30), struct.pack("<Q", 6 << 30) + b"{}"),
      hazards=["memory"])
    A("sparse-data-ok", "valid header, one U8 tensor of 900 MB of holes", "accept", None,
      (lambda h: Sparse(8 + len(h) + 900_000_000, st(h)))(raw('"U8"', "[900000000]", "[0,900000000]").encode()),
      hazards=["memory"], facts={"tensors": 1, "elements": 900_000_000})
    A("trailing-bytes", "4 bytes after the last tensor", "reject", "ST_TRAILING_BYTES",
      st(OK, D8 + b"tail"))
    A("trailing-one", "1 byte after the last tensor", "reject", "ST_TRAILING_BYTES", st(OK, D8 + b"\0"))
    A("trailing-no-tensors", "header {} followed by 8 bytes", "reject", "ST_TRAILING_BYTES", st("{}", D8))
    A("trailing-zip", "a complete zip archive appended (polyglot)", "reject", "ST_TRAILING_BYTES",
      st(OK, D8 + zip_build([Z(b"a.txt", b"x")])))
    A("two-files-joined", "two safetensors files one after the other", "reject", "ST_TRAILING_BYTES",
      st(OK, D8) * 2)
    A("missing-one", "1 data byte is missing", "reject", "ST_DATA_TRUNCATED", st(OK, D8[:7]))
    A("missing-all", "header only, all 8 data bytes missing", "reject", "ST_DATA_TRUNCATED", st(OK))

    # -- header encoding and JSON ------------------------------------------------------------------
    A("not-json", "header is plain text", "reject", "ST_HEADER_BAD_START", st("hello, world"),
      also_ok=["JSON_SYNTAX"])
    A("nul-header", "header is 64 NUL bytes", "reject", "ST_HEADER_BAD_START", st(bytes(64)),
      also_ok=["JSON_SYNTAX"])
    for slug, text in [("array", "[]"), ("string", '"w"'), ("number", "1"), ("null", "null"),
                       ("true", "true")]:
        A("top-" + slug, f"top level is {text}", "reject", "JSON_NOT_OBJECT", st(text),
          also_ok=["ST_HEADER_BAD_START"])
    A("utf8-ff", "byte 0xFF inside a name", "reject", "JSON_NOT_UTF8",
      st(OK.encode().replace(b'"w"', b'"w\xff"'), D8))
    A("utf8-latin1", "name in Latin-1", "reject", "JSON_NOT_UTF8",
      st(OK.encode().replace(b'"w"', b'"caf\xe9"'), D8))
    A("utf8-overlong", "overlong encoding C0 80", "reject", "JSON_NOT_UTF8",
      st(OK.encode().replace(b'"w"', b'"w\xc0\x80"'), D8))
    A("utf8-surrogate", "surrogate encoded as ED A0 80 (CESU-8)", "reject", "JSON_NOT_UTF8",
      st(OK.encode().replace(b'"w"', b'"w\xed\xa0\x80"'), D8))
    A("utf8-cut", "a 3-byte character cut by the end of the header", "reject", "JSON_NOT_UTF8",
      st(b'{"\xe2\x82'))
    A("utf16-header", "header in UTF-16 with BOM", "reject", "JSON_NOT_UTF8", st(b"\xff\xfe" + OK.encode("utf-16-le"), D8),
      also_ok=["JSON_ENCODING", "ST_HEADER_BAD_START"])
    A("utf16-header-no-bom", "header in UTF-16-LE without BOM (json.loads of bytes guesses it and takes it)", "reject",
      "JSON_SYNTAX", st(OK.encode("utf-16-le"), D8), also_ok=["JSON_ENCODING"])
    A("bom", "UTF-8 BOM before the brace", "reject", "ST_HEADER_BAD_START", st(b"\xef\xbb\xbf" + OK.encode(), D8),
      also_ok=["JSON_BOM", "JSON_SYNTAX"])
    for slug, ws in [("space", " "), ("newline", "\n"), ("tab", "\t")]:
        A("leading-" + slug, f"a {slug} before the brace; the format says MUST begin with a brace",
          "conditional", "ST_HEADER_BAD_START", st(ws + OK, D8),
          condition="format text forbids it; the reference library accepts it", facts={"tensors": 1})
    for slug, ws in [("newline", "\n\n"), ("tab", "\t"), ("crlf", "\r\n")]:
        A("trailing-" + slug, f"header padded with {slug} instead of spaces", "conditional",
          "ST_HEADER_PADDING", st(OK + ws, D8), facts={"tensors": 1},
          condition="format text names only 0x20; the reference library accepts JSON white space")
    A("padding-nul", "header padded with NUL bytes", "reject", "ST_HEADER_PADDING", st(OK + "\0\0", D8),
      also_ok=["JSON_SYNTAX"])
    A("padding-nbsp", "header padded with U+00A0", "reject", "ST_HEADER_PADDING", st(OK + "\u00a0", D8),
      also_ok=["JSON_SYNTAX"])
    for slug, text, why in [
        ("json-extra-brace", OK + "}", "one closing brace too many"),
        ("json-two-objects", OK + "{}", "two objects"),
        ("json-unclosed", OK[:-1] + " ", "object not closed"),
        ("json-trailing-comma", OK[:-1] + ",}", "trailing comma"),
        ("json-single-quotes", OK.replace('"', "'"), "single quotes"),
        ("json-unquoted-key", OK.replace('"w"', "w"), "unquoted key"),
        ("json-comment", "{/* c */" + OK[1:], "a comment"),
        ("json-unterminated", '{"w', "string not terminated"),
        ("json-raw-newline", raw(name='"w\nx"'), "raw newline inside a string"),
        ("json-raw-control", raw(name='"w\x01x"'), "raw control character inside a string"),
        ("json-bad-escape", raw(name='"w\\x41"'), "invalid escape \\x41"),
        ("json-short-escape", raw(name='"w\\u12"'), "escape \\u12 is too short"),
        ("json-python-literals", raw(more=',"x":None'), "Python None as a value"),
        ("json-leading-zero", raw(shape="[02]"), "number with a leading zero"),
        ("json-plus-sign", raw(shape="[+2]"), "number with a plus sign"),
        ("json-hex", raw(shape="[0x2]"), "hexadecimal number"),
        ("json-underscore", raw(shape="[1_0]", off="[0,40]"), "number with an underscore"),
        ("json-bare-dot", raw(shape="[2.]"), "number ends in a dot"),
        ("json-missing-colon", raw().replace('"w":', '"w" '), "missing colon"),
        ("json-missing-comma", raw().replace('"F32",', '"F32" '), "missing comma"),
    ]:
        A(slug, f"JSON syntax: {why}", "reject", "JSON_SYNTAX", st(text, D8))
    A("json-raw-del", "raw U+007F inside a string is legal JSON", "accept", "NAME_CONTROL",
      st(raw(name='"w\x7fx"'), D8), facts={"tensors": 1}, hazards=["terminal"])
    for slug, word in [("nan", "NaN"), ("infinity", "Infinity"), ("neg-infinity", "-Infinity")]:
        A("const-" + slug, f"{word} as a shape element (json.loads of Python takes it)", "reject",
          "JSON_NONFINITE", st(raw(shape=f"[{word}]"), D8), also_ok=["JSON_SYNTAX"], hazards=["crash"])
    A("const-nan-extra", "NaN in an ignored extra field", "reject", "JSON_NONFINITE",
      st(raw(more=',"x":NaN'), D8), also_ok=["JSON_SYNTAX"])
    A("number-1e400-extra", "1e400 in an extra field: inf for Python, range error for serde",
      "conditional", "JSON_NUMBER_RANGE", st(raw(more=',"x":1e400'), D8), facts={"tensors": 1},
      condition="valid JSON grammar, but no finite double", also_ok=["ST_FIELD_EXTRA"])
    A("number-5000-digits-extra", "5,000-digit integer in an extra field (int() of Python raises)",
      "conditional", "JSON_NUMBER_RANGE", st(raw(more=',"x":' + "9" * 5000), D8), hazards=["crash"],
      condition="valid JSON grammar; over the digit limit of CPython 3.11+",
      also_ok=["ST_FIELD_EXTRA"])
    A("surrogate-high", "name with the lone escape \\ud800", "reject", "JSON_LONE_SURROGATE",
      st(raw(name='"w\\ud800"'), D8), also_ok=["JSON_SYNTAX"], hazards=["crash", "terminal"])
    A("surrogate-low", "name with the lone escape \\udc00", "reject", "JSON_LONE_SURROGATE",
      st(raw(name='"w\\udc00"'), D8), also_ok=["JSON_SYNTAX"], hazards=["crash", "terminal"])
    A("surrogate-swapped", "name with the pair in the wrong order", "reject", "JSON_LONE_SURROGATE",
      st(raw(name='"\\ude00\\ud83d"'), D8), also_ok=["JSON_SYNTAX"], hazards=["crash", "terminal"])
    A("surrogate-pair", "name with a proper escaped pair (one emoji)", "accept", None,
      st(raw(name='"\\ud83d\\ude00"'), D8), facts={"tensors": 1})
    A("deep-open-100k", "100,000 opening brackets and nothing else", "reject", "JSON_TOO_DEEP",
      st('{"w":' + "[" * 100_000), also_ok=["JSON_SYNTAX"], hazards=["recursion", "crash"])
    A("deep-arrays-100k", "100,000 nested arrays, properly closed, in an extra field", "reject",
      "JSON_TOO_DEEP", st(raw(more=',"x":' + "[" * 100_000 + "]" * 100_000), D8),
      also_ok=["JSON_SYNTAX"], hazards=["recursion", "crash"])
    A("deep-objects-8k", "8,000 nested objects as a tensor entry", "reject", "JSON_TOO_DEEP",
      st('{"w":' + '{"a":' * 8_000 + "1" + "}" * 8_000 + "}"), hazards=["recursion", "crash"],
      also_ok=["ST_FIELD_MISSING", "JSON_SYNTAX"])
    A("deep-metadata-8k", "8,000 nested objects inside __metadata__", "reject", "JSON_TOO_DEEP",
      st('{"__metadata__":{"k":' + '{"a":' * 8_000 + "1" + "}" * 8_000 + "}}"),
      hazards=["recursion", "crash"], also_ok=["ST_METADATA_TYPE", "JSON_SYNTAX"])
    for total in (127, 128):
        inner = total - 2  # the header and the entry are levels 1 and 2
        A(f"deep-{total}", f"{total} levels in all, in an extra field (serde_json stops at 128)",
          "conditional", "ST_FIELD_EXTRA" if total == 127 else "JSON_TOO_DEEP",
          st(raw(more=',"x":' + "[" * inner + "]" * inner), D8), facts={"tensors": 1},
          also_ok=["JSON_TOO_DEEP", "ST_FIELD_EXTRA"],
          condition="the deepest that the reference library takes" if total == 127 else
          "one level over the limit of the reference library")

    # -- entries ---------------------------------------------------------------------------------
    for f in ("dtype", "shape", "data_offsets"):
        e = entry("F32", [2], 0, 8)
        del e[f]
        A("missing-" + f.replace("_", "-"), f"entry without {f}", "reject", "ST_FIELD_MISSING",
          st({"w": e}, D8))
    A("missing-all-fields", "entry is {}", "reject", "ST_FIELD_MISSING", st({"w": {}}))
    A("extra-fields", "entry with unknown fields of several types", "conditional", "ST_FIELD_EXTRA",
      st(raw(more=',"strides":[1],"note":"x","nested":{"a":[null,1.5]}'), D8), facts={"tensors": 1},
      condition="the schema forbids it (additionalProperties false); the reference library ignores it")
    for slug, a, b in [("dtype", "dtype", "DType"), ("shape", "shape", "Shape"),
                       ("offsets", "data_offsets", "Data_Offsets")]:
        A("case-" + slug, f"field written {b}", "reject", "ST_FIELD_MISSING",
          st(OK.replace(f'"{a}"', f'"{b}"'), D8))
    A("case-both", "dtype and also DTYPE with another value", "conditional", "ST_FIELD_EXTRA",
      st(raw(more=',"DTYPE":"F64"'), D8), facts={"tensors": 1, "dtypes": ["F32"]},
      condition="as extra-fields; a case-folding reader would pick the wrong one")
    A("case-metadata", "__Metadata__ is an ordinary tensor name, and not a valid entry", "reject",
      "ST_FIELD_MISSING", st('{"__Metadata__":{"format":"pt"}}'))
    for slug, v in [("null", "null"), ("list", "[]"), ("string", '"F32"'), ("number", "1"),
                    ("bool", "true")]:
        A("entry-" + slug, f"tensor entry is {v}", "reject", "ST_ENTRY_TYPE", st('{"w":%s}' % v),
          also_ok=["ST_FIELD_MISSING"], hazards=["crash"])
    A("entry-positional", "tensor entry as an array in field order", "conditional", "ST_ENTRY_TYPE",
      st('{"w":["F32",[2],[0,8]]}', D8), hazards=["crash"],
      condition="format text wants an object; the serde derive also takes the array form")
    A("dtype-as-map", "dtype given as {\"F32\":null}", "conditional", "ST_DTYPE_TYPE",
      st(raw('{"F32":null}'), D8), hazards=["crash"],
      condition="format text wants a string; the serde derive also takes the map form")
    for f, src in [("dtype", '"dtype":"F32"'), ("shape", '"shape":[2]'),
                   ("offsets", '"data_offsets":[0,8]')]:
        A("dup-field-" + f, f"{f} twice in one entry, same value", "reject", "JSON_DUPLICATE_KEY",
          st(raw(more="," + src), D8))
    A("dup-field-differs", "shape twice in one entry, other value", "reject", "JSON_DUPLICATE_KEY",
      st(raw(more=',"shape":[3]'), D8))
    A("dup-name-identical", "same tensor name twice, identical entries", "conditional",
      "NAME_DUPLICATE", st(OK[:-1] + "," + OK[1:], D8), also_ok=["JSON_DUPLICATE_KEY"],
      condition="format text forbids duplicate keys; the reference library keeps the last")
    A("dup-name-last-valid", "same name twice, only the last entry fits the file", "conditional",
      "NAME_DUPLICATE", st('{"w":%s,"w":%s}' % (js(entry("F64", [9], 0, 72)), js(entry("F32", [2], 0, 8))), D8),
      also_ok=["JSON_DUPLICATE_KEY"],
      condition="format text forbids duplicate keys; the reference library keeps the last")
    A("dup-name-first-valid", "same name twice, only the first entry fits the file", "reject",
      "NAME_DUPLICATE", st('{"w":%s,"w":%s}' % (js(entry("F32", [2], 0, 8)), js(entry("F64", [9], 0, 72))), D8),
      also_ok=["JSON_DUPLICATE_KEY", "ST_DATA_TRUNCATED"])
    A("dup-name-split", "same name twice, the two ranges together cover the data", "reject",
      "NAME_DUPLICATE", st('{"w":%s,"w":%s}' % (js(entry("U8", [4], 0, 4)), js(entry("U8", [4], 4, 8))), D8),
      also_ok=["JSON_DUPLICATE_KEY", "ST_OFFSETS_GAP"])
    A("dup-name-escaped", "same name once plain and once with \\u escapes", "conditional",
      "NAME_DUPLICATE", st(OK[:-1] + "," + OK[1:].replace('"w"', '"\\u0077"'), D8),
      also_ok=["JSON_DUPLICATE_KEY"],
      condition="format text forbids duplicate keys; the reference library keeps the last")

    # -- __metadata__ ------------------------------------------------------------------------------
    for slug, v in [("list", "[]"), ("string", '"pt"'), ("number", "1"), ("bool", "false")]:
        A("metadata-" + slug, f"__metadata__ is {v}", "reject", "ST_METADATA_TYPE",
          st('{"__metadata__":%s,%s' % (v, OK[1:]), D8), hazards=["crash"])
    A("metadata-null", "__metadata__ is null", "conditional", "ST_METADATA_TYPE",
      st('{"__metadata__":null,%s' % OK[1:], D8), facts={"tensors": 1}, hazards=["crash"],
      condition="format text wants a map; the reference library reads null as absent")
    for slug, v in [("int", "1"), ("float", "1.5"), ("bool", "true"), ("null", "null"),
                    ("list", '["a"]'), ("object", '{"a":"b"}')]:
        A("metadata-value-" + slug, f"a __metadata__ value is {v}", "reject", "ST_METADATA_TYPE",
          st('{"__metadata__":{"k":%s},%s' % (v, OK[1:]), D8))
    A("metadata-like-tensor", "__metadata__ looks like a tensor entry", "reject", "ST_METADATA_TYPE",
      st({"__metadata__": entry("F32", [2], 0, 8)}, D8))
    A("metadata-empty", "__metadata__ is {}", "accept", None, st('{"__metadata__":{},%s' % OK[1:], D8),
      facts={"tensors": 1})
    A("metadata-last", "__metadata__ after the tensors", "accept", None,
      st(OK[:-1] + ',"__metadata__":{"format":"pt"}}', D8), facts={"tensors": 1})
    A("metadata-odd-keys", "empty key, 10k-char key, control characters, markup in metadata", "accept",
      "NAME_CONTROL", st('{"__metadata__":%s,%s' % (js({"": "", "k" * 10_000: "v", "a\x1b[31m": "\x00\x07\u202e", "m": "[bold]x[/]"}), OK[1:]), D8),
      facts={"tensors": 1}, hazards=["terminal"])
    A("metadata-json-string", "a metadata value is JSON text with 20,000 nested brackets (readers that parse it)",
      "accept", None, st('{"__metadata__":{"config":"%s"},%s' % ("[" * 20_000, OK[1:]), D8),
      facts={"tensors": 1}, hazards=["recursion", "crash"])
    A("metadata-huge-value", "one metadata value of 60,000 characters", "accept", "ST_METADATA_LARGE",
      st('{"__metadata__":{"k":"%s"},%s' % ("v" * 60_000, OK[1:]), D8), facts={"tensors": 1},
      hazards=["memory"])
    A("metadata-many-keys", "2,000 metadata keys", "accept", "ST_METADATA_LARGE",
      st('{"__metadata__":{%s},%s' % (",".join(f'"k{i}":"{i}"' for i in range(2000)), OK[1:]), D8),
      facts={"tensors": 1})
    A("dup-metadata", "__metadata__ twice", "reject", "JSON_DUPLICATE_KEY",
      st('{"__metadata__":{"a":"1"},"__metadata__":{"b":"2"},%s' % OK[1:], D8))
    A("dup-metadata-key", "the same key twice inside __metadata__", "conditional",
      "JSON_DUPLICATE_KEY", st('{"__metadata__":{"a":"1","a":"2"},%s' % OK[1:], D8),
      facts={"tensors": 1},
      condition="format text forbids duplicate keys; the reference library keeps the last")

    # -- offsets -----------------------------------------------------------------------------------
    two = lambda a, b: "{%s,%s}" % ('"a":' + js(a), '"b":' + js(b))  # noqa: E731
    A("gap", "4-byte hole between two tensors", "reject", "ST_OFFSETS_GAP",
      st(two(entry("U8", [4], 0, 4), entry("U8", [4], 8, 12)), bytes(12)))
    A("gap-first", "first tensor begins at 4", "reject", "ST_OFFSETS_GAP",
      st(raw(off="[4,12]"), bytes(12)))
    A("gap-alignment", "hole of 4 bytes that aligns an F64 tensor to 8", "reject", "ST_OFFSETS_GAP",
      st(two(entry("F32", [1], 0, 4), entry("F64", [1], 8, 16)), bytes(16)))
    A("gap-zero-size", "empty tensor placed beyond the last byte", "reject", "ST_OFFSETS_GAP",
      st(two(entry("U8", [8], 0, 8), entry("U8", [0], 16, 16)), D8))
    A("overlap-partial", "two tensors share 2 bytes", "reject", "ST_OFFSETS_OVERLAP",
      st(two(entry("U8", [4], 0, 4), entry("U8", [4], 2, 6)), bytes(6)))
    A("overlap-identical", "two tensors over the same bytes (tied weights)", "reject",
      "ST_OFFSETS_OVERLAP", st(two(entry("U8", [8], 0, 8), entry("U8", [8], 0, 8)), D8))
    A("overlap-nested", "one tensor inside another", "reject", "ST_OFFSETS_OVERLAP",
      st(two(entry("U8", [8], 0, 8), entry("U8", [2], 2, 4)), D8))
    A("overlap-zero-size", "empty tensor in the middle of another", "reject", "ST_OFFSETS_OVERLAP",
      st(two(entry("U8", [8], 0, 8), entry("U8", [0], 4, 4)), D8), also_ok=["ST_OFFSETS_GAP"])
    A("overlap-1000", "1,000 tensors over the same 4 bytes (amplification)", "reject",
      "ST_OFFSETS_OVERLAP",
      st({f"t{i}": entry("F32", [1], 0, 4) for i in range(1000)}, bytes(4)), hazards=["memory"])
    A("reversed", "begin 8, end 0", "reject", "ST_OFFSETS_REVERSED", st(raw(off="[8,0]"), D8))
    A("reversed-second", "second tensor has begin > end", "reject", "ST_OFFSETS_REVERSED",
      st(two(entry("U8", [8], 0, 8), entry("U8", [4], 8, 4)), D8))
    A("absolute-offsets", "offsets count from the start of the file", "reject", "ST_OFFSETS_GAP",
      st(raw(off="[72,80]").ljust(64), D8), also_ok=["ST_DATA_TRUNCATED"])
    A("past-eof", "end far beyond the data, dtype and shape agree", "reject", "ST_DATA_TRUNCATED",
      st(raw(shape="[1000000]", off="[0,4000000]"), D8), hazards=["memory"])
    A("past-eof-u64", "U8 tensor of 2**64-1 bytes: 8 + length + end wraps", "reject",
      "ST_DATA_TRUNCATED", st(raw('"U8"', f"[{U64 - 1}]", f"[0,{U64 - 1}]"), D8), hazards=["memory"],
      also_ok=["ST_SHAPE_OVERFLOW"])
    A("past-eof-i64", "U8 tensor of 2**63 bytes", "reject", "ST_DATA_TRUNCATED",
      st(raw('"U8"', f"[{1 << 63}]", f"[0,{1 << 63}]"), D8), hazards=["memory"],
      also_ok=["ST_SHAPE_OVERFLOW"])
    A("past-eof-2-61", "U8 tensor of 2**61-1 bytes, the most that does not overflow in bits", "reject",
      "ST_DATA_TRUNCATED", st(raw('"U8"', f"[{(1 << 61) - 1}]", f"[0,{(1 << 61) - 1}]"), D8), hazards=["memory"])
    for slug, src, why in [
        ("negative", "[-8,0]", "negative begin"), ("negative-both", "[-16,-8]", "both negative"),
        ("negative-zero", "[-0,8]", "begin written -0"), ("float", "[0.0,8.0]", "floats"),
        ("float-frac", "[0,7.5]", "a fraction"), ("exponent", "[0,8e0]", "exponent form 8e0"),
        ("bool", "[false,true]", "booleans (int in Python)"), ("string", '["0","8"]', "strings"),
        ("null", "[null,null]", "nulls"), ("object", '{"begin":0,"end":8}', "an object"),
        ("scalar", "8", "a single number"), ("empty", "[]", "an empty list"),
        ("one", "[8]", "one number"), ("three", "[0,8,16]", "three numbers"),
        ("nested", "[[0,8]]", "nested list"), ("string-whole", '"0,8"', "one string"),
        ("2-64", f"[0,{U64}]", "2**64, one over u64"), ("neg-2-63", f"[-{1 << 63},0]", "-2**63"),
        ("5000-digits", "[0," + "9" * 5000 + "]", "a 5,000-digit integer"),
        ("1e308", "[0,1e308]", "1e308"),
    ]:
        A("offsets-" + slug, f"data_offsets: {why}", "reject", "ST_OFFSETS_TYPE", st(raw(off=src), D8),
          hazards=["crash"] if "digits" in slug or "bool" in slug else (),
          also_ok=["JSON_NUMBER_RANGE"] if "digits" in slug or "1e308" in slug or "2-64" in slug else ())

    # -- shape -------------------------------------------------------------------------------------
    A("shape-overflow-to-zero", "2**32 x 2**32 elements: a wrapping product is 0 and fits [0,0]",
      "reject", "ST_SHAPE_OVERFLOW", st(raw('"U8"', f"[{1 << 32},{1 << 32}]", "[0,0]")))
    A("shape-overflow-bytes", "2**62 F32 elements: bytes wrap to 0", "reject", "ST_SHAPE_OVERFLOW",
      st(raw(shape=f"[{1 << 62}]", off="[0,0]")))
    A("shape-overflow-bits", "2**61 U8 elements fit bytes but not bits in 64 bit", "reject",
      "ST_SHAPE_OVERFLOW", st(raw('"U8"', f"[{1 << 61}]", "[0,8]"), D8),
      also_ok=["ST_SIZE_MISMATCH"])
    A("shape-overflow-small", "wrapping product gives exactly the 8 bytes present", "reject",
      "ST_SHAPE_OVERFLOW", st(raw('"U8"', f"[{(1 << 61) + 1},8]", "[0,8]"), D8))
    A("shape-zero-then-huge", "[0, 2**63, 4]: no element, but the rest overflows", "conditional",
      "ST_SHAPE_OVERFLOW", st(raw(shape=f"[0,{1 << 63},4]", off="[0,0]")),
      condition="no overflow when taken left to right, nor with big integers; the reference library accepts it")
    A("shape-huge-then-zero", "[2**63, 4, 0]: the same shape in another order", "conditional",
      "ST_SHAPE_OVERFLOW", st(raw(shape=f"[{1 << 63},4,0]", off="[0,0]")),
      condition="the product is 0, but overflows on the way; the reference library refuses it")
    for slug, src, why in [
        ("negative", "[-2]", "negative"), ("negative-pair", "[-2,-1]", "two negatives, product positive"),
        ("float", "[2.0]", "a float"), ("exponent", "[2e0]", "exponent form"), ("bool", "[true,2]", "a boolean"),
        ("string", '["2"]', "a string"), ("null", "[null]", "null"), ("nested", "[[2]]", "nested list"),
        ("scalar", "2", "a number instead of a list"), ("object", '{"0":2}', "an object"),
        ("string-whole", '"[2]"', "a string instead of a list"), ("null-whole", "null", "null instead of a list"),
        ("2-64", f"[{U64}]", "2**64"), ("5000-digits", "[" + "9" * 5000 + "]", "a 5,000-digit integer"),
        ("neg-zero", "[-0,2]", "-0"),
    ]:
        A("shape-" + slug, f"shape: {why}", "reject", "ST_SHAPE_TYPE", st(raw(shape=src), D8),
          also_ok=["JSON_NUMBER_RANGE"] if "digits" in slug or "2-64" in slug else (),
          hazards=["crash"] if "digits" in slug or "bool" in slug else ())
    A("rank-17", "17 dimensions", "conditional", "ST_RANK_LARGE", st(raw(shape=js([2] + [1] * 16)), D8),
      facts={"tensors": 1, "elements": 2}, condition="valid; some readers stop at 16 dimensions")
    A("rank-65", "65 dimensions (numpy stops at 64)", "conditional", "ST_RANK_LARGE",
      st(raw(shape=js([2] + [1] * 64)), D8), facts={"tensors": 1, "elements": 2},
      condition="valid by the format; no array library can hold it")
    A("rank-20000", "20,000 dimensions of size 1", "conditional", "ST_RANK_LARGE",
      st(raw(shape=js([1] * 20_000), off="[0,4]"), D8[:4]), hazards=["cpu", "terminal"],
      facts={"tensors": 1, "elements": 1}, condition="valid by the format; show a shortened shape")
    A("size-too-small", "F32 [2] over 4 bytes", "reject", "ST_SIZE_MISMATCH", st(raw(off="[0,4]"), D8[:4]))
    A("size-too-large", "F32 [2] over 16 bytes", "reject", "ST_SIZE_MISMATCH", st(raw(off="[0,16]"), bytes(16)))
    A("size-scalar", "scalar F32 over 8 bytes", "reject", "ST_SIZE_MISMATCH", st(raw(shape="[]"), D8))
    A("size-zero-shape", "shape [0] over 8 bytes", "reject", "ST_SIZE_MISMATCH", st(raw(shape="[0]"), D8))
    A("size-zero-bytes", "shape [2] over 0 bytes", "reject", "ST_SIZE_MISMATCH", st(raw(off="[0,0]")))

    # -- dtype -------------------------------------------------------------------------------------
    for slug, src in [("unknown", '"F128"'), ("lower", '"f32"'), ("space", '"F32 "'), ("empty", '""'),
                      ("torch", '"torch.float32"'), ("numpy", '"<f4"'), ("e4m3fn", '"F8_E4M3FN"'),
                      ("i4", '"I4"'), ("fullwidth", '"\uff26\uff13\uff12"'), ("nul", '"F32\\u0000"'),
                      ("control", '"\\u001b[31mF32"')]:
        A("dtype-" + slug, f"dtype is {src.encode('ascii', 'backslashreplace').decode()}", "conditional",
          "ST_DTYPE_UNKNOWN", st(raw(src), D8),
          condition="refuse, or list the tensor with an unknown dtype and its byte range")
    for slug, src in [("int", "32"), ("null", "null"), ("list", '["F32"]'), ("bool", "true"),
                      ("object", '{"name":"F32"}')]:
        A("dtype-type-" + slug, f"dtype is {src}", "reject", "ST_DTYPE_TYPE", st(raw(src), D8),
          hazards=["crash"])
    A("dtype-10k", "dtype is a string of 10,000 characters", "conditional", "ST_DTYPE_UNKNOWN",
      st(raw('"%s"' % ("F" * 10_000)), D8), hazards=["terminal"],
      condition="refuse, or list with a shortened unknown dtype")
    A("f4-even", "F4 [16] over 8 bytes", "accept", None, st(raw('"F4"', "[16]"), D8), facts={"tensors": 1})
    A("f4-odd", "F4 [15]: 7.5 bytes, range is 8", "reject", "ST_SUBBYTE_UNALIGNED",
      st(raw('"F4"', "[15]"), D8), also_ok=["ST_SIZE_MISMATCH"])
    A("f4-odd-down", "F4 [15], range is 7", "reject", "ST_SUBBYTE_UNALIGNED",
      st(raw('"F4"', "[15]", "[0,7]"), D8[:7]), also_ok=["ST_SIZE_MISMATCH"])
    A("f4-scalar", "F4 scalar: half a byte", "reject", "ST_SUBBYTE_UNALIGNED",
      st(raw('"F4"', "[]", "[0,1]"), D8[:1]), also_ok=["ST_SIZE_MISMATCH"])
    A("f4-as-bytes", "F4 [8] over 8 bytes (one element a byte)", "reject", "ST_SIZE_MISMATCH",
      st(raw('"F4"', "[8]"), D8))
    A("f6-aligned", "F6_E2M3 [4] over 3 bytes", "accept", None, st(raw('"F6_E2M3"', "[4]", "[0,3]"), D8[:3]),
      facts={"tensors": 1})
    A("f6-unaligned", "F6_E3M2 [5]: 30 bits, range is 4", "reject", "ST_SUBBYTE_UNALIGNED",
      st(raw('"F6_E3M2"', "[5]", "[0,4]"), D8[:4]), also_ok=["ST_SIZE_MISMATCH"])
    A("bool-values", "BOOL tensor whose bytes are not 0 or 1", "accept", None,
      st(raw('"BOOL"', "[8]"), D8), facts={"tensors": 1})
    A("f32-nan-data", "F32 data holds NaN and infinities (values are not checked)", "accept", None,
      st(raw(), struct.pack("<ff", float("nan"), float("inf"))), facts={"tensors": 1})

    # -- names -------------------------------------------------------------------------------------
    def N(slug, description, code, *names, hazards=("terminal",)):
        A("name-" + slug, description, "accept", code, named(*names), hazards=hazards,
          facts={"tensors": len(names)})

    N("empty", "empty tensor name", "NAME_EMPTY", "")
    N("10k", "name of 10,000 characters", "NAME_LONG", "n" * 10_000)
    N("10k-pair", "two 10,000-character names that differ in the last character only", "NAME_LONG",
      "n" * 9_999 + "a", "n" * 9_999 + "b")
    N("nul", "NUL inside a name", "NAME_CONTROL", "w\0x", "w")
    N("c0", "all C0 control characters", "NAME_CONTROL", "w" + "".join(map(chr, range(1, 32))))
    N("c1", "DEL, C1 controls and the one-character CSI U+009B", "NAME_CONTROL", "w\x7f\x80\x85\x9b31mred\x9d0;t\x9c")
    N("newline", "newline and carriage return that fake a table row", "NAME_CONTROL", "w\nTOTAL 0 B\r\nok", "w\rX")
    N("tab", "tab and vertical tab", "NAME_CONTROL", "w\tx", "w\x0bx")
    N("ansi", "clear screen, colour, cursor moves", "NAME_CONTROL", "\x1b[2J\x1b[1;1H\x1b[31mred\x1b[0m", "\x1b[?1049l\x1b[6n\x1bc")
    N("osc", "window title, hyperlink and clipboard sequences", "NAME_CONTROL", "\x1b]0;title\x07",
      "\x1b]8;;https://example.invalid/\x1b\\text\x1b]8;;\x1b\\", "\x1b]52;c;eA==\x07")
    N("unclosed-csi", "an escape sequence that is never closed", "NAME_CONTROL", "w\x1b[", "w\x1bP")
    N("bidi", "right-to-left override and isolates", "NAME_BIDI", "w\u202egnp.exe", "\u2066x\u2067y\u2069", "\u05d0.weight")
    N("zero-width", "zero-width characters, BOM, soft hyphen, tag characters", "NAME_BIDI",
      "w\u200bx", "w\u200dx", "\ufeffwx", "w\u00adx", "wx\U000e0041")
    N("line-separators", "U+2028, U+2029, U+0085 (str.splitlines splits there)", "NAME_CONTROL", "w\u2028x", "w\u2029x", "w\u0085x")
    N("combining", "2,000 combining accents on one letter", "NAME_LONG", "w" + "\u0301" * 2000)
    N("wide", "wide, emoji, joined-emoji and ambiguous-width characters", None, "\u91cd\u307f.0", "\U0001f469\u200d\U0001f469\u200d\U0001f467.w", "\u2026\u00b1", "\U0001f1e9\U0001f1ea")
    N("nfc-nfd", "the same name in NFC and NFD", "NAME_CONFUSABLE", "caf\u00e9", "cafe\u0301")
    N("case", "names that differ only in case", "NAME_CONFUSABLE", "Weight", "weight", "WEIGHT", "stra\u00dfe", "STRASSE")
    N("homoglyph", "Latin and Cyrillic letters", "NAME_CONFUSABLE", "weight", "w\u0435ight")
    N("spaces", "space, leading, trailing and no-break spaces", "NAME_CONFUSABLE", " ", "w", " w", "w ", "w\u00a0")
    N("noncharacter", "U+FFFF, U+10FFFF, U+FFFD, private use", "NAME_BIDI", "w\uffff", "w\U0010ffff", "w\ufffd", "w\ue000")
    N("path", "names that look like paths", "NAME_STRUCTURE", "../../../etc/passwd", "/etc/passwd", "C:\\x", "~/x", "a/b", ".",
      "..", hazards=("path-escape",))
    N("markup", "terminal-markup tags, unbalanced and with actions", "NAME_STRUCTURE", "[bold red]w[/]", "[/]", "[/bold]", "[",
      "[link=https://example.invalid]x[/link]", "[@click=app.quit]x[/]", "\\[b]", "[$primary]x", hazards=("terminal", "crash"))
    N("html", "HTML and Markdown", "NAME_STRUCTURE", "<script>x</script>", "&amp;&#x0;", "|`*_#", "![x](https://example.invalid/i.png)")
    N("csv", "spreadsheet formulas and CSV quotes", "NAME_STRUCTURE", "=1+1", "+1", "-1", "@SUM(1)", 'a,"b"\n', hazards=("leak",))
    N("format", "format, shell and regex specials", "NAME_STRUCTURE", "{0}", "{0.__class__}", "%s%n", "${HOME}", "$(id)", "`id`", "(a+)+$", "[", "*",
      hazards=("crash",))
    N("dunder", "names used by languages", "NAME_STRUCTURE", "__class__", "__proto__", "constructor", "__metadata__ ", "None", "null")
    N("dotted-5000", "5,000 dot-separated levels (tree views)", "NAME_STRUCTURE", ".".join(["a"] * 5000),
      hazards=("recursion", "crash"))
    N("dots", "empty components", "NAME_STRUCTURE", ".a", "a.", "a..b", "...", hazards=("crash",))
    N("prefix", "a name is also the folder of others", "NAME_STRUCTURE", "a", "a.b", "a.b.c", "a.", hazards=("crash",))
    N("digits-5000", "layer number of 5,000 digits (int() raises)", "NAME_STRUCTURE", "layers." + "9" * 5000 + ".w", "layers.0.w",
      hazards=("crash",))
    N("digits-unicode", "digits that isdigit() takes and int() refuses, and the reverse", "NAME_STRUCTURE",
      "layers.\u00b2.w", "layers.\u2163.w", "layers.\u0663.w", "layers.\u0be7.w", "layers.1_0.w", "layers.-1.w", "layers.+1.w", "layers.01.w", "layers.1.w",
      hazards=("crash",))
    N("layer-gap", "layers 0 and 1,000,000,000 (no loop over the range)", "NAME_STRUCTURE", "layers.0.w", "layers.1000000000.w",
      hazards=("memory", "hang"))
    A("name-raw-utf8", "name in raw UTF-8, not escaped", "accept", None, st(raw(name='"\u91cd\u307f"'), D8), facts={"tensors": 1})

    # -- volume ------------------------------------------------------------------------------------
    def many(k):
        return lambda: st("{" + ",".join('"%d":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}' % (i, i, i + 1) for i in range(k)) + "}", bytes(k))
    A("tensors-4k", "4,000 tensors", "accept", "ST_MANY_TENSORS", many(4_000), hazards=["cpu"], facts={"tensors": 4_000})
    A("tensors-200k", "200,000 tensors", "accept", "ST_MANY_TENSORS", many(200_000), hazards=["cpu", "memory"],
      facts={"tensors": 200_000}, large=True)
    A("tensors-200k-empty", "200,000 empty tensors at one offset (an all-pairs overlap check hangs)", "accept", "ST_MANY_TENSORS",
      lambda: st("{" + ",".join('"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i for i in range(200_000)) + "}"),
      hazards=["cpu", "memory"], facts={"tensors": 200_000}, large=True)
    A("header-90m-spaces", "90,000,000-byte header: valid JSON and spaces", "accept", None,
      lambda: st(OK + " " * (90_000_000 - len(OK)), D8), hazards=["memory"], facts={"tensors": 1}, large=True)
    A("header-100m-exact", "header of exactly 100,000,000 bytes: valid JSON and spaces", "accept", None,
      lambda: st(OK + " " * (100_000_000 - len(OK)), D8), hazards=["memory"], facts={"tensors": 1}, large=True)
    A("metadata-200k-keys", "200,000 metadata keys", "accept", "ST_METADATA_LARGE",
      lambda: st('{"__metadata__":{%s},%s' % (",".join(f'"k{i:06d}":"{"v" * 24}"' for i in range(200_000)), OK[1:]), D8),
      hazards=["memory"], facts={"tensors": 1}, large=True)


# ------------------------------------------------------------------------------------------------
# B. index JSON and shard sets
# ------------------------------------------------------------------------------------------------

INDEX = "model.safetensors.index.json"
S1, S2, S3 = (f"model-{i:05d}-of-00003.safetensors" for i in (1, 2, 3))
P1, P2 = (f"model-{i:05d}-of-00002.safetensors" for i in (1, 2))
LFS = (b"version https://git-lfs.github.com/spec/v1\n"
       b"oid sha256:" + b"0123456789abcdef" * 4 + b"\nsize 4976698672\n")
HTML = (b"<!DOCTYPE html>\n<html><head><title>404 - Not found</title></head>\n"
        b"<body><h1>404</h1><p>Sorry, we can't find the page.</p></body></html>\n")


def shard(*names: str) -> bytes:
    """A valid shard with one F32 [2] tensor (8 bytes) a name."""
    return st({n: entry("F32", [2], 8 * i, 8 * i + 8) for i, n in enumerate(names)},
              b"".join(struct.pack("<ff", i, -i) for i, _ in enumerate(names)))


def idx(weight_map, total=16, **more) -> bytes:
    return json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map, **more}, indent=2).encode()


def group_b(c: Corpus) -> None:
    def B(slug, description, expected, code, files, **kw):
        c.dir("B", slug, description, expected, code, files,
              tool="safetensors" if "subject" in kw else None, **kw)

    good = {P1: shard("a"), P2: shard("b")}
    wm = {"a": P1, "b": P2}
    index = idx(wm)

    def with_index(slug, description, expected, code, data, **kw):
        B(slug, description, expected, code, {INDEX: data, **good}, **kw)

    def with_second(slug, description, expected, code, data, name=P2, **kw):
        """Shard 2 replaced by `data` (None: left out)."""
        files = {INDEX: index, P1: good[P1]}
        if data is not None:
            files[name] = data
            kw.setdefault("subject", name)
        B(slug, description, expected, code, files, **kw)

    with_index("ok", "baseline: two shards and a right index", "accept", None, index,
               facts={"tensors": 2, "total_size": 16})
    with_index("ok-extra-keys", "unknown keys at the top level", "accept", None,
               idx(wm, format="x", metadata2=[1]), facts={"tensors": 2})
    with_index("ok-no-metadata", "no metadata object", "accept", None,
               json.dumps({"weight_map": wm}).encode(), facts={"tensors": 2})
    B("ok-single", "one model.safetensors, no index", "accept", None, {"model.safetensors": shard("a")},
      facts={"tensors": 1})
    B("no-index", "complete shards, index missing", "conditional", "IDX_SHARD_UNLISTED", good,
      condition="usable shard by shard; a loader needs the index", facts={"tensors": 2})

    with_second("shard-missing", "the index names a shard that is not there", "reject",
                "IDX_SHARD_MISSING", None)
    B("all-shards-missing", "index alone", "reject", "IDX_SHARD_MISSING", {INDEX: index})
    B("shard-extra", "a third shard that the index does not name", "conditional", "IDX_SHARD_UNLISTED",
      {INDEX: index, **good, "extra.safetensors": shard("c")},
      condition="the set itself is complete; the extra file is reported")
    for slug, value, why in [
        ("dotdot", "../ok/" + P2, "value with .. (the file exists there)"),
        ("dotdot-inner", "sub/../../ok/" + P2, ".. after a plain part (exists once normalised)"),
        ("absolute", "/etc/hostname", "absolute path"),
        ("absolute-double", "//etc/hostname", "two leading slashes"),
        ("backslash", "..\\ok\\" + P2, "backslashes"),
        ("drive", "C:\\" + P2, "drive letter"),
        ("unc", "\\\\server\\share\\" + P2, "UNC path"),
        ("url", "https://example.invalid/" + P2, "URL"),
        ("file-url", "file:///etc/hostname", "file URL"),
        ("nul", P2 + "\0.txt", "NUL in the value"),
        ("tilde", "~/" + P2, "home shorthand"),
        ("dot", ".", "the folder itself"),
        ("empty", "", "empty string"),
        ("trailing-slash", P2 + "/", "trailing slash"),
        ("device", "/dev/zero", "a device that never ends"),
        ("proc", "/proc/self/environ", "a process file"),
        ("long", "x" * 5000, "5,000 characters, over NAME_MAX and PATH_MAX"),
    ]:
        with_index("path-" + slug, f"weight_map value: {why}", "reject", "IDX_PATH_UNSAFE",
                   idx({"a": P1, "b": value}), also_ok=["IDX_SHARD_MISSING"],
                   hazards=["path-escape", "crash"] if slug in ("nul", "long") else
                   ["path-escape", "hang"] if slug == "device" else ["path-escape"])
    with_index("path-percent", "weight_map value with %2e%2e (not to be decoded)", "reject",
               "IDX_SHARD_MISSING", idx({"a": P1, "b": "%2e%2e/" + P2}), also_ok=["IDX_PATH_UNSAFE"],
               hazards=["path-escape"])
    with_index("path-ansi", "weight_map value with escape sequences", "reject", "IDX_SHARD_MISSING",
               idx({"a": P1, "b": "\x1b[2J\x1b]0;t\x07.safetensors"}), also_ok=["IDX_PATH_UNSAFE"],
               hazards=["terminal"])
    with_index("path-surrogate", "weight_map value with a lone surrogate escape", "reject",
               "IDX_SHARD_MISSING", b'{"weight_map":{"a":"' + P1.encode() + b'","b":"x\\ud800.safetensors"}}',
               also_ok=["IDX_PATH_UNSAFE", "JSON_LONE_SURROGATE"], hazards=["crash", "terminal"])
    with_index("path-surrogate-byte", "weight_map value with \\udcff (surrogateescape would open byte FF)",
               "reject", "IDX_SHARD_MISSING",
               b'{"weight_map":{"a":"' + P1.encode() + b'","b":"x\\udcff.safetensors"}}',
               also_ok=["IDX_PATH_UNSAFE", "JSON_LONE_SURROGATE"], hazards=["crash"])
    B("path-subdir", "shards in a sub folder of the index", "conditional", "IDX_PATH_UNSAFE",
      {INDEX: idx({"a": "sub/" + P1, "b": "sub/" + P2}), "sub/" + P1: good[P1], "sub/" + P2: good[P2]},
      condition="a plain relative path that stays inside; many loaders allow it", facts={"tensors": 2})
    with_index("path-case", "index says Model-..., the file is model-...", "conditional",
               "IDX_SHARD_MISSING", idx({"a": P1, "b": P2.replace("model", "Model")}),
               condition="found on a case-insensitive file system only")
    with_index("path-dot-slash", "value ./model-...", "conditional", "IDX_PATH_UNSAFE",
               idx({"a": P1, "b": "./" + P2}), condition="same file once normalised", facts={"tensors": 2})

    for slug, value in [("list", [["a", P1]]), ("string", P1), ("null", None), ("number", 2)]:
        with_index("map-" + slug, f"weight_map of type {slug}", "reject", "IDX_MAP_TYPE", idx(value),
                   hazards=["crash"])
    with_index("map-missing", "no weight_map", "reject", "IDX_MAP_MISSING", b'{"metadata":{"total_size":16}}')
    with_index("map-empty", "weight_map is {}", "conditional", "IDX_MAP_EMPTY", idx({}, 0),
               condition="an index of nothing beside two shards", also_ok=["IDX_SHARD_UNLISTED"])
    with_index("map-case", "key written Weight_Map", "reject", "IDX_MAP_MISSING",
               json.dumps({"Weight_Map": wm}).encode())
    for slug, value in [("int", 1), ("null", None), ("list", [P2]), ("object", {"file": P2}),
                        ("bool", True), ("float", 1.5)]:
        with_index("value-" + slug, f"a weight_map value of type {slug}", "reject", "IDX_VALUE_TYPE",
                   idx({"a": P1, "b": value}), hazards=["crash"])

    for slug, total, why in [("wrong", 17, "off by one"), ("zero", 0, "0"), ("file-bytes", sum(map(len, good.values())), "counts the headers too")]:
        with_index("total-" + slug, f"total_size {why}", "conditional", "IDX_TOTAL_SIZE", idx(wm, total),
                   condition="loaders ignore total_size; report it", facts={"total_size": 16})
    for slug, src in [("string", '"16"'), ("negative", "-16"), ("float", "16.0"), ("bool", "true"),
                      ("null", "null"), ("list", "[16]"), ("nan", "NaN"), ("1e400", "1e400"),
                      ("5000-digits", "9" * 5000)]:
        with_index("total-type-" + slug, f"total_size is {src[:20]}", "conditional", "IDX_TOTAL_SIZE_TYPE",
                   b'{"metadata":{"total_size":' + src.encode() + b'},"weight_map":' + js(wm).encode() + b"}",
                   condition="loaders ignore total_size; report it", hazards=["crash"], facts={"total_size": 16},
                   also_ok=["IDX_TOTAL_SIZE", "JSON_NONFINITE", "JSON_NUMBER_RANGE"])
    with_index("metadata-list", "metadata is a list", "conditional", "IDX_TOTAL_SIZE_TYPE",
               json.dumps({"metadata": [], "weight_map": wm}).encode(), hazards=["crash"],
               condition="loaders ignore metadata; report it")

    with_index("tensor-not-in-file", "index has a tensor that its shard lacks", "reject",
               "IDX_TENSOR_MISSING", idx({**wm, "c": P2}))
    with_index("tensor-other-file", "index puts b in shard 1, it is in shard 2", "reject",
               "IDX_TENSOR_MISSING", idx({"a": P1, "b": P1}), also_ok=["IDX_SHARD_UNLISTED"])
    B("tensor-unlisted", "shard 2 holds c, the index does not name it", "conditional",
      "IDX_TENSOR_UNLISTED", {INDEX: index, P1: shard("a"), P2: shard("b", "c")},
      condition="loaders skip it; bytes are wasted or the index is stale")
    B("tensor-twice", "a is in both shards", "conditional", "IDX_TENSOR_DUPLICATE",
      {INDEX: index, P1: shard("a"), P2: shard("a", "b")},
      condition="the index decides; the copy in shard 2 is dead or different")
    B("tensor-twice-differs", "a is in both shards with different shapes", "conditional",
      "IDX_TENSOR_DUPLICATE", {INDEX: index, P1: shard("a"),
                               P2: st({"a": entry("F32", [4], 0, 16), "b": entry("F32", [2], 16, 24)}, bytes(24))},
      condition="the index decides; report both shapes")
    with_index("map-duplicate-key", "a appears twice in weight_map with different shards", "conditional",
               "JSON_DUPLICATE_KEY", f'{{"weight_map":{{"a":"{P2}","a":"{P1}","b":"{P2}"}}}}'.encode(),
               condition="last one wins in most parsers; report it")
    with_index("self", "a weight_map value is the index itself", "reject", "IDX_SELF",
               idx({"a": P1, "b": INDEX}), hazards=["recursion"])
    B("names-config", "a weight_map value is config.json", "reject", "IDX_SHARD_UNREADABLE",
      {INDEX: idx({"a": P1, "b": "config.json"}), **good, "config.json": b'{"model_type":"test"}'},
      also_ok=["FILE_TEXT_INSTEAD", "FILE_WRONG_FORMAT"])
    B("two-indexes", "two index files that agree", "conditional", "IDX_MULTIPLE",
      {INDEX: index, "model.fp16.safetensors.index.json": index, **good},
      condition="variant indexes are usual; both are listed")
    B("two-indexes-disagree", "two index files that swap the shards", "conditional", "IDX_MULTIPLE",
      {INDEX: index, "other.safetensors.index.json": idx({"a": P2, "b": P1}), **good},
      condition="the second index does not match the shards", also_ok=["IDX_TENSOR_MISSING"])
    B("index-and-single", "index with shards and also model.safetensors", "conditional", "IDX_MULTIPLE",
      {INDEX: index, **good, "model.safetensors": shard("a", "b")},
      condition="loaders take model.safetensors first; the shards are a second copy")
    B("index-to-index", "a weight_map value is another index, which names the first", "reject",
      "IDX_SHARD_UNREADABLE", {INDEX: idx({"a": P1, "b": "b.safetensors.index.json"}), P1: shard("a"),
                               "b.safetensors.index.json": idx({"b": INDEX})},
      hazards=["recursion", "hang"], also_ok=["IDX_SELF"])

    three = {"a": S1, "c": S3}
    B("gap", "00001 and 00003 of 00003, index names only these", "conditional", "IDX_SHARD_GAP",
      {INDEX: idx(three), S1: shard("a"), S3: shard("c")}, condition="the index is satisfied, the numbering is not")
    B("gap-no-index", "00001 and 00003 of 00003, no index", "reject", "IDX_SHARD_GAP",
      {S1: shard("a"), S3: shard("c")})
    B("mixed-totals", "00001-of-00002 with 00002-of-00003", "conditional", "IDX_TOTALS_MIXED",
      {INDEX: idx({"a": P1, "b": S2}), P1: shard("a"), S2: shard("b")},
      condition="the index is satisfied, the names come from two exports")
    B("mixed-totals-overlay", "a complete 2-shard set and a complete 3-shard set in one folder", "conditional",
      "IDX_TOTALS_MIXED", {INDEX: index, **good, S1: shard("a"), S2: shard("b"), S3: shard("c")},
      condition="two exports in one folder", also_ok=["IDX_SHARD_UNLISTED"])
    B("number-above-total", "00003-of-00002", "conditional", "IDX_NUMBER_RANGE",
      {INDEX: idx({"a": P1, "b": "model-00003-of-00002.safetensors"}), P1: shard("a"),
       "model-00003-of-00002.safetensors": shard("b")}, condition="the index is satisfied, the numbering is not")
    B("number-zero", "00000-of-00002 and 00001-of-00002 (zero-based)", "conditional", "IDX_NUMBER_RANGE",
      {INDEX: idx({"a": "model-00000-of-00002.safetensors", "b": P1}),
       "model-00000-of-00002.safetensors": shard("a"), P1: shard("b")}, condition="zero-based sets exist")
    B("number-width", "1-of-2 and 00002-of-00002", "conditional", "IDX_NUMBER_RANGE",
      {INDEX: idx({"a": "model-1-of-2.safetensors", "b": P2}), "model-1-of-2.safetensors": shard("a"),
       P2: shard("b")}, condition="the index is satisfied, the widths differ")
    B("number-huge", "00001-of-99999999999999999999 (no loop over the range)", "reject", "IDX_SHARD_GAP",
      {"model-00001-of-99999999999999999999.safetensors": shard("a")}, hazards=["memory", "hang"],
      also_ok=["IDX_NUMBER_RANGE"])
    B("number-unicode", "shard number in Arabic-Indic digits", "conditional", "IDX_NUMBER_RANGE",
      {"model-0000\u0661-of-0000\u0661.safetensors": shard("a")}, hazards=["crash"],
      condition="int() reads them, a strict pattern does not; treat as an ordinary name")

    with_second("lfs-pointer", "shard 2 is a git-LFS pointer text", "reject", "FILE_LFS_POINTER", LFS,
                also_ok=["IDX_SHARD_UNREADABLE"])
    with_second("lfs-pointer-crlf", "git-LFS pointer with CRLF line ends", "reject", "FILE_LFS_POINTER",
                LFS.replace(b"\n", b"\r\n"), also_ok=["IDX_SHARD_UNREADABLE"])
    B("lfs-pointer-all", "every file is a git-LFS pointer, the index too", "reject", "FILE_LFS_POINTER",
      {INDEX: LFS, P1: LFS, P2: LFS}, subject=P1)
    with_second("html", "shard 2 is an HTML error page", "reject", "FILE_HTML", HTML, also_ok=["IDX_SHARD_UNREADABLE"])
    with_second("html-bom", "HTML error page with white space and BOM first", "reject", "FILE_HTML",
                b"\xef\xbb\xbf\r\n  " + HTML, also_ok=["IDX_SHARD_UNREADABLE", "FILE_TEXT_INSTEAD"])
    with_second("json-error", "shard 2 is a JSON error answer", "reject", "FILE_TEXT_INSTEAD",
                b'{"error":"Repository not found"}', also_ok=["IDX_SHARD_UNREADABLE", "ST_HEADER_TOO_LARGE"])
    with_second("text-error", "shard 2 is the text 'Entry not found'", "reject", "FILE_TEXT_INSTEAD",
                b"Entry not found", also_ok=["IDX_SHARD_UNREADABLE", "ST_HEADER_TOO_LARGE"])
    with_second("xml-error", "shard 2 is an XML access-denied answer", "reject", "FILE_TEXT_INSTEAD",
                b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>',
                also_ok=["IDX_SHARD_UNREADABLE", "FILE_HTML"])
    with_second("zero-byte", "shard 2 has no bytes", "reject", "FILE_EMPTY", b"", also_ok=["IDX_SHARD_UNREADABLE"])
    with_second("truncated-data", "shard 2 ends within the data", "reject", "ST_DATA_TRUNCATED",
                good[P2][:-3], also_ok=["IDX_SHARD_UNREADABLE"])
    with_second("truncated-header", "shard 2 ends within the header", "reject", "ST_HEADER_PAST_EOF",
                good[P2][:30], also_ok=["IDX_SHARD_UNREADABLE"])
    with_second("zero-filled", "shard 2 preallocated: right size, all zero (stopped download)", "reject",
                "ST_HEADER_LEN_ZERO", bytes(len(good[P2])), also_ok=["IDX_SHARD_UNREADABLE", "FILE_INCOMPLETE"])
    with_second("zero-filled-tail", "shard 2: right header, data zero-filled by preallocation", "accept", None,
                good[P2][:-8] + bytes(8), facts={"tensors": 2})
    with_second("gzip", "shard 2 is gzip-compressed", "reject", "FILE_COMPRESSED",
                b"\x1f\x8b\x08\0\0\0\0\0\x02\xff" + raw_deflate(good[P2]) + struct.pack("<II", zlib.crc32(good[P2]), len(good[P2])),
                also_ok=["IDX_SHARD_UNREADABLE", "ST_HEADER_TOO_LARGE"])
    with_second("zip-inside", "shard 2 is a torch zip", "reject", "FILE_WRONG_FORMAT", torch_zip(),
                also_ok=["IDX_SHARD_UNREADABLE", "ST_HEADER_TOO_LARGE"])
    with_second("gguf-inside", "shard 2 is a GGUF header", "reject", "FILE_WRONG_FORMAT",
                b"GGUF" + struct.pack("<IQQ", 3, 0, 0), also_ok=["IDX_SHARD_UNREADABLE", "ST_HEADER_TOO_LARGE"])
    with_second("pickle-inside", "shard 2 is a plain pickle", "reject", "FILE_WRONG_FORMAT",
                O.PROTO + b"\x02" + O.EMPTY_DICT + O.STOP, also_ok=["IDX_SHARD_UNREADABLE", "ST_TOO_SHORT"])
    with_second("dir-as-shard", "shard 2 is a folder", "reject", "FS_IS_DIR", None, also_ok=["IDX_SHARD_UNREADABLE"])
    os.mkdir(c.out / c.cases[-1]["path"] / P2)
    c.cases[-1].update(tree_facts(c.out / c.cases[-1]["path"]), reference_subject=P2, _tool="safetensors")
    for slug, suffix in [("incomplete", ".incomplete"), ("part", ".part"), ("crdownload", ".crdownload"),
                         ("tmp", ".tmp"), ("aria2", ".aria2")]:
        with_second("download-" + slug, f"shard 2 exists only as an unfinished download ({suffix})", "reject",
                    "FILE_INCOMPLETE", good[P2][:30], name=P2 + suffix, also_ok=["IDX_SHARD_MISSING"])
    B("download-cache", "hub cache layout: an .incomplete blob beside a finished one", "conditional", "FILE_INCOMPLETE",
      {"blobs/" + "0" * 64: shard("a"), "blobs/" + "1" * 64 + ".incomplete": shard("b")[:30],
       "refs/main": b"0" * 40, ".no_exist/" + "0" * 40 + "/model.safetensors": b""},
      condition="the finished blob is readable, the other is not")
    B("bin-index-to-safetensors", "pytorch_model.bin.index.json names .safetensors shards", "conditional",
      "FILE_WRONG_FORMAT", {"pytorch_model.bin.index.json": index, **good},
      condition="readable, but loaders would unpickle by the index name")
    B("safetensors-as-bin", "safetensors content named pytorch_model.bin", "conditional", "FILE_WRONG_FORMAT",
      {"pytorch_model.bin": shard("a")}, condition="readable as safetensors")

    for slug, data, code, also in [
        ("truncated", index[:40], "JSON_SYNTAX", ()), ("empty", b"", "FILE_EMPTY", ["JSON_SYNTAX"]),
        ("array", b"[]", "JSON_NOT_OBJECT", ()), ("null", b"null", "JSON_NOT_OBJECT", ()),
        ("html", HTML, "FILE_HTML", ["JSON_SYNTAX"]), ("lfs", LFS, "FILE_LFS_POINTER", ["JSON_SYNTAX"]),
        ("deep", b'{"weight_map":' + b"[" * 50_000, "JSON_TOO_DEEP", ["JSON_SYNTAX"]),
        ("not-utf8", index.replace(b'"a"', b'"\xff"'), "JSON_NOT_UTF8", ["JSON_SYNTAX"]),
        ("binary", bytes(64), "JSON_SYNTAX", ()), ("safetensors", shard("a"), "JSON_SYNTAX", ["FILE_WRONG_FORMAT"]),
    ]:
        with_index("index-" + slug, f"the index file is bad: {slug}", "reject", code, data, also_ok=also,
                   hazards=["recursion", "crash"] if slug == "deep" else ())
    with_index("index-bom", "index with a UTF-8 BOM", "conditional", "JSON_BOM", b"\xef\xbb\xbf" + index,
               condition="strict JSON forbids it, many editors add it", facts={"tensors": 2})
    with_index("index-utf16", "index in UTF-16 (json.loads of bytes guesses it)", "conditional", "JSON_ENCODING",
               b"\xff\xfe" + index.decode().encode("utf-16-le"), condition="Python guesses UTF-16, others refuse")
    B("index-is-dir", "the index is a folder", "reject", "FS_IS_DIR", {INDEX: None, **good})
    B("map-1k-missing", "1,000 tensors all in one missing shard (one finding, not 1,000)", "reject",
      "IDX_SHARD_MISSING", {INDEX: js({"weight_map": {f"t{i}": P1 for i in range(1000)}}).encode()}, hazards=["cpu"])
    B("map-1k-files", "1,000 tensors in 1,000 missing shards", "reject", "IDX_SHARD_MISSING",
      {INDEX: js({"weight_map": {f"t{i}": f"model-{i:05d}-of-01000.safetensors" for i in range(1000)}}).encode()},
      hazards=["cpu", "terminal"])
    with_index("sparse-index", "index of 3 GiB of holes", "reject", "JSON_TOO_LARGE", index, hazards=["memory"],
               also_ok=["JSON_SYNTAX"])
    if c.sparse:
        p = c.out / c.cases[-1]["path"]
        write_file(p / INDEX, Sparse(3 << 30, index))
        c.cases[-1].update(tree_facts(p))
    else:
        c.cases[-1]["skipped"] = "--no-sparse"


def raw_deflate(data: bytes) -> bytes:
    """One fixed-Huffman deflate block with matches at distance 1 and 2 only.

    Own code, because the bytes that zlib writes differ between its versions and forks."""
    out, acc, nbits = bytearray(), 0, 0

    def put(value, n):  # least significant bit first
        nonlocal acc, nbits
        acc |= value << nbits
        nbits += n
        while nbits >= 8:
            out.append(acc & 255)
            acc >>= 8
            nbits -= 8

    def code(value, n):  # Huffman codes go most significant bit first
        put(int(f"{value:0{n}b}"[::-1], 2), n)

    def symbol(s):
        if s < 144:
            code(0x30 + s, 8)
        elif s < 256:
            code(0x190 + s - 144, 9)
        elif s < 280:
            code(s - 256, 7)
        else:
            code(0xC0 + s - 280, 8)

    put(0b011, 3)  # final block, fixed codes
    i, size = 0, len(data)
    while i < size:
        for dist in (2, 1):
            if i >= dist and data[i:i + 258] == data[i - dist:i - dist + 258] and size - i >= 258:
                symbol(285)  # length 258
                code(dist - 1, 5)
                i += 258
                break
        else:
            symbol(data[i])
            i += 1
    symbol(256)
    if nbits:
        put(0, 8 - nbits)
    assert zlib.decompress(bytes(out), -15) == data
    return bytes(out)


# ------------------------------------------------------------------------------------------------
# C. zip containers as written by torch.save
# ------------------------------------------------------------------------------------------------

class Z:
    """One zip entry.  Fields of the central record; a leading l_ overrides the local header."""

    def __init__(self, name: bytes, data: bytes = b"", *, method=0, flags=0x0808, crc=None, csize=None,
                 usize=None, stored=None, extra=b"", comment=b"", offset=None, disk=0, xattr=0, made=0,
                 l_name=None, l_method=None, l_flags=None, l_crc=0, l_csize=0, l_usize=0, l_extra=b"",
                 align=64, descriptor=True, local=True, central=True):
        self.name, self.method, self.flags = name, method, flags
        self.stored = data if stored is None else stored
        self.crc = zlib.crc32(data) if crc is None else crc
        self.csize = len(self.stored) if csize is None else csize
        self.usize = len(data) if usize is None else usize
        self.extra, self.comment, self.offset = extra, comment, offset
        self.disk, self.xattr, self.made = disk, xattr, made
        self.l_name = name if l_name is None else l_name
        self.l_method = method if l_method is None else l_method
        self.l_flags = flags if l_flags is None else l_flags
        self.l_crc, self.l_csize, self.l_usize, self.l_extra = l_crc, l_csize, l_usize, l_extra
        self.align, self.descriptor, self.local, self.central = align, descriptor, local, central


def zip_build(entries, *, prefix=b"", shift=True, between=b"", comment=b"", suffix=b"", eocd=True,
              zip64=True, e=None, e64=None, loc=None, cd_patch=None) -> bytes:
    """A zip in the layout of torch.save: stored entries, data aligned to 64 bytes by an 'FB' extra
    field, sizes in data descriptors, zip64 end records always present.

    e / e64 / loc override fields of the end records; cd_patch edits the directory bytes.
    """
    out = bytearray(prefix)
    base = 0 if shift else len(prefix)
    cd = b""
    for z in entries:
        pos = len(out)
        if z.local:
            extra = z.l_extra
            if z.align and not extra:
                start = pos + 30 + len(z.l_name) + 4
                pad = -start % z.align
                extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
            out += struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, z.l_flags, z.l_method, 0, 0, z.l_crc, z.l_csize % (1 << 32),
                               z.l_usize % (1 << 32), len(z.l_name), len(extra)) + z.l_name + extra + z.stored
            if z.descriptor:
                out += struct.pack("<4s3I", b"PK\x07\x08", z.crc, z.csize % (1 << 32), z.usize % (1 << 32))
        if z.central:
            off = pos - base if z.offset is None else z.offset
            cd += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", z.made, 0, z.flags, z.method, 0, 0, z.crc, z.csize % (1 << 32),
                              z.usize % (1 << 32), len(z.name), len(z.extra), len(z.comment), z.disk, 0, z.xattr,
                              off % (1 << 32)) + z.name + z.extra + z.comment
    out += between
    count = sum(z.central for z in entries)
    if cd_patch:
        cd = cd_patch(cd)
    cd_pos = len(out) - base
    out += cd
    if zip64:
        f = dict(sig=b"PK\x06\x06", size=44, made=0x031E, need=45, disk=0, cd_disk=0, n_disk=count, n=count,
                 cd_size=len(cd), cd_pos=cd_pos, tail=b"")
        f.update(e64 or {})
        pos64 = len(out) - base
        out += struct.pack("<4sQ2H2I4Q", f["sig"], f["size"], f["made"], f["need"], f["disk"], f["cd_disk"], f["n_disk"],
                           f["n"], f["cd_size"], f["cd_pos"]) + f["tail"]
        f = dict(sig=b"PK\x06\x07", disk=0, pos=pos64, disks=1)
        f.update(loc or {})
        out += struct.pack("<4sIQI", f["sig"], f["disk"], f["pos"] % U64, f["disks"])
    if eocd:
        f = dict(sig=b"PK\x05\x06", disk=0, cd_disk=0, n_disk=min(count, 65535), n=min(count, 65535), cd_size=len(cd), cd_pos=cd_pos,
                 clen=len(comment))
        f.update(e or {})
        out += struct.pack("<4s4H2IH", f["sig"], f["disk"], f["cd_disk"], f["n_disk"], f["n"], f["cd_size"] % (1 << 32),
                           f["cd_pos"] % (1 << 32), f["clen"]) + comment
    return bytes(out) + suffix


def torch_entries(stream: bytes | None = None, storages: dict | None = None, root=b"archive", **replace) -> list:
    """The entries of a small torch.save file; `replace` maps short names to Z (None: leave out)."""
    stream = torch_pickle() if stream is None else stream
    storages = {"0": bytes(16)} if storages is None else storages
    rows = {"pkl": Z(root + b"/data.pkl", stream),
            "format_version": Z(root + b"/.format_version", b"1"),
            "alignment": Z(root + b"/.storage_alignment", b"64"),
            "byteorder": Z(root + b"/byteorder", b"little")}
    for k, v in storages.items():
        rows["data" + k] = Z(root + b"/data/" + k.encode(), v)
    rows["version"] = Z(root + b"/version", b"3\n")
    rows["serialization_id"] = Z(root + b"/.data/serialization_id", b"0" * 40)
    assert all(k in rows or k.startswith("x") for k in replace), replace
    rows.update(replace)
    return [z for z in rows.values() if z is not None]


def torch_zip(pkl=None, storages=None, *, root=b"archive", zopts=None, **replace) -> bytes:
    """A torch.save file; pkl is a pickle stream or a whole Z entry for data.pkl."""
    if isinstance(pkl, Z):
        replace["pkl"], pkl = pkl, None
    return zip_build(torch_entries(pkl, storages, root, **replace), **(zopts or {}))


def group_c(c: Corpus) -> None:
    def C(slug, description, expected, code, data, **kw):
        c.file("C", slug, ".pt", description, expected, code, data, tool="zipfile", **kw)

    pkl = torch_pickle()
    D = Z(b"archive/data.pkl", pkl)
    whole = torch_zip()
    n = len(torch_entries())

    # -- baselines
    C("ok", "baseline: one F32 [2,2] tensor, layout of torch.save 2.x", "accept", None, whole, facts={"tensors": 1})
    C("ok-plain-zip", "same content, no zip64 records, no descriptors, no alignment", "accept", None,
      zip_build([Z(z.name, z.stored, flags=0, l_crc=z.crc, l_csize=z.csize, l_usize=z.usize, align=0, descriptor=False)
                 for z in torch_entries()], zip64=False), facts={"tensors": 1})
    C("ok-other-root", "top folder named after the file", "accept", None, zip_build(torch_entries(root=b"model-v1.2")),
      facts={"tensors": 1})
    C("ok-unicode-root", "top folder with non-ASCII UTF-8 name (flag bit 11)", "accept", None,
      zip_build(torch_entries(root="mod\u00e8le".encode())), facts={"tensors": 1})
    C("ok-empty-storage", "a storage of 0 bytes", "accept", None,
      torch_zip(torch_pickle(numel=0, size=(0,), stride=(1,)), {"0": b""}), facts={"tensors": 1})
    C("ok-no-format-version", "older layout: data.pkl, data/0, version only", "accept", None,
      torch_zip(format_version=None, alignment=None, byteorder=None, serialization_id=None), facts={"tensors": 1})

    # -- end record
    C("no-eocd", "no end record at all (ends after the directory)", "reject", "ZIP_NO_EOCD",
      zip_build(torch_entries(), eocd=False, zip64=False))
    C("no-eocd-zip64", "zip64 records but no classic end record", "reject", "ZIP_NO_EOCD", zip_build(torch_entries(), eocd=False))
    C("truncated-tail", "the last 10 bytes are missing", "reject", "ZIP_NO_EOCD", whole[:-10])
    C("truncated-middle", "cut in the middle of the entries (stopped download)", "reject", "ZIP_NO_EOCD", whole[:400])
    C("truncated-head", "the first 100 bytes are missing", "reject", "ZIP_ENTRY_RANGE", whole[100:],
      also_ok=["ZIP_CD_BAD", "ZIP_EOCD_MISMATCH", "ZIP_ZIP64_BAD", "FILE_WRONG_FORMAT"])
    C("only-magic", "4 bytes: PK 03 04", "reject", "ZIP_NO_EOCD", b"PK\x03\x04")
    C("empty-zip", "an end record and nothing else", "reject", "PT_NO_DATA_PKL", zip_build([], zip64=False))
    C("two-eocd-comment", "a second end record inside the comment, naming an empty directory", "conditional", "ZIP_MULTI_EOCD",
      zip_build(torch_entries(), comment=struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, 0, 0, 0)),
      condition="readers disagree on which record counts", also_ok=["ZIP_COMMENT", "PT_NO_DATA_PKL", "ZIP_EOCD_MISMATCH"])
    C("two-eocd-archives", "two complete archives one after the other", "conditional", "ZIP_MULTI_EOCD", whole + torch_zip(root=b"second"),
      condition="the last archive is readable when its offsets are shifted", also_ok=["ZIP_PREFIX", "ZIP_EOCD_MISMATCH", "ZIP_ZIP64_BAD", "ZIP_CD_BAD"])
    C("two-eocd-adjacent", "the end record twice", "conditional", "ZIP_MULTI_EOCD", whole + whole[-22:],
      condition="the same directory by either, but bytes lie between", also_ok=["ZIP_TRAILING", "ZIP_EOCD_MISMATCH", "ZIP_ZIP64_BAD"])
    C("eocd-signature-in-data", "a storage that contains the end-record signature", "accept", None,
      torch_zip(storages={"0": b"PK\x05\x06PK\x06\x06PK\x06\x07"[:16].ljust(16, b"\0")}), facts={"tensors": 1})
    C("comment-65535", "archive comment of 65,535 bytes", "conditional", "ZIP_COMMENT", torch_zip(zopts={"comment": b"c" * 65535}),
      condition="valid zip; torch.save never writes one", facts={"tensors": 1}, hazards=["cpu"])
    C("comment-signatures", "comment of 65,535 bytes full of end-record signatures", "conditional", "ZIP_MULTI_EOCD",
      torch_zip(zopts={"comment": (b"PK\x05\x06" * 16384)[:65535]}), condition="every candidate has to be judged",
      hazards=["cpu"], also_ok=["ZIP_COMMENT", "ZIP_EOCD_MISMATCH", "ZIP_CD_BAD", "ZIP_MULTIDISK"])
    C("comment-ansi", "comment with escape sequences", "conditional", "ZIP_COMMENT", torch_zip(zopts={"comment": b"\x1b[2J\x1b]0;t\x07\xff"}),
      condition="valid zip; do not print it raw", hazards=["terminal"], facts={"tensors": 1})
    C("comment-length-lie", "comment length says 100, there are 0 bytes", "reject", "ZIP_NO_EOCD", torch_zip(zopts={"e": {"clen": 100}}),
      also_ok=["ZIP_EOCD_MISMATCH"])
    C("trailing-junk", "1,000 zero bytes after the end record", "conditional", "ZIP_TRAILING", whole + bytes(1000),
      condition="readers that search backwards find the record, strict ones do not", also_ok=["ZIP_NO_EOCD"])
    C("trailing-70k", "70,000 zero bytes after the end record, out of reach of the search", "reject", "ZIP_NO_EOCD", whole + bytes(70_000))
    C("prefix-junk", "100 bytes in front, offsets not adjusted", "conditional", "ZIP_PREFIX", b"#!/bin/sh\n".ljust(100) + whole,
      condition="zip readers shift offsets; torch does not", also_ok=["ZIP_ENTRY_RANGE", "ZIP_ZIP64_BAD", "ZIP_EOCD_MISMATCH"])
    C("prefix-adjusted", "100 bytes in front, offsets adjusted", "conditional", "ZIP_PREFIX", torch_zip(zopts={"prefix": b"x" * 100}),
      condition="a valid zip with a stub; the magic bytes are not at 0", facts={"tensors": 1}, also_ok=["FILE_WRONG_FORMAT"])
    C("prefix-safetensors", "a safetensors file in front, offsets adjusted (polyglot)", "conditional", "ZIP_PREFIX",
      torch_zip(zopts={"prefix": st(OK, D8)}), condition="two formats in one file", also_ok=["FILE_WRONG_FORMAT"])
    C("prefix-pickle", "a plain pickle in front, offsets adjusted (polyglot)", "conditional", "ZIP_PREFIX",
      torch_zip(zopts={"prefix": O.PROTO + b"\x02" + O.EMPTY_DICT + O.STOP}), condition="two formats in one file", also_ok=["FILE_WRONG_FORMAT"])
    for slug, d in [("more", 5), ("less", -3), ("zero", -n)]:
        C("count-" + slug, f"entry count in the end records is {slug} than in the directory" if d + n else "entry count in the end records is 0",
          "reject", "ZIP_EOCD_MISMATCH", torch_zip(zopts={"e": {"n": n + d, "n_disk": n + d}, "e64": {"n": n + d, "n_disk": n + d}}),
          also_ok=["ZIP_CD_BAD", "PT_NO_DATA_PKL"])
    C("count-disagree", "classic and zip64 records disagree on the count", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e64": {"n": n - 1, "n_disk": n - 1}}),
      also_ok=["ZIP_EOCD_MISMATCH"])
    C("count-huge", "zip64 entry count 2**63", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e64": {"n": 1 << 63, "n_disk": 1 << 63}, "e": {"n": 65535, "n_disk": 65535}}),
      also_ok=["ZIP_EOCD_MISMATCH"], hazards=["memory", "hang"])
    C("cd-size-lie", "directory size 16 bytes too small", "reject", "ZIP_CD_BAD",
      zip_build(torch_entries(), zip64=False, e={"cd_size": 46 * n + sum(len(z.name) for z in torch_entries()) - 16}), also_ok=["ZIP_EOCD_MISMATCH", "ZIP_PREFIX"])
    C("cd-past-eof", "directory offset beyond the file", "reject", "ZIP_CD_BAD", zip_build(torch_entries(), zip64=False, e={"cd_pos": 1 << 30}))
    C("cd-size-huge", "directory size 4 GiB - 2", "reject", "ZIP_CD_BAD", zip_build(torch_entries(), zip64=False, e={"cd_size": 0xFFFFFFFE}), hazards=["memory"])
    C("cd-bad-signature", "first directory record has a wrong signature", "reject", "ZIP_CD_BAD", torch_zip(zopts={"cd_patch": lambda b: b"XX" + b[2:]}))
    C("cd-truncated-record", "last directory record is cut", "reject", "ZIP_CD_BAD", torch_zip(zopts={"cd_patch": lambda b: b[:-20]}), also_ok=["ZIP_EOCD_MISMATCH"])
    C("cd-name-overrun", "name length of the last record runs past the directory", "reject", "ZIP_CD_BAD",
      torch_zip(zopts={"cd_patch": lambda b: b[:b.rfind(b"PK\x01\x02") + 28] + b"\xff\xff" + b[b.rfind(b"PK\x01\x02") + 30:]}))
    C("cd-extra-overrun", "extra field claims more bytes than it has", "reject", "ZIP_CD_BAD", torch_zip(pkl=Z(D.name, pkl, extra=b"\x01\x00\xff\xff")),
      also_ok=["ZIP_ZIP64_BAD"])
    C("cd-junk-between", "junk between the directory records", "reject", "ZIP_CD_BAD", torch_zip(zopts={"cd_patch": lambda b: b[:b.find(b"PK\x01\x02", 4)] + b"junk" + b[b.find(b"PK\x01\x02", 4):]}))
    C("multidisk", "disk numbers 1 of 2", "reject", "ZIP_MULTIDISK", zip_build(torch_entries(), zip64=False, e={"disk": 1, "cd_disk": 1}))
    C("multidisk-zip64", "zip64 locator says 2 disks", "reject", "ZIP_MULTIDISK", torch_zip(zopts={"loc": {"disks": 2}}), also_ok=["ZIP_ZIP64_BAD"])
    C("multidisk-entry", "one entry starts on disk 7", "reject", "ZIP_MULTIDISK", torch_zip(data0=Z(b"archive/data/0", bytes(16), disk=7)))

    # -- zip64
    ff = {"n": 65535, "n_disk": 65535, "cd_size": 0xFFFFFFFF, "cd_pos": 0xFFFFFFFF}
    C("zip64-only", "classic record all FF, values only in the zip64 record", "accept", None, torch_zip(zopts={"e": ff}), facts={"tensors": 1})
    C("zip64-missing", "classic record all FF, no zip64 record", "reject", "ZIP_ZIP64_BAD", zip_build(torch_entries(), zip64=False, e=ff), also_ok=["ZIP_CD_BAD"])
    C("zip64-locator-past-eof", "locator points beyond the file", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e": ff, "loc": {"pos": 1 << 40}}))
    C("zip64-locator-2-64", "locator points to 2**64-1", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e": ff, "loc": {"pos": U64 - 1}}))
    C("zip64-locator-zero", "locator points to offset 0, a local header", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e": ff, "loc": {"pos": 0}}))
    C("zip64-bad-signature", "zip64 record with a wrong signature", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e": ff, "e64": {"sig": b"PK\x06\x08"}}))
    C("zip64-record-size", "zip64 record says it is 2**63 bytes long", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e64": {"size": 1 << 63}}), hazards=["memory"])
    C("zip64-cd-pos", "zip64 directory offset 2**63", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e": ff, "e64": {"cd_pos": 1 << 63}}), also_ok=["ZIP_CD_BAD"], hazards=["crash"])
    C("zip64-cd-size", "zip64 directory size 2**62", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e": ff, "e64": {"cd_size": 1 << 62}}), also_ok=["ZIP_CD_BAD"], hazards=["memory"])
    C("zip64-disagree", "classic and zip64 directory offsets differ, both without FF", "reject", "ZIP_ZIP64_BAD", torch_zip(zopts={"e64": {"cd_pos": 0}}), also_ok=["ZIP_CD_BAD", "ZIP_EOCD_MISMATCH"])
    C("zip64-extensible", "zip64 record with 64 bytes of extensible data", "conditional", "ZIP_ZIP64_BAD", torch_zip(zopts={"e64": {"size": 44 + 64, "tail": bytes(64)}}), facts={"tensors": 1},
      condition="valid by the specification; some readers look only right before the locator")
    x64 = lambda *v: struct.pack("<HH", 1, 8 * len(v)) + b"".join(struct.pack("<Q", i % U64) for i in v)  # noqa: E731
    C("zip64-extra-ok", "entry sizes and offset given in a zip64 extra field", "accept", None,
      torch_zip(pkl=Z(D.name, pkl, flags=0x0800, csize=0xFFFFFFFF, usize=0xFFFFFFFF, offset=0xFFFFFFFF, extra=x64(len(pkl), len(pkl), 0),
                      l_crc=zlib.crc32(pkl), l_csize=0xFFFFFFFF, l_usize=0xFFFFFFFF, l_extra=x64(len(pkl), len(pkl)), descriptor=False)), facts={"tensors": 1})
    C("zip64-extra-missing", "entry size FFFFFFFF without a zip64 extra field", "reject", "ZIP_ZIP64_BAD", torch_zip(data0=Z(b"archive/data/0", bytes(16), csize=0xFFFFFFFF, usize=0xFFFFFFFF)), also_ok=["ZIP_SIZE_LIE"], hazards=["memory"])
    C("zip64-extra-short", "zip64 extra field holds one value, two are needed", "reject", "ZIP_ZIP64_BAD", torch_zip(data0=Z(b"archive/data/0", bytes(16), csize=0xFFFFFFFF, usize=0xFFFFFFFF, extra=x64(16))), hazards=["crash"])
    C("zip64-extra-twice", "two zip64 extra fields that disagree", "reject", "ZIP_ZIP64_BAD", torch_zip(data0=Z(b"archive/data/0", bytes(16), csize=0xFFFFFFFF, usize=0xFFFFFFFF, extra=x64(16, 16) + x64(1 << 40, 1 << 40))))
    C("zip64-extra-huge", "zip64 extra field: 2**63 bytes", "reject", "ZIP_SIZE_LIE", torch_zip(data0=Z(b"archive/data/0", bytes(16), csize=0xFFFFFFFF, usize=0xFFFFFFFF, extra=x64(1 << 63, 1 << 63))), also_ok=["ZIP_ENTRY_RANGE", "ZIP_ZIP64_BAD"], hazards=["memory"])
    C("zip64-extra-unneeded", "zip64 extra field though no field is FF", "conditional", "ZIP_ZIP64_BAD", torch_zip(data0=Z(b"archive/data/0", bytes(16), extra=x64(999, 999))), facts={"tensors": 1},
      condition="to be ignored by the specification; some readers take it")

    # -- entries
    C("no-data-pkl", "data.pkl is missing", "reject", "PT_NO_DATA_PKL", torch_zip(pkl=Z(b"archive/data.txt", pkl)))
    C("data-pkl-case", "entry named Data.PKL", "reject", "PT_NO_DATA_PKL", torch_zip(pkl=Z(b"archive/Data.PKL", pkl)))
    C("data-pkl-at-root", "entries without a top folder", "conditional", "PT_NO_DATA_PKL", zip_build([Z(z.name[8:], z.stored) for z in torch_entries()]),
      condition="readable; torch always writes a top folder", facts={"tensors": 1}, also_ok=["PT_MULTI_ROOT"])
    C("data-pkl-deeper", "data.pkl two folders deep", "conditional", "PT_NO_DATA_PKL", zip_build(torch_entries(root=b"a/b")), condition="readable; torch writes one level")
    C("data-pkl-empty", "data.pkl has no bytes", "reject", "PKL_EMPTY", torch_zip(pkl=Z(D.name, b"")))
    C("data-pkl-not-pickle", "data.pkl is text", "reject", "PKL_OPCODE", torch_zip(pkl=Z(D.name, b"hello")), also_ok=["PKL_TRUNCATED", "PKL_MEMO_UNSET", "PKL_STACK"])
    C("two-roots", "two top folders with a data.pkl each", "conditional", "PT_MULTI_ROOT", zip_build(torch_entries() + torch_entries(root=b"other")), condition="torch refuses; both can be listed")
    C("foreign-zip", "an ordinary zip of two text files", "reject", "PT_NO_DATA_PKL", zip_build([Z(b"a.txt", b"a"), Z(b"b.txt", b"b")], zip64=False), also_ok=["FILE_WRONG_FORMAT"])
    C("npz", "a numpy .npz named .pt", "reject", "PT_NO_DATA_PKL", zip_build([Z(b"w.npy", b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(127) + b"\n" + D8)], zip64=False), also_ok=["FILE_WRONG_FORMAT"])
    C("torchscript", "a TorchScript archive (constants.pkl, code/)", "conditional", "PT_TORCHSCRIPT",
      zip_build(torch_entries() + [Z(b"archive/constants.pkl", O.PROTO + b"\x02" + O.EMPTY_TUPLE + O.STOP), Z(b"archive/code/__torch__.py", b"class M(Module):\n  pass\n")]),
      condition="data.pkl is readable; code is never run")
    C("storage-missing", "the pickle names storage 0, the archive lacks it", "reject", "PT_STORAGE_MISSING", torch_zip(storages={}))
    C("storage-short", "storage 0 has 8 bytes, the pickle says 16", "reject", "PT_STORAGE_SIZE", torch_zip(storages={"0": bytes(8)}))
    C("storage-long", "storage 0 has 64 bytes, the pickle says 16", "conditional", "PT_STORAGE_SIZE", torch_zip(storages={"0": bytes(64)}), condition="torch reads the first 16", facts={"tensors": 1})
    C("storage-extra", "storage 1 that the pickle does not name", "conditional", "PT_STORAGE_UNREFERENCED", torch_zip(storages={"0": bytes(16), "1": b"x" * 32}), condition="harmless; hidden bytes", facts={"tensors": 1})
    C("storage-key-path", "the pickle names the storage ../0", "reject", "PT_STORAGE_MISSING", torch_zip(pkl=torch_pickle(key="../0")), also_ok=["ZIP_PATH_UNSAFE", "PKL_PERSID"], hazards=["path-escape"])
    C("version-99", "version file says 99", "conditional", "PT_VERSION", torch_zip(version=Z(b"archive/version", b"99\n")), condition="torch refuses over its maximum; the layout may still be readable")
    C("version-text", "version file is text", "conditional", "PT_VERSION", torch_zip(version=Z(b"archive/version", b"three\n")), condition="as version-99", hazards=["crash"])
    C("version-missing", "no version file", "conditional", "PT_VERSION", torch_zip(version=None), condition="torch refuses; the layout is readable", facts={"tensors": 1})
    C("version-digits", "version file of 5,000 digits", "conditional", "PT_VERSION", torch_zip(version=Z(b"archive/version", b"9" * 5000)), condition="as version-99", hazards=["crash"])
    C("byteorder-big", "byteorder file says big", "conditional", "PT_BYTEORDER", torch_zip(byteorder=Z(b"archive/byteorder", b"big")), condition="valid; values need swapping, headers do not", facts={"tensors": 1})
    C("byteorder-odd", "byteorder file says pdp", "conditional", "PT_BYTEORDER", torch_zip(byteorder=Z(b"archive/byteorder", b"pdp\x1b[31m")), condition="torch refuses", hazards=["terminal"])
    C("duplicate-data-pkl", "data.pkl twice with different content", "reject", "ZIP_DUPLICATE", torch_zip(x1=Z(D.name, O.PROTO + b"\x02" + O.EMPTY_DICT + O.STOP)))
    C("duplicate-identical", "data/0 twice, two records for one local entry", "conditional", "ZIP_DUPLICATE", torch_zip(x1=Z(b"archive/data.pkl", pkl, local=False, offset=0)), condition="both records mean the same bytes", also_ok=["ZIP_OVERLAP"])
    C("duplicate-case", "archive/version and ARCHIVE/VERSION", "conditional", "PT_MULTI_ROOT", torch_zip(x1=Z(b"ARCHIVE/VERSION", b"3\n")), condition="distinct in a zip, equal once unpacked on some systems")
    C("duplicate-nul", "archive/data.pkl and archive/data.pkl NUL x", "reject", "ZIP_PATH_UNSAFE", torch_zip(x1=Z(b"archive/data.pkl\0x", b"N.")), also_ok=["ZIP_DUPLICATE", "ZIP_NAME_ODD"])
    for slug, name in [("absolute", b"/etc/passwd"), ("parent", b"archive/../../../etc/passwd"), ("parent-bare", b".."), ("backslash", b"archive\\..\\x"),
                       ("drive", b"C:/x"), ("nul", b"archive/da\0ta"), ("double-slash", b"archive//x"), ("dot", b"archive/./x")]:
        soft = slug in ("double-slash", "dot")
        C("path-" + slug, f"an entry named {name.decode('latin-1').encode('unicode_escape').decode()}", "conditional" if soft else "reject",
          "ZIP_PATH_UNSAFE", torch_zip(x1=Z(name, b"x")), hazards=["path-escape"], condition="stays inside, but is not normal" if soft else None, also_ok=["ZIP_NAME_ODD"])
    C("name-empty", "an entry with an empty name", "conditional", "ZIP_NAME_ODD", torch_zip(x1=Z(b"", b"x")), condition="the rest is readable")
    C("name-65535", "an entry name of 65,535 bytes", "conditional", "ZIP_NAME_ODD", torch_zip(x1=Z(b"archive/" + b"n" * 65527, b"", local=False, offset=0)), condition="the rest is readable", hazards=["terminal"], also_ok=["ZIP_LOCAL_MISMATCH", "ZIP_OVERLAP"])
    C("name-not-utf8", "flag says UTF-8, the name is not", "conditional", "ZIP_NAME_ODD", torch_zip(x1=Z(b"archive/\xff\xfe", b"x")), condition="the rest is readable", hazards=["crash", "terminal"])
    C("name-cp437", "no UTF-8 flag, bytes over 127 (cp437)", "conditional", "ZIP_NAME_ODD", torch_zip(x1=Z(b"archive/\x82\x9b", b"x", flags=0)), condition="the rest is readable", also_ok=["ZIP_LOCAL_MISMATCH"])
    C("name-ansi", "escape sequences and newline in an entry name", "conditional", "ZIP_NAME_ODD", torch_zip(x1=Z(b"archive/\x1b[2J\nx", b"x")), condition="the rest is readable", hazards=["terminal"])
    C("name-dir-entry", "a folder entry archive/data/", "accept", None, torch_zip(x1=Z(b"archive/data/", b"")), facts={"tensors": 1})
    C("name-dir-with-data", "a folder entry that has data", "conditional", "ZIP_NAME_ODD", torch_zip(x1=Z(b"archive/extra/", b"hidden")), condition="the rest is readable")
    C("name-unicode-path-extra", "Info-ZIP Unicode path extra field gives another name", "conditional", "ZIP_NAME_ODD",
      torch_zip(x1=Z(b"archive/x", b"x", flags=8, extra=b"up" + struct.pack("<HBI", 5 + 11, 1, zlib.crc32(b"archive/x")) + b"archive/../")), condition="newer readers take the extra field", also_ok=["ZIP_PATH_UNSAFE"], hazards=["path-escape"])
    C("symlink-entry", "an entry with Unix mode of a symbolic link", "conditional", "ZIP_SYMLINK", torch_zip(x1=Z(b"archive/link", b"/etc/passwd", made=0x0314, xattr=0o120777 << 16)), condition="nothing is unpacked, so only a note", hazards=["path-escape"])
    C("entry-past-eof", "an entry offset beyond the file", "reject", "ZIP_ENTRY_RANGE", torch_zip(data0=Z(b"archive/data/0", bytes(16), offset=1 << 30)))
    C("entry-in-directory", "an entry offset inside the central directory", "reject", "ZIP_ENTRY_RANGE", torch_zip(data0=Z(b"archive/data/0", bytes(16), offset=len(whole) - 150)), also_ok=["ZIP_LOCAL_MISMATCH", "ZIP_CD_BAD"])
    C("entry-no-local-header", "an entry offset at a place without local header", "reject", "ZIP_LOCAL_MISMATCH", torch_zip(data0=Z(b"archive/data/0", bytes(16), offset=3)), also_ok=["ZIP_ENTRY_RANGE", "ZIP_CD_BAD"])
    C("overlap-same", "two names for one local entry", "conditional", "ZIP_OVERLAP", torch_zip(x1=Z(b"archive/data/1", bytes(16), crc=zlib.crc32(pkl), csize=len(pkl), usize=len(pkl), local=False, offset=0)), condition="alias; storage bytes are counted twice", also_ok=["ZIP_LOCAL_MISMATCH", "PT_STORAGE_UNREFERENCED"])
    C("overlap-partial", "an entry whose data covers the next entry", "reject", "ZIP_OVERLAP", torch_zip(data0=Z(b"archive/data/0", bytes(16), csize=80, usize=80)), also_ok=["ZIP_LOCAL_MISMATCH", "ZIP_CRC"])
    C("overlap-directory", "an entry whose data runs into the directory", "reject", "ZIP_OVERLAP", torch_zip(serialization_id=Z(b"archive/.data/serialization_id", b"0" * 40, csize=300, usize=300)), also_ok=["ZIP_ENTRY_RANGE", "ZIP_LOCAL_MISMATCH"])
    C("overlap-1000", "1,000 directory records over one local entry (amplification)", "reject", "ZIP_OVERLAP",
      zip_build([D] + [Z(b"archive/data/%d" % i, local=False, offset=0, crc=D.crc, csize=D.csize, usize=D.usize) for i in range(1000)]), hazards=["memory", "cpu"], also_ok=["ZIP_LOCAL_MISMATCH", "ZIP_MANY_ENTRIES"])
    C("many-entries", "500 empty storages that the pickle does not name", "conditional", "ZIP_MANY_ENTRIES",
      zip_build([D, Z(b"archive/data/0", bytes(16))] + [Z(b"archive/data/%d" % i, b"", align=0, descriptor=False) for i in range(1, 501)] + [Z(b"archive/version", b"3\n")]), condition="valid; a limit may apply", hazards=["cpu"], also_ok=["PT_STORAGE_UNREFERENCED"])
    C("size-4g", "stored entry says 4 GiB - 2", "reject", "ZIP_SIZE_LIE", torch_zip(data0=Z(b"archive/data/0", bytes(16), csize=0xFFFFFFFE, usize=0xFFFFFFFE)), also_ok=["ZIP_ENTRY_RANGE", "ZIP_OVERLAP"], hazards=["memory"])
    C("size-pkl-4g", "data.pkl says 4 GiB - 2", "reject", "ZIP_SIZE_LIE", torch_zip(pkl=Z(D.name, pkl, csize=0xFFFFFFFE, usize=0xFFFFFFFE)), also_ok=["ZIP_ENTRY_RANGE", "ZIP_OVERLAP"], hazards=["memory"])
    C("size-stored-differs", "stored entry with different sizes", "reject", "ZIP_SIZE_LIE", torch_zip(data0=Z(b"archive/data/0", bytes(16), usize=1 << 30)), hazards=["memory"])
    C("size-zero", "data.pkl says 0 bytes, the local data is there", "reject", "PKL_EMPTY", torch_zip(pkl=Z(D.name, pkl, csize=0, usize=0)), also_ok=["ZIP_LOCAL_MISMATCH", "ZIP_SIZE_LIE"])
    C("crc-wrong", "CRC of data/0 is wrong", "conditional", "ZIP_CRC", torch_zip(data0=Z(b"archive/data/0", bytes(16), crc=1)), condition="a header-only reader does not read the data", facts={"tensors": 1})
    C("crc-wrong-pkl", "CRC of data.pkl is wrong", "reject", "ZIP_CRC", torch_zip(pkl=Z(D.name, pkl, crc=1)))
    C("deflate-pkl", "data.pkl is deflated", "conditional", "ZIP_COMPRESSED", torch_zip(pkl=Z(D.name, pkl, method=8, stored=raw_deflate(pkl))), condition="readable with a bound on the output", facts={"tensors": 1})
    C("deflate-storage", "data/0 is deflated", "conditional", "ZIP_COMPRESSED", torch_zip(data0=Z(b"archive/data/0", bytes(16), method=8, stored=raw_deflate(bytes(16)))), condition="listed; its offset cannot be mapped", facts={"tensors": 1})
    bomb = O.PROTO + b"\x02" + (O.NONE + O.POP) * 2_000_000 + O.NONE + O.STOP
    packed = raw_deflate(bomb)
    C("deflate-bomb-pkl", "data.pkl inflates from 25 KB to 4 MB of opcodes", "conditional", "ZIP_COMPRESSED", torch_zip(pkl=Z(D.name, bomb, method=8, stored=packed)), condition="refuse over a ratio or opcode limit, or read it all", hazards=["memory", "cpu"], also_ok=["PKL_LIMIT", "ZIP_SIZE_LIE"])
    C("deflate-size-under", "deflated data.pkl inflates to more than it declares", "reject", "ZIP_SIZE_LIE", torch_zip(pkl=Z(D.name, bomb, usize=100, method=8, stored=packed)), hazards=["memory"], also_ok=["ZIP_COMPRESSED", "ZIP_CRC", "PKL_NO_STOP", "PKL_TRUNCATED"])
    C("deflate-size-over", "deflated data.pkl declares 3 GiB, inflates to its real size", "reject", "ZIP_SIZE_LIE", torch_zip(pkl=Z(D.name, pkl, usize=3 << 30, method=8, stored=raw_deflate(pkl))), hazards=["memory"], also_ok=["ZIP_COMPRESSED"])
    C("deflate-corrupt", "deflated data.pkl with a broken stream", "reject", "ZIP_COMPRESSED", torch_zip(pkl=Z(D.name, pkl, method=8, stored=b"\xff" * 32)), hazards=["crash"], also_ok=["ZIP_CRC"])
    C("deflate-truncated", "deflated data.pkl, stream cut in half", "reject", "ZIP_COMPRESSED", torch_zip(pkl=Z(D.name, pkl, method=8, stored=raw_deflate(pkl)[:60])), hazards=["crash"], also_ok=["ZIP_SIZE_LIE", "ZIP_CRC"])
    for m, name in [(9, "deflate64"), (12, "bzip2"), (14, "lzma"), (93, "zstd"), (99, "AE-x"), (0x7777, "unknown")]:
        C(f"method-{m}", f"data.pkl with compression method {m} ({name}), content is junk", "reject", "ZIP_METHOD", torch_zip(pkl=Z(D.name, pkl, method=m, stored=b"\0" * 32)), also_ok=["ZIP_COMPRESSED", "ZIP_ENCRYPTED"], hazards=["crash"])
    C("encrypted", "data.pkl has the encrypted flag", "reject", "ZIP_ENCRYPTED", torch_zip(pkl=Z(D.name, pkl, flags=0x0809)))
    C("encrypted-storage", "data/0 has the encrypted flag", "conditional", "ZIP_ENCRYPTED", torch_zip(data0=Z(b"archive/data/0", bytes(16), flags=0x0809)), condition="the header part is readable")
    C("encrypted-strong", "strong encryption flag (bit 6)", "reject", "ZIP_ENCRYPTED", torch_zip(pkl=Z(D.name, pkl, flags=0x0849)))
    C("encrypted-directory", "masked local headers (bit 13)", "reject", "ZIP_ENCRYPTED", torch_zip(pkl=Z(D.name, pkl, flags=0x2808)), also_ok=["ZIP_LOCAL_MISMATCH"])
    C("encrypted-local-only", "encrypted flag in the local header only", "reject", "ZIP_LOCAL_MISMATCH", torch_zip(pkl=Z(D.name, pkl, l_flags=0x0809)), also_ok=["ZIP_ENCRYPTED"])
    C("local-name", "local header has another name", "reject", "ZIP_LOCAL_MISMATCH", torch_zip(pkl=Z(D.name, pkl, l_name=b"archive/evil.pkl")))
    C("local-method", "local header says deflate, the directory says stored", "reject", "ZIP_LOCAL_MISMATCH", torch_zip(pkl=Z(D.name, pkl, l_method=8)))
    C("local-size", "local header sizes disagree (no descriptor flag)", "reject", "ZIP_LOCAL_MISMATCH", torch_zip(pkl=Z(D.name, pkl, flags=0x0800, l_crc=1, l_csize=1, l_usize=1, descriptor=False)))
    C("local-extra-overrun", "local extra length runs past the file", "reject", "ZIP_ENTRY_RANGE", whole[:28] + b"\xff\xff" + whole[30:], also_ok=["ZIP_LOCAL_MISMATCH", "ZIP_OVERLAP"])
    C("sparse-storage", "data/0 of 900 MB of holes, valid zip", "accept", None, sparse_torch(900_000_000), facts={"tensors": 1}, hazards=["memory"])


def sparse_torch(nbytes: int) -> Sparse:
    """A valid torch zip whose one storage is `nbytes` of holes: headers first, directory last."""
    ent = torch_entries(torch_pickle(numel=nbytes // 4, size=(nbytes // 4,), stride=(1,)), {"0": b""})
    i = next(i for i, z in enumerate(ent) if z.name == b"archive/data/0")
    head = bytearray(zip_build(ent[:i], zip64=False, eocd=False))
    head = head[:head.find(b"PK\x01\x02")]
    crc = 0
    for at in range(0, nbytes, 1 << 20):
        crc = zlib.crc32(bytes(min(1 << 20, nbytes - at)), crc)
    big = Z(b"archive/data/0", b"", flags=0x0800, crc=crc, csize=nbytes, usize=nbytes, l_csize=nbytes, l_usize=nbytes, descriptor=False)
    start = len(head)
    pad = -(start + 30 + len(big.name) + 4) % 64
    head += struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, big.flags, 0, 0, 0, crc, nbytes, nbytes, len(big.name), 4 + pad) + big.name + b"FB" + struct.pack("<H", pad) + b"Z" * pad
    after = len(head) + nbytes
    tail = bytearray()
    for z in ent[i + 1:]:
        z.align, z.offset = 0, after + len(tail)
        tail += struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, z.flags, 0, 0, 0, 0, 0, 0, len(z.name), 0) + z.name + z.stored + struct.pack("<4s3I", b"PK\x07\x08", z.crc, z.csize, z.usize)
    big.offset, pos = start, 0
    for z in ent[:i]:
        z.offset = head.find(b"PK\x03\x04", pos)
        pos = z.offset + 4
    ent[i] = big
    cd = b"".join(struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 0, 0, z.flags, 0, 0, 0, z.crc, z.csize, z.usize, len(z.name), 0, 0, 0, 0, 0, z.offset) + z.name for z in ent)
    cd_pos = after + len(tail)
    tail += cd + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(ent), len(ent), len(cd), cd_pos, 0)
    return Sparse(after + len(tail), bytes(head), bytes(tail))


# ------------------------------------------------------------------------------------------------
# D. pickle opcode streams.  Assembled from bytes, never loaded.
# ------------------------------------------------------------------------------------------------

class O:
    """Pickle opcodes, spelled out."""
    MARK, STOP, POP, POP_MARK, DUP = b"(", b".", b"0", b"1", b"2"
    FLOAT, INT, BININT, BININT1, LONG, BININT2 = b"F", b"I", b"J", b"K", b"L", b"M"
    NONE, PERSID, BINPERSID, REDUCE = b"N", b"P", b"Q", b"R"
    STRING, BINSTRING, SHORT_BINSTRING, UNICODE, BINUNICODE = b"S", b"T", b"U", b"V", b"X"
    APPEND, BUILD, GLOBAL, DICT, EMPTY_DICT, APPENDS = b"a", b"b", b"c", b"d", b"}", b"e"
    GET, BINGET, INST, LONG_BINGET, LIST, EMPTY_LIST = b"g", b"h", b"i", b"j", b"l", b"]"
    OBJ, PUT, BINPUT, LONG_BINPUT, SETITEM, TUPLE = b"o", b"p", b"q", b"r", b"s", b"t"
    EMPTY_TUPLE, SETITEMS, BINFLOAT = b")", b"u", b"G"
    PROTO, NEWOBJ, EXT1, EXT2, EXT4 = b"\x80", b"\x81", b"\x82", b"\x83", b"\x84"
    TUPLE1, TUPLE2, TUPLE3, NEWTRUE, NEWFALSE = b"\x85", b"\x86", b"\x87", b"\x88", b"\x89"
    LONG1, LONG4, BINBYTES, SHORT_BINBYTES = b"\x8a", b"\x8b", b"B", b"C"
    SHORT_BINUNICODE, BINUNICODE8, BINBYTES8 = b"\x8c", b"\x8d", b"\x8e"
    EMPTY_SET, ADDITEMS, FROZENSET, NEWOBJ_EX = b"\x8f", b"\x90", b"\x91", b"\x92"
    STACK_GLOBAL, MEMOIZE, FRAME = b"\x93", b"\x94", b"\x95"
    BYTEARRAY8, NEXT_BUFFER, READONLY_BUFFER = b"\x96", b"\x97", b"\x98"


PR2, PR4, PR5 = O.PROTO + b"\x02", O.PROTO + b"\x04", O.PROTO + b"\x05"


def u(text) -> bytes:
    b = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return O.BINUNICODE + struct.pack("<I", len(b)) + b


def su(text) -> bytes:
    b = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return O.SHORT_BINUNICODE + bytes([len(b)]) + b


def num(n: int) -> bytes:
    if 0 <= n < 256:
        return O.BININT1 + bytes([n])
    if 0 <= n < 65536:
        return O.BININT2 + struct.pack("<H", n)
    if -(1 << 31) <= n < 1 << 31:
        return O.BININT + struct.pack("<i", n)
    b = n.to_bytes((n.bit_length() + 8) // 8, "little", signed=True)
    return O.LONG1 + bytes([len(b)]) + b


def glob(module, name) -> bytes:
    enc = lambda s: s if isinstance(s, bytes) else s.encode()  # noqa: E731
    return O.GLOBAL + enc(module) + b"\n" + enc(name) + b"\n"


def tup(*items: bytes) -> bytes:
    return O.MARK + b"".join(items) + O.TUPLE


def obj(v) -> bytes:
    """Opcodes for plain values; bytes are taken as ready opcodes."""
    if isinstance(v, bytes):
        return v
    if v is None:
        return O.NONE
    if isinstance(v, bool):
        return O.NEWTRUE if v else O.NEWFALSE
    if isinstance(v, int):
        return num(v)
    if isinstance(v, str):
        return u(v)
    if isinstance(v, float):
        return O.BINFLOAT + struct.pack(">d", v)
    if isinstance(v, tuple):
        return tup(*map(obj, v))
    if isinstance(v, list):
        return O.EMPTY_LIST + O.MARK + b"".join(map(obj, v)) + O.APPENDS
    raise TypeError(v)


ODICT = glob("collections", "OrderedDict") + O.EMPTY_TUPLE + O.REDUCE


def pers(key="0", numel=4, storage=None, location="cpu", kind="storage") -> bytes:
    return tup(obj(kind), storage or glob("torch", "FloatStorage"), obj(key), obj(location), obj(numel)) + O.BINPERSID


def tensor(store=None, offset=0, size=(2, 2), stride=(2, 1), grad=False, hooks=ODICT, func="_rebuild_tensor_v2", more=(), **kw) -> bytes:
    store = pers(**kw) if store is None else store
    args = [store, obj(offset), obj(size), obj(stride), obj(grad)] + ([hooks] if hooks is not None else []) + [obj(m) for m in more]
    return glob("torch._utils", func) + tup(*args) + O.REDUCE


def state(*pairs, proto=PR2) -> bytes:
    """A state dict: pairs of key and opcodes."""
    return proto + O.EMPTY_DICT + O.MARK + b"".join(obj(k) + v for k, v in pairs) + O.SETITEMS + O.STOP


def torch_pickle(**kw) -> bytes:
    return state(("w", tensor(**kw)))


def frame(body: bytes, n: int | None = None) -> bytes:
    return O.FRAME + struct.pack("<Q", len(body) if n is None else n) + body


MAGIC = O.LONG1 + b"\x0a" + bytes.fromhex("6cfc9c46f9206aa85019")


def legacy(magic=MAGIC, protocol=1001, keys=("0",), numel=4, data=bytes(16), main=None) -> bytes:
    """The pre-1.6 torch.save layout: five pickles, then length-prefixed raw storages."""
    sysinfo = PR2 + O.EMPTY_DICT + O.MARK + u("protocol_version") + num(1001) + u("little_endian") + O.NEWTRUE + u("type_sizes") + O.EMPTY_DICT + O.SETITEMS + O.STOP
    store = tup(u("storage"), glob("torch", "FloatStorage"), u("0"), u("cpu"), num(4), O.NONE) + O.BINPERSID
    main = state(("w", tensor(store))) if main is None else main
    return (PR2 + magic + O.STOP + PR2 + num(protocol) + O.STOP + sysinfo + main + PR2 + obj(list(keys)) + O.STOP
            + struct.pack("<q", numel) + data)


def group_d(c: Corpus) -> None:
    def D(slug, description, expected, code, data, **kw):
        c.file("D", slug, ".pkl", description, expected, code, data, tool="pickletools", **kw)

    # -- baselines
    D("ok-state-dict", "protocol 2 state dict with one tensor", "accept", None, torch_pickle(), facts={"tensors": ["w"]})
    D("ok-none", "protocol 2, the value is None", "accept", None, PR2 + O.NONE + O.STOP)
    D("proto-0-stack", "protocol 0 dict with a key and a value left on the stack at STOP", "conditional", "PKL_STACK",
      b"(dp0\nS'a'\np1\nI1\nsVu\\u00e9\nN.", condition="unpicklers return the top one")
    D("ok-proto-0-dict", "protocol 0 text form, well-formed", "accept", None,
      b"(dp0\nS'a'\np1\nI1\nsS'b'\nL2L\nsVc\nF1.5\nsS'd'\nI01\nsS'e'\nI00\nsVu\\u00e9\nNs.", facts={"keys": ["a", "b", "c", "d", "e", "u\u00e9"]})
    D("ok-proto-1", "protocol 1: BINPUT and BINGET, no PROTO opcode", "accept", None, O.EMPTY_DICT + O.BINPUT + b"\0" + O.SHORT_BINSTRING + b"\x01a" + O.BINGET + b"\0" + O.POP + num(1) + O.SETITEM + O.STOP, facts={"keys": ["a"]})
    D("ok-proto-4", "protocol 4: FRAME, MEMOIZE, SHORT_BINUNICODE, STACK_GLOBAL", "accept", None,
      PR4 + frame(su("collections") + O.MEMOIZE + su("OrderedDict") + O.MEMOIZE + O.STACK_GLOBAL + O.MEMOIZE + O.EMPTY_TUPLE + O.REDUCE + O.MEMOIZE + su("a") + num(1) + O.SETITEM + O.STOP), facts={"globals": ["collections.OrderedDict"], "foreign": []})
    D("ok-proto-5", "protocol 5: BYTEARRAY8", "accept", None, PR5 + O.BYTEARRAY8 + struct.pack("<Q", 3) + b"abc" + O.STOP)
    D("ok-memo-reuse", "a memo slot is set twice, the second value counts", "accept", None, PR2 + u("a") + O.BINPUT + b"\0" + O.POP + u("b") + O.BINPUT + b"\0" + O.POP + O.BINGET + b"\0" + O.STOP, facts={"value": "b"})
    D("ok-two-frames", "two frames and opcodes between them", "accept", None, PR4 + frame(O.EMPTY_LIST + O.MEMOIZE) + O.MARK + frame(num(1) + num(2) + O.APPENDS + O.STOP))
    D("legacy", "pre-zip torch.save file: five pickles and one raw storage", "conditional", "PT_LEGACY", legacy(), facts={"tensors": ["w"]}, condition="supported or refused as a legacy file, never as damaged", also_ok=["PKL_TRAILING"])
    D("legacy-magic", "legacy file with another magic number", "conditional", "PKL_TRAILING", legacy(magic=num(12345)), also_ok=["PT_LEGACY", "FILE_WRONG_FORMAT"], condition="a stream of pickles and junk, but no torch file")
    D("legacy-truncated", "legacy file, storage data cut", "reject", "PT_STORAGE_SIZE", legacy()[:-10], also_ok=["PKL_TRAILING", "PT_LEGACY"])
    D("legacy-numel-lie", "legacy file, raw storage says 2**62 elements", "reject", "PT_STORAGE_SIZE", legacy(numel=1 << 62), also_ok=["PKL_TRAILING", "PT_LEGACY"], hazards=["memory"])
    D("legacy-numel-negative", "legacy file, raw storage says -1 elements", "reject", "PT_STORAGE_SIZE", legacy(numel=-1), also_ok=["PKL_TRAILING", "PT_LEGACY"], hazards=["crash"])
    D("legacy-key-missing", "legacy file, the key list names another storage", "reject", "PT_STORAGE_MISSING", legacy(keys=("7",)), also_ok=["PKL_TRAILING", "PT_LEGACY"])

    # -- truncation and framing
    D("empty", "0 bytes", "reject", "FILE_EMPTY", b"", also_ok=["PKL_EMPTY"])
    D("only-proto", "PROTO 2 and nothing else", "reject", "PKL_NO_STOP", PR2, also_ok=["PKL_TRUNCATED"])
    D("only-stop", "STOP with an empty stack", "reject", "PKL_STACK", O.STOP)
    D("no-stop", "a complete value, STOP missing", "reject", "PKL_NO_STOP", torch_pickle()[:-1], also_ok=["PKL_TRUNCATED"])
    for slug, body, what in [
        ("proto", O.PROTO, "PROTO"), ("binint", O.BININT + b"\1\2", "BININT"), ("binint2", O.BININT2 + b"\1", "BININT2"),
        ("binfloat", O.BINFLOAT + b"\0" * 5, "BINFLOAT"), ("binunicode-len", O.BINUNICODE + b"\5\0", "the BINUNICODE length"),
        ("binunicode", O.BINUNICODE + b"\5\0\0\0ab", "BINUNICODE"), ("short-binbytes", O.SHORT_BINBYTES + b"\x09abc", "SHORT_BINBYTES"),
        ("global-module", O.GLOBAL + b"torch._ut", "the GLOBAL module line"), ("global-name", O.GLOBAL + b"torch\nFlo", "the GLOBAL name line"),
        ("int-line", O.INT + b"12", "an INT line"), ("long1", O.LONG1 + b"\x08\1\2", "LONG1"), ("frame", O.FRAME + b"\x10\0\0", "FRAME"),
        ("binput", O.NONE + O.BINPUT, "BINPUT"), ("long-binget", O.LONG_BINGET + b"\0", "LONG_BINGET"), ("ext4", O.EXT4 + b"\1", "EXT4"),
    ]:
        D("cut-" + slug, f"ends in the middle of {what}", "reject", "PKL_TRUNCATED", (PR2 if slug != "proto" else b"") + body, also_ok=["PKL_LENGTH", "PKL_NO_STOP"])
    D("cut-state-dict", "a state dict cut in half", "reject", "PKL_TRUNCATED", torch_pickle()[:90], also_ok=["PKL_NO_STOP", "PKL_LENGTH"])
    D("trailing-data", "16 bytes after STOP", "conditional", "PKL_TRAILING", PR2 + O.EMPTY_DICT + O.STOP + b"trailing garbage", condition="pickle.load ignores it; a torch data.pkl never has it")
    D("trailing-pickle", "a second pickle after STOP", "conditional", "PKL_TRAILING", (PR2 + O.EMPTY_DICT + O.STOP) * 2, condition="a stream of pickles is legal; must be looked at as well")
    D("trailing-foreign", "a second pickle after STOP that names a foreign global", "conditional", "PKL_TRAILING",
      PR2 + O.EMPTY_DICT + O.STOP + PR2 + glob("builtins", "print") + tup(u("x")) + O.REDUCE + O.STOP, condition="as trailing-pickle", hazards=["exec"], also_ok=["PKL_FOREIGN_GLOBAL"])
    for slug, b in [("ff", b"\xff"), ("00", b"\0"), ("99", b"\x99"), ("upper-a", b"A")]:
        D("opcode-" + slug, f"unknown opcode 0x{b[0]:02x}", "reject", "PKL_OPCODE", PR2 + b + O.NONE + O.STOP)
    for v in (6, 255):
        D(f"proto-{v}", f"PROTO {v}", "reject", "PKL_PROTO", O.PROTO + bytes([v]) + O.NONE + O.STOP)
    D("proto-lower", "PROTO 2, then opcodes of protocol 4", "conditional", "PKL_PROTO", PR2 + su("a") + O.MEMOIZE + O.STOP, condition="unpicklers do not check it")
    D("proto-twice", "PROTO in the middle", "conditional", "PKL_PROTO", PR2 + O.NONE + PR4 + O.POP + O.NONE + O.STOP, condition="unpicklers take it")
    D("proto-20k", "20,000 times PROTO", "conditional", "PKL_PROTO", PR2 * 20_000 + O.NONE + O.STOP, condition="unpicklers take it", hazards=["cpu"], also_ok=["PKL_LIMIT"])

    # -- lying lengths
    for slug, body, what in [
        ("binbytes8-2-63", O.BINBYTES8 + struct.pack("<Q", 1 << 63), "BINBYTES8 of 2**63"), ("binbytes8-max", O.BINBYTES8 + b"\xff" * 8, "BINBYTES8 of 2**64-1"),
        ("binbytes8-1t", O.BINBYTES8 + struct.pack("<Q", 1 << 40), "BINBYTES8 of 1 TiB"), ("binbytes-4g", O.BINBYTES + b"\xff" * 4, "BINBYTES of 4 GiB - 1"),
        ("binunicode-4g", O.BINUNICODE + b"\xff" * 4, "BINUNICODE of 4 GiB - 1"), ("binunicode8-1t", O.BINUNICODE8 + struct.pack("<Q", 1 << 40), "BINUNICODE8 of 1 TiB"),
        ("binunicode8-max", O.BINUNICODE8 + b"\xff" * 8, "BINUNICODE8 of 2**64-1"), ("bytearray8-4e", O.BYTEARRAY8 + struct.pack("<Q", 1 << 62), "BYTEARRAY8 of 2**62"),
        ("long4-2g", O.LONG4 + struct.pack("<i", (1 << 31) - 1), "LONG4 of 2**31-1"), ("long4-negative", O.LONG4 + struct.pack("<i", -1), "LONG4 of -1"),
        ("long1-255", O.LONG1 + b"\xff", "LONG1 of 255"), ("binstring-negative", O.BINSTRING + struct.pack("<i", -1), "BINSTRING of -1"),
        ("binstring-2g", O.BINSTRING + struct.pack("<i", (1 << 31) - 1), "BINSTRING of 2**31-1"), ("short-binunicode", O.SHORT_BINUNICODE + b"\xff", "SHORT_BINUNICODE of 255"),
    ]:
        D("length-" + slug, f"{what} bytes, 2 are there", "reject", "PKL_LENGTH", PR5 + body + b"ab" + O.STOP, also_ok=["PKL_TRUNCATED"], hazards=["memory"])
    D("length-swallows-stop", "SHORT_BINBYTES length that covers STOP", "reject", "PKL_NO_STOP", PR2 + O.SHORT_BINBYTES + b"\x03ab" + O.STOP, also_ok=["PKL_TRUNCATED", "PKL_LENGTH"])
    D("frame-2-63", "FRAME of 2**63 bytes", "reject", "PKL_FRAME", PR4 + frame(O.NONE + O.STOP, 1 << 63), hazards=["memory"])
    D("frame-long", "FRAME longer than the file by one", "reject", "PKL_FRAME", PR4 + frame(O.NONE + O.STOP, 3))
    D("frame-short", "FRAME ends before the opcodes do", "conditional", "PKL_FRAME", PR4 + frame(O.EMPTY_LIST + num(1) + O.APPEND + O.STOP, 1), condition="readable as a plain opcode stream; unpicklers differ")
    D("frame-splits-opcode", "FRAME ends within an argument", "conditional", "PKL_FRAME", PR4 + frame(u("abcdef") + O.STOP, 4), also_ok=["PKL_TRUNCATED"], condition="the Python unpickler refuses, the C one does not look")
    D("frame-nested", "a FRAME inside a FRAME", "conditional", "PKL_FRAME", PR4 + frame(frame(O.NONE + O.STOP)), condition="the Python unpickler refuses, the C one does not look")
    D("frame-zero", "FRAME of 0 bytes", "conditional", "PKL_FRAME", PR4 + frame(b"") + O.NONE + O.STOP, condition="harmless; no pickler writes it")
    D("frame-5k", "5,000 frames of one opcode", "conditional", "PKL_FRAME", PR4 + frame(O.NONE) + (frame(O.POP) + frame(O.NONE)) * 2_500 + O.STOP, condition="valid; a limit may apply", also_ok=["PKL_LIMIT"], hazards=["cpu"])

    # -- memo
    D("memo-unset-binget", "BINGET of a slot never set", "reject", "PKL_MEMO_UNSET", PR2 + O.BINGET + b"\7" + O.STOP, hazards=["crash"])
    D("memo-unset-long", "LONG_BINGET of slot 2**32-1, never set", "reject", "PKL_MEMO_UNSET", PR2 + O.LONG_BINGET + b"\xff" * 4 + O.STOP, hazards=["crash", "memory"])
    D("memo-unset-text", "GET of a slot never set", "reject", "PKL_MEMO_UNSET", b"g7\n.", hazards=["crash"])
    D("memo-forward", "BINGET before the BINPUT", "reject", "PKL_MEMO_UNSET", PR2 + O.BINGET + b"\0" + O.POP + u("a") + O.BINPUT + b"\0" + O.STOP)
    D("memo-huge-put", "LONG_BINPUT to slot 2**32-1 (a memo kept as an array needs 32 GiB)", "conditional", "PKL_MEMO_INDEX", PR2 + O.EMPTY_LIST + O.LONG_BINPUT + b"\xff" * 4 + O.STOP,
      condition="legal; refuse or keep the memo as a map", hazards=["memory"])
    D("memo-huge-put-2g", "LONG_BINPUT to slot 2**31", "conditional", "PKL_MEMO_INDEX", PR2 + O.EMPTY_LIST + O.LONG_BINPUT + struct.pack("<I", 1 << 31) + O.STOP, condition="as memo-huge-put", hazards=["memory"])
    D("memo-text-huge", "PUT 99999999999999999999", "conditional", "PKL_MEMO_INDEX", b"(lp99999999999999999999\n.", condition="the text form has no limit; unpicklers differ", hazards=["crash"])
    D("memo-text-5000-digits", "PUT with 5,000 digits", "reject", "PKL_MEMO_INDEX", b"(lp" + b"9" * 5000 + b"\n.", hazards=["crash"])
    D("memo-text-negative", "PUT -1", "reject", "PKL_MEMO_INDEX", b"(lp-1\n.")
    D("memo-text-nan", "PUT abc", "reject", "PKL_MEMO_INDEX", b"(lpabc\n.", also_ok=["PKL_TEXT_ARG"], hazards=["crash"])
    D("memo-text-empty", "PUT with an empty line", "reject", "PKL_MEMO_INDEX", b"(lp\n.", also_ok=["PKL_TEXT_ARG"], hazards=["crash"])
    D("memo-empty-stack", "BINPUT with an empty stack", "reject", "PKL_STACK", PR2 + O.BINPUT + b"\0" + O.NONE + O.STOP)
    D("memoize-empty-stack", "MEMOIZE with an empty stack", "reject", "PKL_STACK", PR4 + O.MEMOIZE + O.NONE + O.STOP)
    D("memoize-over-mark", "MEMOIZE when MARK is on top", "reject", "PKL_MARK", PR4 + O.MARK + O.MEMOIZE + O.TUPLE + O.STOP, also_ok=["PKL_STACK"])
    D("memoize-50k", "50,000 memo slots", "conditional", "PKL_LIMIT", PR4 + O.NONE + O.MEMOIZE * 50_000 + O.STOP, condition="legal; a limit may apply", hazards=["memory"])

    # -- marks and stack
    for slug, body in [("tuple", O.TUPLE), ("list", O.LIST), ("dict", O.DICT), ("appends", O.EMPTY_LIST + O.APPENDS), ("setitems", O.EMPTY_DICT + O.SETITEMS), ("pop-mark", O.POP_MARK),
                       ("additems", O.EMPTY_SET + O.ADDITEMS), ("frozenset", O.FROZENSET), ("obj", O.OBJ), ("inst", O.INST + b"torch\nFloatStorage\n")]:
        D("mark-missing-" + slug, f"{slug.upper().replace('-', '_')} without MARK", "reject", "PKL_MARK", PR4 + body + O.STOP, also_ok=["PKL_STACK"])
    D("mark-100k", "100,000 MARKs and STOP", "reject", "PKL_MARK", PR2 + O.MARK * 100_000 + O.STOP, hazards=["memory", "recursion"], also_ok=["PKL_STACK", "PKL_LIMIT"])
    D("mark-left", "a MARK below the value at STOP", "conditional", "PKL_MARK", PR2 + O.MARK + O.NONE + O.STOP, also_ok=["PKL_STACK"], condition="unpicklers return the top one")
    D("mark-object-missing", "OBJ with MARK but no class", "reject", "PKL_STACK", PR2 + O.MARK + O.OBJ + O.STOP, also_ok=["PKL_MARK"])
    for slug, body in [("append", O.EMPTY_LIST + O.APPEND), ("setitem", O.EMPTY_DICT + O.NONE + O.SETITEM), ("tuple3", O.NONE + O.TUPLE3), ("reduce", O.EMPTY_TUPLE + O.REDUCE), ("build", O.NONE + O.BUILD),
                       ("binpersid", O.BINPERSID), ("dup", O.DUP), ("pop", O.POP), ("stack-global", su("torch") + O.STACK_GLOBAL), ("newobj-ex", O.EMPTY_TUPLE + O.EMPTY_DICT + O.NEWOBJ_EX)]:
        D("underflow-" + slug, f"{slug.upper().replace('-', '_')} with too few objects on the stack", "reject", "PKL_STACK", PR4 + body + O.STOP, hazards=["crash"])
    D("stack-left", "two values on the stack at STOP", "conditional", "PKL_STACK", PR2 + O.NONE + u("x") + O.STOP, condition="unpicklers return the top one")
    D("setitems-odd", "SETITEMS with three objects", "reject", "PKL_STACK", PR2 + O.EMPTY_DICT + O.MARK + u("a") + num(1) + u("b") + O.SETITEMS + O.STOP, hazards=["crash"])
    D("dict-odd", "DICT with three objects", "reject", "PKL_STACK", PR2 + O.MARK + u("a") + num(1) + u("b") + O.DICT + O.STOP, hazards=["crash"])
    D("dup-40k", "40,000 DUPs, then STOP", "conditional", "PKL_LIMIT", PR2 + O.NONE + O.DUP * 40_000 + O.STOP, condition="legal but for the stack left over", hazards=["memory"], also_ok=["PKL_STACK"])
    D("pop-mark-cleans", "MARK, values, POP_MARK", "accept", None, PR2 + O.MARK + O.NONE * 3 + O.POP_MARK + O.EMPTY_DICT + O.STOP)

    # -- depth, cycles, sharing, size
    D("deep-lists-100k", "100,000 nested lists", "conditional", "PKL_TOO_DEEP", PR2 + O.EMPTY_LIST * 100_000 + O.APPEND * 99_999 + O.STOP, hazards=["recursion", "crash"], condition="legal; refuse or walk without recursion", also_ok=["PKL_LIMIT"])
    D("deep-tuples-100k", "100,000 nested one-element tuples", "conditional", "PKL_TOO_DEEP", PR2 + O.EMPTY_TUPLE + O.TUPLE1 * 100_000 + O.STOP, hazards=["recursion", "crash"], condition="as deep-lists-100k", also_ok=["PKL_KEY", "PKL_LIMIT"])
    D("deep-marks-25k", "25,000 nested MARK ... TUPLE", "conditional", "PKL_TOO_DEEP", PR2 + O.MARK * 25_000 + O.TUPLE * 25_000 + O.STOP, hazards=["recursion", "crash"], condition="as deep-lists-100k", also_ok=["PKL_KEY", "PKL_LIMIT"])
    D("deep-dicts-8k", "8,000 nested dicts", "conditional", "PKL_TOO_DEEP", PR2 + O.EMPTY_DICT + (num(1) + O.EMPTY_DICT) * 8_000 + O.SETITEM * 8_000 + O.STOP, hazards=["recursion", "crash"], condition="as deep-lists-100k", also_ok=["PKL_KEY", "PKL_LIMIT"])
    D("deep-reduce-5k", "5,000 nested REDUCE of OrderedDict", "conditional", "PKL_TOO_DEEP", PR2 + glob("collections", "OrderedDict") + O.BINPUT + b"\0" + O.POP + O.EMPTY_LIST + (O.TUPLE1 + O.BINPUT + b"\1" + O.POP + O.BINGET + b"\0" + O.BINGET + b"\1" + O.REDUCE) * 5_000 + O.STOP,
      hazards=["recursion", "crash"], condition="as deep-lists-100k", also_ok=["PKL_KEY", "PKL_LIMIT"])
    D("cycle-list", "a list that contains itself", "conditional", "PKL_CYCLE", PR2 + O.EMPTY_LIST + O.BINPUT + b"\0" + O.BINGET + b"\0" + O.APPEND + O.STOP, hazards=["recursion", "hang"], condition="legal; refuse or stop at the repeat")
    D("cycle-dict", "a state dict whose value is itself", "conditional", "PKL_CYCLE", PR2 + O.EMPTY_DICT + O.BINPUT + b"\0" + u("self") + O.BINGET + b"\0" + O.SETITEM + O.STOP, hazards=["recursion", "hang"], condition="as cycle-list")
    D("cycle-pair", "two dicts that contain each other, beside a tensor", "conditional", "PKL_CYCLE",
      PR2 + O.EMPTY_DICT + O.BINPUT + b"\0" + u("b") + O.EMPTY_DICT + O.BINPUT + b"\1" + u("a") + O.BINGET + b"\0" + O.SETITEM + O.SETITEM + u("w") + tensor() + O.SETITEM + O.STOP, hazards=["recursion", "hang"], condition="as cycle-list; tensor w is still listed")
    D("cycle-tuple", "a tuple that contains itself through a list", "conditional", "PKL_CYCLE", PR2 + O.EMPTY_LIST + O.BINPUT + b"\0" + O.BINGET + b"\0" + O.TUPLE1 + O.BINPUT + b"\1" + O.APPEND + O.POP + O.BINGET + b"\1" + O.STOP,
      hazards=["recursion", "hang"], condition="as cycle-list")
    D("cycle-state", "BUILD state of an object contains the object", "conditional", "PKL_CYCLE", PR2 + ODICT + O.BINPUT + b"\0" + O.EMPTY_DICT + u("_metadata") + O.BINGET + b"\0" + O.SETITEM + O.BUILD + O.STOP, hazards=["recursion", "hang"], condition="as cycle-list")
    lv = lambda n, op: b"".join(O.BINGET + bytes([i]) + O.BINGET + bytes([i]) + op + O.BINPUT + bytes([i + 1]) + O.POP for i in range(n))  # noqa: E731
    D("shared-tuples-60", "60 levels of tuples, each contains the previous twice (2**60 leaves)", "conditional", "PKL_SHARED", PR2 + O.EMPTY_TUPLE + O.BINPUT + b"\0" + O.POP + lv(60, O.TUPLE2) + O.BINGET + bytes([60]) + O.STOP,
      hazards=["hang", "memory"], condition="legal; visit every object once, or refuse")
    ll = b"".join(O.EMPTY_LIST + O.MARK + O.BINGET + bytes([i]) + O.BINGET + bytes([i]) + O.APPENDS + O.BINPUT + bytes([i + 1]) + O.POP for i in range(60))
    D("shared-lists-60", "60 levels of lists, each contains the previous twice (2**60 leaves)", "conditional", "PKL_SHARED", PR2 + O.EMPTY_LIST + O.BINPUT + b"\0" + O.POP + ll + O.BINGET + bytes([60]) + O.STOP, hazards=["hang", "memory"], condition="as shared-tuples-60")
    ld = b"".join(O.EMPTY_DICT + O.MARK + u("a") + O.BINGET + bytes([i]) + u("b") + O.BINGET + bytes([i]) + O.SETITEMS + O.BINPUT + bytes([i + 1]) + O.POP for i in range(60))
    D("shared-dicts-60", "60 levels of dicts with a tensor at the bottom (2**60 names for one tensor)", "conditional", "PKL_SHARED", PR2 + tensor() + O.BINPUT + b"\0" + O.POP + ld + O.BINGET + bytes([60]) + O.STOP, hazards=["hang", "memory"], condition="as shared-tuples-60")
    D("shared-key-60", "the 60-level tuple as a dict key (hash takes 2**60 steps)", "conditional", "PKL_SHARED", PR2 + O.EMPTY_TUPLE + O.BINPUT + b"\0" + O.POP + lv(60, O.TUPLE2) + O.EMPTY_DICT + O.BINGET + bytes([60]) + num(1) + O.SETITEM + O.STOP, hazards=["hang"], condition="as shared-tuples-60", also_ok=["PKL_KEY"])
    D("shared-args-60", "the 60-level tuple as REDUCE arguments of a foreign global", "accept", "PKL_FOREIGN_GLOBAL", PR2 + O.EMPTY_TUPLE + O.BINPUT + b"\0" + O.POP + lv(60, O.TUPLE2) + glob("builtins", "len") + O.BINGET + bytes([60]) + O.REDUCE + O.STOP,
      severity="warning", hazards=["hang", "exec"], facts={"foreign": ["builtins.len"]}, also_ok=["PKL_SHARED"])
    D("big-string-shared", "one 16 KiB string in a list 20,000 times through the memo (330 MB when copied)", "accept", None, PR2 + O.EMPTY_LIST + u("s" * 16384) + O.BINPUT + b"\0" + O.APPEND + O.MARK + (O.BINGET + b"\0") * 20_000 + O.APPENDS + O.STOP, hazards=["memory"], also_ok=["PKL_LIMIT"])
    D("appends-1m", "1,000,000 elements in one APPENDS", "conditional", "PKL_LIMIT", PR2 + O.EMPTY_LIST + O.MARK + O.NONE * 1_000_000 + O.APPENDS + O.STOP, hazards=["memory", "cpu"], condition="legal; a limit may apply", facts={"length": 1_000_000})
    D("append-single-30k", "30,000 single APPENDs", "conditional", "PKL_LIMIT", PR2 + O.EMPTY_LIST + (O.NONE + O.APPEND) * 30_000 + O.STOP, hazards=["cpu"], condition="legal; a limit may apply", facts={"length": 30_000})
    D("tensors-500", "a state dict of 500 tensors", "accept", None, state(*[(f"layers.{i}.w", tensor()) for i in range(500)]), facts={"tensors": 500}, hazards=["cpu"])

    # -- containers
    D("key-list", "a list as dict key", "reject", "PKL_KEY", PR2 + O.EMPTY_DICT + O.EMPTY_LIST + num(1) + O.SETITEM + O.STOP, hazards=["crash"])
    D("key-dict", "a dict as dict key, by SETITEMS", "reject", "PKL_KEY", PR2 + O.EMPTY_DICT + O.MARK + O.EMPTY_DICT + num(1) + O.SETITEMS + O.STOP, hazards=["crash"])
    D("key-tuple-list", "a tuple that holds a list as dict key", "reject", "PKL_KEY", PR2 + O.EMPTY_DICT + O.EMPTY_LIST + O.TUPLE1 + num(1) + O.SETITEM + O.STOP, hazards=["crash"])
    D("key-set-element", "a list as set element", "reject", "PKL_KEY", PR4 + O.EMPTY_SET + O.MARK + O.EMPTY_LIST + O.ADDITEMS + O.STOP, hazards=["crash"])
    D("key-tensor", "a tensor as dict key", "conditional", "PKL_KEY", PR2 + O.EMPTY_DICT + tensor() + num(1) + O.SETITEM + O.STOP, condition="hashable in torch, by identity", hazards=["crash"])
    D("key-foreign", "the result of a foreign call as dict key", "conditional", "PKL_KEY", PR2 + O.EMPTY_DICT + glob("builtins", "str") + tup(u("k")) + O.REDUCE + tensor() + O.SETITEM + O.STOP, condition="the key is unknown without running the call", also_ok=["PKL_FOREIGN_GLOBAL"], hazards=["exec", "crash"])
    D("key-types", "keys: int, negative, None, bool, float, nan, bytes, tuple", "conditional", "PKL_KEY",
      PR4 + O.EMPTY_DICT + O.MARK + b"".join(k + num(i) for i, k in enumerate([num(1), num(-1), O.NONE, O.NEWTRUE, obj(0.5), obj(float("nan")), O.SHORT_BINBYTES + b"\1k", tup(num(1), u("a"))])) + O.SETITEMS + O.STOP, condition="legal; names need a text form (note 1 == True)", also_ok=["PKL_DUPLICATE_KEY", "PKL_NUMBER"])
    D("key-duplicate", "the same key twice with different tensors", "conditional", "PKL_DUPLICATE_KEY", state(("w", tensor()), ("w", tensor(size=(4,), stride=(1,)))), condition="the last one counts")
    D("key-equal-numbers", "keys 1, 1.0 and True", "conditional", "PKL_DUPLICATE_KEY", PR2 + O.EMPTY_DICT + O.MARK + num(1) + u("a") + obj(1.0) + u("b") + O.NEWTRUE + u("c") + O.SETITEMS + O.STOP, condition="one key in Python", also_ok=["PKL_KEY"])
    D("key-ansi", "a tensor key with escape sequences, newline and bidi", "accept", "NAME_CONTROL", state(("w\x1b[2J\n\u202ex", tensor())), hazards=["terminal"], facts={"tensors": 1})
    D("key-surrogate", "a tensor key with a lone surrogate (pickle allows it: surrogatepass)", "accept", "PKL_STRING", state(("w\ud800", tensor())), hazards=["crash", "terminal"], facts={"tensors": 1})
    D("key-empty-and-dots", "keys '', '.', 'a', 'a.b' with nesting that collides after joining", "accept", "NAME_CONFUSABLE", PR2 + O.EMPTY_DICT + O.MARK + u("") + tensor() + u(".") + tensor() + u("a.b") + tensor() + u("a") + O.EMPTY_DICT + u("b") + tensor() + O.SETITEM + O.SETITEMS + O.STOP, hazards=["crash"], facts={"tensors": 4})
    D("target-append-none", "APPEND to None", "reject", "PKL_TARGET", PR2 + O.NONE + O.NONE + O.APPEND + O.STOP, hazards=["crash"])
    D("target-appends-tuple", "APPENDS to a tuple", "reject", "PKL_TARGET", PR2 + O.EMPTY_TUPLE + O.MARK + O.NONE + O.APPENDS + O.STOP, hazards=["crash"])
    D("target-setitem-none", "SETITEM on None", "reject", "PKL_TARGET", PR2 + O.NONE + u("a") + num(1) + O.SETITEM + O.STOP, hazards=["crash"])
    D("target-setitem-list", "SETITEM on a list with an int index", "conditional", "PKL_TARGET", PR2 + O.EMPTY_LIST + num(5) + O.APPEND + num(0) + num(1) + O.SETITEM + O.STOP, condition="unpicklers do it (obj[k] = v)", hazards=["crash"], also_ok=["PKL_KEY"])
    D("target-setitems-tensor", "SETITEMS on a tensor", "conditional", "PKL_TARGET", PR2 + tensor() + O.MARK + num(0) + num(1) + O.SETITEMS + O.STOP, condition="unpicklers would write into the tensor", hazards=["crash"], also_ok=["PKL_KEY"])
    D("target-additems-list", "ADDITEMS on a list", "reject", "PKL_TARGET", PR4 + O.EMPTY_LIST + O.MARK + O.NONE + O.ADDITEMS + O.STOP, hazards=["crash"])
    D("target-append-odict", "APPEND to an OrderedDict", "reject", "PKL_TARGET", PR2 + ODICT + O.NONE + O.APPEND + O.STOP, hazards=["crash"])

    # -- protocol 0 text arguments
    for slug, body, what, exp in [
        ("int-underscore", b"I1_000\n", "INT 1_000 (int() of Python takes it)", "conditional"), ("int-spaces", b"I 12 \n", "INT with spaces", "conditional"), ("int-hex", b"I0x10\n", "INT 0x10", "conditional"),
        ("int-plus", b"I+7\n", "INT +7", "conditional"), ("int-empty", b"I\n", "INT with an empty line", "reject"), ("int-text", b"Iabc\n", "INT abc", "reject"), ("int-5000-digits", b"I" + b"9" * 5000 + b"\n", "INT of 5,000 digits", "reject"),
        ("int-unicode-digits", "I\u0661\u0662\n".encode(), "INT in Arabic-Indic digits", "reject"), ("int-cr", b"I12\r\n", "INT line with CR LF", "conditional"), ("bool-001", b"I001\n", "INT 001 (not a bool)", "conditional"),
        ("long-no-suffix", b"L12\n", "LONG without L", "conditional"), ("long-underscore", b"L1_0L\n", "LONG 1_0L", "conditional"), ("long-5000-digits", b"L" + b"9" * 5000 + b"L\n", "LONG of 5,000 digits", "reject"), ("long-only-suffix", b"LL\n", "LONG of just L", "reject"),
        ("float-underscore", b"F1_0.5\n", "FLOAT 1_0.5", "conditional"), ("float-empty", b"F\n", "FLOAT with an empty line", "reject"), ("float-hex", b"F0x1p3\n", "FLOAT 0x1p3", "reject"), ("float-text", b"Fabc\n", "FLOAT abc", "reject"),
        ("string-no-quotes", b"Sabc\n", "STRING without quotes", "reject"), ("string-mismatch", b"S'abc\"\n", "STRING with mismatched quotes", "reject"), ("string-one-quote", b"S'\n", "STRING of a single quote", "reject"), ("string-bad-escape", b"S'\\xzz'\n", "STRING with a bad escape", "reject"),
        ("string-inner-quote", b"S'a'b'\n", "STRING with an inner quote", "conditional"),
    ]:
        D("text-" + slug, what, exp, "PKL_TEXT_ARG", body + O.STOP, condition="unpicklers take it, pickletools or a strict reader may not" if exp == "conditional" else None, hazards=["crash"], also_ok=["PKL_NUMBER", "PKL_STRING"])
    D("float-1e400", "FLOAT 1e400", "conditional", "PKL_NUMBER", b"F1e400\n" + O.STOP, condition="inf for the Python unpickler, OverflowError for the C one", hazards=["crash"], also_ok=["PKL_TEXT_ARG"])
    for slug, body, what in [("nan", b"Fnan\n", "FLOAT nan"), ("inf", b"F-inf\n", "FLOAT -inf")]:
        D("float-" + slug, what, "accept", "PKL_NUMBER", body + O.STOP, hazards=["crash"])
    D("binfloat-nonfinite", "BINFLOAT nan, inf, -inf, -0.0 and a signalling nan", "accept", "PKL_NUMBER", PR2 + O.EMPTY_LIST + O.MARK + b"".join(O.BINFLOAT + bytes.fromhex(h) for h in ("7ff8000000000000", "7ff0000000000000", "fff0000000000000", "8000000000000000", "7ff0000000000001")) + O.APPENDS + O.STOP, hazards=["crash"])
    D("long1-255", "LONG1 integer of 255 bytes", "accept", "PKL_NUMBER", PR2 + O.LONG1 + b"\xff" + b"\x7f" * 255 + O.STOP, facts={"bits": 2039})
    D("long4-20k", "LONG4 integer of 20,000 bytes (str() of Python 3.11+ raises)", "accept", "PKL_NUMBER", PR2 + O.LONG4 + struct.pack("<i", 20_000) + b"\x7f" * 20_000 + O.STOP, hazards=["crash", "cpu"], also_ok=["PKL_LIMIT"])
    D("long1-zero", "LONG1 of 0 bytes is 0", "accept", None, PR2 + O.LONG1 + b"\0" + O.STOP, facts={"value": 0})

    # -- strings
    D("utf8-invalid", "BINUNICODE with byte FF", "reject", "PKL_STRING", PR2 + u(b"w\xff") + O.STOP, hazards=["crash"])
    D("utf8-cut", "BINUNICODE ends within a character", "reject", "PKL_STRING", PR2 + u(b"w\xe2\x82") + O.STOP, hazards=["crash"])
    D("utf8-overlong", "BINUNICODE with overlong C0 80", "reject", "PKL_STRING", PR2 + u(b"w\xc0\x80") + O.STOP, hazards=["crash"])
    D("utf8-surrogate", "BINUNICODE with ED A0 80 (accepted: surrogatepass)", "accept", "PKL_STRING", PR2 + u(b"w\xed\xa0\x80") + O.STOP, hazards=["crash", "terminal"])
    D("unicode-surrogate-text", "protocol 0 UNICODE \\ud800", "accept", "PKL_STRING", b"V\\ud800\n.", hazards=["crash", "terminal"])
    D("unicode-bad-escape", "protocol 0 UNICODE with \\u12", "reject", "PKL_STRING", b"V\\u12\n.", hazards=["crash"], also_ok=["PKL_TEXT_ARG"])
    D("unicode-out-of-range", "protocol 0 UNICODE with \\U00110000", "reject", "PKL_STRING", b"V\\U00110000\n.", hazards=["crash"], also_ok=["PKL_TEXT_ARG"])
    D("binstring-latin1", "Python 2 BINSTRING with high bytes as state-dict key", "conditional", "PKL_STRING", PR2 + O.EMPTY_DICT + O.SHORT_BINSTRING + b"\x03w\xe9\xff" + tensor() + O.SETITEM + O.STOP, condition="needs an encoding; ASCII by default in pickle, utf-8 in torch", hazards=["crash"])

    # -- protocol 5, EXT, persistent ids
    D("next-buffer", "NEXT_BUFFER, no buffers given", "reject", "PKL_BUFFER", PR5 + O.NEXT_BUFFER + O.STOP, hazards=["crash"])
    D("next-buffer-readonly", "NEXT_BUFFER and READONLY_BUFFER", "reject", "PKL_BUFFER", PR5 + O.NEXT_BUFFER + O.READONLY_BUFFER + O.STOP, hazards=["crash"])
    D("readonly-none", "READONLY_BUFFER on None", "reject", "PKL_BUFFER", PR5 + O.NONE + O.READONLY_BUFFER + O.STOP, also_ok=["PKL_TARGET"], hazards=["crash"])
    for slug, body, what in [("ext1", O.EXT1 + b"\x05", "EXT1 5"), ("ext1-zero", O.EXT1 + b"\0", "EXT1 0"), ("ext2", O.EXT2 + b"\xff\xff", "EXT2 65535"), ("ext4", O.EXT4 + b"\xff\xff\xff\x7f", "EXT4 2**31-1"), ("ext4-negative", O.EXT4 + b"\xff" * 4, "EXT4 -1")]:
        D(slug, f"{what}: extension registry code, not registered", "reject", "PKL_EXT", PR2 + body + O.STOP, hazards=["exec"], also_ok=["PKL_FOREIGN_GLOBAL"])
    D("ext1-reduce", "EXT1 5 applied with REDUCE", "reject", "PKL_EXT", PR2 + O.EXT1 + b"\x05" + O.EMPTY_TUPLE + O.REDUCE + O.STOP, hazards=["exec"], also_ok=["PKL_FOREIGN_GLOBAL"])
    for slug, body, what in [
        ("text", O.PERSID + b"storage-0\n", "PERSID with a text line"), ("text-nonascii", O.PERSID + b"\xff\n", "PERSID with a non-ASCII line"), ("int", num(7) + O.BINPERSID, "BINPERSID with an int"), ("none", O.NONE + O.BINPERSID, "BINPERSID with None"),
        ("short", tup(u("storage")) + O.BINPERSID, "tuple of one"), ("kind", pers(kind="module"), "kind is module"), ("kind-type", pers(kind=1), "kind is an int"), ("key-int", pers(key=0), "key is an int"), ("key-none", pers(key=None), "key is None"),
        ("key-path", pers(key="../../x"), "key is a path"), ("key-ansi", pers(key="\x1b[2J"), "key has escape sequences"), ("numel-negative", pers(numel=-4), "numel -4"), ("numel-huge", pers(numel=1 << 62), "numel 2**62"), ("numel-2-80", pers(numel=1 << 80), "numel 2**80"), ("numel-string", pers(numel="4"), "numel is text"),
        ("numel-float", pers(numel=4.0), "numel is a float"), ("numel-bool", pers(numel=True), "numel is a bool"), ("location", pers(location="cuda:99"), "location cuda:99"), ("location-type", pers(location=5), "location is an int"), ("type-string", pers(storage=u("FloatStorage")), "storage type is text"),
        ("type-unknown", pers(storage=glob("torch", "Float3Storage")), "unknown storage type"), ("type-foreign", pers(storage=glob("builtins", "print")), "storage type is a foreign global"), ("extra", tup(u("storage"), glob("torch", "FloatStorage"), u("0"), u("cpu"), num(4), num(9), num(9)) + O.BINPERSID, "tuple of seven"),
    ]:
        soft = slug in ("location", "location-type", "key-ansi", "key-path", "type-unknown", "extra", "key-int", "numel-huge", "numel-bool", "kind")
        D("persid-" + slug, f"persistent id: {what}", "conditional" if soft else "reject", "PKL_PERSID", (b"" if slug.startswith("text") else PR2) + (body if slug.startswith("text") else O.EMPTY_DICT + u("w") + tensor(body) + O.SETITEM) + O.STOP,
          condition="the structure is readable; the storage may not be found" if soft else None, hazards=["path-escape"] if slug == "key-path" else ["terminal"] if slug == "key-ansi" else ["exec"] if slug == "type-foreign" else ["crash"],
          also_ok=["PT_STORAGE_MISSING", "PT_STORAGE_SIZE", "PKL_TENSOR_ARGS"] + (["PKL_FOREIGN_GLOBAL"] if slug in ("type-foreign", "type-unknown") else []))
    D("persid-two-dtypes", "one storage key with two storage types and sizes", "conditional", "PKL_PERSID", state(("a", tensor()), ("b", tensor(storage=glob("torch", "HalfStorage"), numel=8))), condition="torch takes the first; report the conflict")

    # -- globals.  All foreign names are harmless, none is ever called.
    F = dict(severity="warning", hazards=["exec"])
    pr = tup(u("foreign call"))
    for slug, body, what in [
        ("reduce", glob("builtins", "print") + pr + O.REDUCE, "GLOBAL and REDUCE"),
        ("stack-global", su("builtins") + su("print") + O.STACK_GLOBAL + pr + O.REDUCE, "STACK_GLOBAL and REDUCE"),
        ("inst", O.MARK + u("foreign call") + O.INST + b"builtins\nprint\n", "INST"),
        ("obj", O.MARK + glob("builtins", "print") + u("foreign call") + O.OBJ, "OBJ"),
        ("newobj", glob("builtins", "print") + pr + O.NEWOBJ, "NEWOBJ"),
        ("newobj-ex", glob("builtins", "print") + pr + O.EMPTY_DICT + O.NEWOBJ_EX, "NEWOBJ_EX"),
        ("no-call", glob("builtins", "print"), "named, not called"),
        ("py2-name", glob("__builtin__", "print") + pr + O.REDUCE, "Python 2 module name __builtin__"),
        ("memo-name", su("builtins") + O.MEMOIZE + O.POP + su("print") + O.MEMOIZE + O.POP + O.BINGET + b"\0" + O.BINGET + b"\1" + O.STACK_GLOBAL + pr + O.REDUCE, "STACK_GLOBAL with names fetched from the memo"),
        ("dup-name", su("print") + O.MEMOIZE + O.POP + su("builtins") + O.DUP + O.POP + O.BINGET + b"\0" + O.STACK_GLOBAL + pr + O.REDUCE, "STACK_GLOBAL after DUP and POP"),
        ("popped", glob("builtins", "print") + pr + O.REDUCE + O.POP + O.NONE, "called and thrown away by POP"),
        ("pop-mark", O.MARK + glob("builtins", "print") + pr + O.REDUCE + O.POP_MARK + O.NONE, "called and thrown away by POP_MARK"),
        ("memo-only", glob("builtins", "print") + O.BINPUT + b"\x09" + O.POP + O.BINGET + b"\x09" + pr + O.REDUCE, "callable kept in the memo only"),
        ("overwritten", O.EMPTY_DICT + u("w") + glob("builtins", "print") + pr + O.REDUCE + O.SETITEM + u("w") + O.NONE + O.SETITEM, "called, value then overwritten in the dict"),
    ]:
        D("foreign-" + slug, f"builtins.print by {what}", "accept", "PKL_FOREIGN_GLOBAL", PR4 + body + O.STOP, facts={"foreign": ["__builtin__.print" if slug == "py2-name" else "builtins.print"]},
          also_ok=["PKL_DUPLICATE_KEY"] if slug == "overwritten" else (), **F)
    D("foreign-in-state-dict", "a state dict with a tensor and a foreign object", "accept", "PKL_FOREIGN_GLOBAL", state(("w", tensor()), ("cfg", glob("argparse", "Namespace") + O.EMPTY_TUPLE + O.NEWOBJ + O.EMPTY_DICT + u("lr") + obj(0.1) + O.SETITEM + O.BUILD)),
      facts={"tensors": ["w"], "foreign": ["argparse.Namespace"]}, **F)
    D("foreign-dotted", "torch, name _utils.sys.version: attributes that lead out of torch", "accept", "PKL_FOREIGN_GLOBAL", PR4 + su("torch") + su("_utils.sys.version") + O.STACK_GLOBAL + O.STOP, facts={"foreign": ["torch._utils.sys.version"]}, **F)
    D("foreign-torch-prefix", "module torchx (only the prefix is torch)", "accept", "PKL_FOREIGN_GLOBAL", PR2 + glob("torchx", "FloatStorage") + O.EMPTY_TUPLE + O.REDUCE + O.STOP, facts={"foreign": ["torchx.FloatStorage"]}, **F)
    D("foreign-torch-unknown", "a torch name that is not on the known list", "accept", "PKL_FOREIGN_GLOBAL", PR2 + glob("torch.hub", "list") + O.EMPTY_TUPLE + O.REDUCE + O.STOP, facts={"foreign": ["torch.hub.list"]}, **F)
    D("foreign-homoglyph", "module name with Cyrillic letters", "accept", "PKL_FOREIGN_GLOBAL", PR4 + su("t\u043erch") + su("FloatStorage") + O.STACK_GLOBAL + O.STOP, facts={"foreign": ["t\u043erch.FloatStorage"]}, also_ok=["PKL_GLOBAL_NAME"], **F)
    D("foreign-5000", "5,000 different foreign globals (bounded report)", "accept", "PKL_FOREIGN_GLOBAL", PR2 + b"".join(glob("m", f"f{i}") + O.POP for i in range(5000)) + O.NONE + O.STOP, facts={"foreign_count": 5000}, severity="warning", hazards=["exec", "memory", "terminal"])
    D("foreign-chain", "the callable is the result of a foreign call", "accept", "PKL_FOREIGN_GLOBAL", PR2 + glob("functools", "partial") + tup(glob("builtins", "print"), u("x")) + O.REDUCE + O.EMPTY_TUPLE + O.REDUCE + O.STOP, facts={"foreign": ["builtins.print", "functools.partial"]}, **F)
    D("foreign-getattr", "builtins.getattr of a known object", "accept", "PKL_FOREIGN_GLOBAL", PR2 + glob("builtins", "getattr") + tup(ODICT, u("keys")) + O.REDUCE + O.STOP, facts={"foreign": ["builtins.getattr"]}, **F)
    D("foreign-build-setstate", "BUILD with a state on a foreign object", "accept", "PKL_FOREIGN_GLOBAL", PR2 + glob("types", "SimpleNamespace") + O.EMPTY_TUPLE + O.REDUCE + O.EMPTY_DICT + u("a") + num(1) + O.SETITEM + O.BUILD + O.STOP, facts={"foreign": ["types.SimpleNamespace"]}, **F)
    D("foreign-numpy", "numpy scalar and array rebuilds (usual in checkpoints)", "accept", "PKL_FOREIGN_GLOBAL",
      PR2 + glob("numpy.core.multiarray", "scalar") + tup(glob("numpy", "dtype") + tup(u("f8"), O.NEWFALSE, O.NEWTRUE) + O.REDUCE, O.SHORT_BINSTRING + b"\x08" + bytes(8)) + O.REDUCE + O.STOP, facts={"foreign": ["numpy.core.multiarray.scalar", "numpy.dtype"]}, **F)
    D("nested-load-from-bytes", "torch.storage._load_from_bytes with bytes of another pickle", "accept", "PKL_NESTED_PICKLE", PR4 + glob("torch.storage", "_load_from_bytes") + tup(O.SHORT_BINBYTES + bytes([len(PR2 + O.NONE + O.STOP)]) + PR2 + O.NONE + O.STOP) + O.REDUCE + O.STOP,
      severity="warning", hazards=["exec"], facts={"globals": ["torch.storage._load_from_bytes"]}, also_ok=["PKL_FOREIGN_GLOBAL"])
    D("nested-pickle-loads", "pickle.loads with bytes of another pickle", "accept", "PKL_FOREIGN_GLOBAL", PR4 + glob("pickle", "loads") + tup(O.SHORT_BINBYTES + bytes([len(PR2 + O.NONE + O.STOP)]) + PR2 + O.NONE + O.STOP) + O.REDUCE + O.STOP, facts={"foreign": ["pickle.loads"]}, also_ok=["PKL_NESTED_PICKLE"], **F)
    for slug, body, what, exp in [
        ("int", num(1) + su("x") + O.STACK_GLOBAL, "STACK_GLOBAL with an int as module", "reject"), ("none", su("torch") + O.NONE + O.STACK_GLOBAL, "STACK_GLOBAL with None as name", "reject"), ("list", O.EMPTY_LIST + O.EMPTY_LIST + O.STACK_GLOBAL, "STACK_GLOBAL with lists", "reject"),
        ("bytes", O.SHORT_BINBYTES + b"\x05torch" + su("x") + O.STACK_GLOBAL, "STACK_GLOBAL with bytes as module", "reject"), ("computed", ODICT + su("x") + O.STACK_GLOBAL, "STACK_GLOBAL with a computed object as module", "reject"),
        ("newline", su("torch\nx") + su("Float\nStorage") + O.STACK_GLOBAL, "STACK_GLOBAL parts with newlines", "conditional"), ("ansi", su("torch\x1b[2J") + su("x\x07") + O.STACK_GLOBAL, "STACK_GLOBAL parts with escape sequences", "conditional"),
        ("empty", glob("", ""), "GLOBAL with empty lines", "conditional"), ("empty-name", glob("torch", ""), "GLOBAL with an empty name", "conditional"), ("dots", glob("..", "."), "GLOBAL with dots only", "conditional"), ("spaces", glob("torch ", " FloatStorage"), "GLOBAL with spaces", "conditional"),
        ("cr", glob("torch\r", "FloatStorage\r"), "GLOBAL lines with CR LF", "conditional"), ("nonascii", glob("m\u00f3dulo", "n\u00e4me"), "GLOBAL with UTF-8 names", "conditional"), ("not-utf8", glob(b"torch\xff", b"x\xfe"), "GLOBAL with bytes that are not UTF-8", "reject"), ("nul", glob(b"torch\0", b"x"), "GLOBAL with NUL", "conditional"),
        ("long", glob("m" * 40_000, "n"), "GLOBAL with a module name of 40,000 characters", "conditional"), ("bidi", glob("torch", "\u202eegarotS"), "GLOBAL with a right-to-left override", "conditional"), ("path", glob("../../x", "/etc/passwd"), "GLOBAL with path-like names", "conditional"),
    ]:
        D("global-" + slug, what, exp, "PKL_GLOBAL_NAME", PR4 + body + O.STOP, condition="refuse, or report as foreign, escaped and shortened" if exp == "conditional" else None, hazards=["exec", "terminal", "crash"], also_ok=["PKL_FOREIGN_GLOBAL", "PKL_TARGET"])

    # -- REDUCE, NEWOBJ, BUILD on odd things
    D("reduce-string", "REDUCE of a string", "reject", "PKL_TARGET", PR2 + u("print") + O.EMPTY_TUPLE + O.REDUCE + O.STOP, hazards=["crash"])
    D("reduce-none", "REDUCE of None", "reject", "PKL_TARGET", PR2 + O.NONE + O.EMPTY_TUPLE + O.REDUCE + O.STOP, hazards=["crash"])
    D("reduce-args-list", "REDUCE with a list as arguments", "conditional", "PKL_TARGET", PR2 + glob("collections", "OrderedDict") + O.EMPTY_LIST + O.REDUCE + O.STOP, condition="CPython's C unpickler refuses, the Python one takes any iterable", hazards=["crash"])
    D("reduce-args-none", "REDUCE with None as arguments", "reject", "PKL_TARGET", PR2 + glob("collections", "OrderedDict") + O.NONE + O.REDUCE + O.STOP, hazards=["crash"])
    D("reduce-args-int", "REDUCE with an int as arguments", "reject", "PKL_TARGET", PR2 + glob("collections", "OrderedDict") + num(3) + O.REDUCE + O.STOP, hazards=["crash"])
    D("newobj-string", "NEWOBJ of a string", "reject", "PKL_TARGET", PR2 + u("cls") + O.EMPTY_TUPLE + O.NEWOBJ + O.STOP, hazards=["crash"])
    D("newobj-ex-kwargs", "NEWOBJ_EX with a list as keyword arguments", "reject", "PKL_TARGET", PR4 + glob("collections", "OrderedDict") + O.EMPTY_TUPLE + O.EMPTY_LIST + O.NEWOBJ_EX + O.STOP, hazards=["crash"])
    for slug, target in [("none", O.NONE), ("int", num(1)), ("list", O.EMPTY_LIST), ("string", u("x")), ("global", glob("torch", "FloatStorage"))]:
        D("build-" + slug, f"BUILD on a {slug}", "reject", "PKL_TARGET", PR2 + target + O.EMPTY_DICT + u("a") + num(1) + O.SETITEM + O.BUILD + O.STOP, hazards=["crash"])
    D("build-none-state", "BUILD with None as state", "conditional", "PKL_TARGET", PR2 + ODICT + O.NONE + O.BUILD + O.STOP, condition="unpicklers ignore an empty state", hazards=["crash"])
    D("build-int-state", "BUILD with an int as state", "reject", "PKL_TARGET", PR2 + ODICT + num(5) + O.BUILD + O.STOP, hazards=["crash"])
    D("build-slots", "BUILD with a (dict, slots) pair", "accept", None, PR2 + ODICT + tup(O.NONE, O.EMPTY_DICT + u("_metadata") + O.NONE + O.SETITEM) + O.BUILD + O.STOP, also_ok=["PKL_TARGET"])
    D("build-metadata", "OrderedDict state with _metadata (usual in torch)", "accept", None, PR2 + ODICT + O.EMPTY_DICT + u("_metadata") + ODICT + O.SETITEM + O.BUILD + O.STOP)
    D("build-dunder", "BUILD state that sets __class__ and __dict__", "conditional", "PKL_TARGET", PR2 + ODICT + O.EMPTY_DICT + O.MARK + u("__class__") + glob("builtins", "print") + u("__dict__") + O.NONE + O.SETITEMS + O.BUILD + O.STOP, condition="must stay plain data in a structural reader", hazards=["exec", "crash"], also_ok=["PKL_FOREIGN_GLOBAL"])
    D("build-int-keys", "BUILD state with int keys", "conditional", "PKL_TARGET", PR2 + ODICT + O.EMPTY_DICT + num(1) + num(2) + O.SETITEM + O.BUILD + O.STOP, condition="unpicklers store it in __dict__; no usable attribute", hazards=["crash"], also_ok=["PKL_KEY"])
    D("build-20k", "BUILD 20,000 times on one object", "conditional", "PKL_LIMIT", PR2 + ODICT + (O.EMPTY_DICT + O.BUILD) * 20_000 + O.STOP, condition="legal; a limit may apply", hazards=["cpu"])

    # -- tensor rebuilds
    T = lambda **kw: state(("w", tensor(**kw)))  # noqa: E731
    for slug, data, what, exp in [
        ("no-args", state(("w", glob("torch._utils", "_rebuild_tensor_v2") + O.EMPTY_TUPLE + O.REDUCE)), "no arguments", "reject"), ("few-args", state(("w", glob("torch._utils", "_rebuild_tensor_v2") + tup(pers(), num(0)) + O.REDUCE)), "two arguments", "reject"),
        ("many-args", T(more=(1, 2, 3, 4)), "ten arguments", "reject"), ("offset-negative", T(offset=-1), "offset -1", "reject"), ("offset-huge", T(offset=1 << 62), "offset 2**62", "reject"), ("offset-string", T(offset="0"), "offset is text", "reject"),
        ("size-negative", T(size=(-2, -2)), "negative sizes", "reject"), ("size-string", T(size=("2", "2")), "sizes are text", "reject"), ("size-int", T(size=4), "size is an int", "reject"), ("size-list", T(size=[2, 2]), "size is a list", "conditional"), ("size-float", T(size=(2.0, 2.0)), "sizes are floats", "reject"),
        ("size-bool", T(size=(True, True), stride=(1, 1)), "sizes are bools", "conditional"), ("rank-mismatch", T(size=(2, 2), stride=(1,)), "size and stride differ in length", "reject"), ("stride-negative", T(stride=(-2, 1)), "negative stride", "reject"), ("stride-none", T(stride=None), "stride is None", "reject"),
        ("overflow", T(size=(1 << 40, 1 << 40), stride=(1, 1)), "2**80 elements", "reject"), ("past-storage", T(size=(3, 3), stride=(3, 1)), "needs 9 elements of a 4-element storage", "reject"), ("past-storage-stride", T(size=(2, 2), stride=(1 << 40, 1)), "stride 2**40 over a 4-element storage", "reject"),
        ("expanded", T(size=(1 << 40,), stride=(0,)), "expanded: 2**40 elements with stride 0 (valid view of 4 elements)", "conditional"), ("overlapping-view", T(size=(3, 2), stride=(1, 1)), "overlapping view", "conditional"), ("transposed", T(stride=(1, 2)), "transposed view", "accept"),
        ("rank-1000", T(size=(1,) * 1000, stride=(1,) * 1000), "1,000 dimensions", "conditional"), ("zero-size", T(size=(0, 1 << 62), stride=(1, 1)), "no elements, huge second size", "conditional"), ("store-none", T(store=O.NONE), "storage is None", "reject"), ("store-int", T(store=num(1)), "storage is an int", "reject"),
        ("store-foreign", T(store=glob("builtins", "print") + O.EMPTY_TUPLE + O.REDUCE), "storage is the result of a foreign call", "conditional"), ("parameter", state(("w", glob("torch._utils", "_rebuild_parameter") + tup(tensor(), O.NEWTRUE, ODICT) + O.REDUCE)), "a proper _rebuild_parameter", "accept"),
        ("parameter-nested", state(("w", glob("torch._utils", "_rebuild_parameter") + tup(glob("torch._utils", "_rebuild_parameter") + tup(tensor(), O.NEWTRUE, ODICT) + O.REDUCE, O.NEWTRUE, ODICT) + O.REDUCE)), "a parameter of a parameter", "conditional"),
        ("parameter-of-none", state(("w", glob("torch._utils", "_rebuild_parameter") + tup(O.NONE, O.NEWTRUE, ODICT) + O.REDUCE)), "_rebuild_parameter of None", "reject"), ("v1", T(func="_rebuild_tensor", hooks=None), "_rebuild_tensor with five arguments (v1 takes four)", "conditional"),
        ("unknown-func", T(func="_rebuild_tensor_v99"), "an unknown rebuild function", "conditional"), ("meta-dict", T(more=((1,),)), "v2 with a metadata argument that is not a dict", "conditional"),
    ]:
        D("tensor-" + slug, f"tensor rebuild: {what}", exp, None if exp == "accept" else "PKL_TENSOR_ARGS", data, condition="legal or readable in part; report, allocate nothing" if exp == "conditional" else None,
          hazards=["memory", "crash"] if exp != "accept" else (), also_ok=() if exp == "accept" else ["PT_STORAGE_SIZE", "PKL_FOREIGN_GLOBAL", "PKL_TARGET"])


# ------------------------------------------------------------------------------------------------
# E. file system entries
# ------------------------------------------------------------------------------------------------

GOOD = "good.safetensors"


class Refused(Exception):
    """This platform cannot hold the case."""


def group_e(c: Corpus) -> None:
    """Every case is a folder to scan.  Unless the description says otherwise it also holds
    good.safetensors (one tensor), which must be reported whatever happens to the odd entry."""
    good = st(OK, D8)
    gdir = GROUP_DIRS["E"]
    outside = c.out / gdir / "_outside"  # link targets outside the scanned folders
    outside.mkdir()
    write_file(outside / "secret.safetensors", shard("outside"))
    (outside / "folder").mkdir()
    write_file(outside / "folder" / "x.safetensors", shard("outside.x"))

    def E(slug, description, expected, code, make=None, *, entry=None, keep_good=True, path=None, facts=None,
          subject=None, kind="dir", **kw):
        rel = f"{gdir}/{slug}"
        base = c.out / rel
        base.mkdir()
        if keep_good:
            write_file(base / GOOD, good)
        skipped = None
        try:
            if make:
                make(base, os.fsencode(base))
        except Refused as e:
            skipped = f"platform: {e}"
        except OSError as e:
            skipped = f"platform: {errno.errorcode.get(e.errno, e.errno)}"
        except (AttributeError, NotImplementedError, UnicodeError, OverflowError) as e:
            skipped = f"platform: {type(e).__name__}"
        row = c._register("E", slug, description, expected, code, path or rel, kind, skipped=skipped, facts=facts,
                          subject=subject, tool="safetensors" if subject else None, **kw)
        if isinstance(entry, bytes):
            row["entry_hex"] = entry.hex()
        elif entry:
            row["entry"] = entry
        if not skipped:
            row.update(tree_facts(base))

    def put(name, data=good):
        """A maker that writes one file under a raw byte name and checks that the name survived."""
        name = os.fsencode(name) if isinstance(name, str) else name

        def make(base, b):
            write_file(b + b"/" + name, data)
            if name not in os.listdir(b):
                raise Refused("the file system changed the name")
        return make

    def link(target, name="link.safetensors"):
        return lambda base, b: os.symlink(target, base / name)

    both = {"tensors": 2}
    pol = "followed or only listed, by policy; never counted twice in totals"

    # -- links
    E("symlink-file", "symbolic link to the good file beside it", "conditional", "FS_SYMLINK", link(GOOD), condition=pol, entry="link.safetensors")
    E("symlink-file-outside", "symbolic link to a file outside the scanned folder", "conditional", "FS_SYMLINK_OUTSIDE", link("../_outside/secret.safetensors"), condition="listed as a link; followed only by policy", hazards=["path-escape"], entry="link.safetensors", also_ok=["FS_SYMLINK"])
    E("symlink-dir", "symbolic link to a folder inside", "conditional", "FS_SYMLINK", lambda base, b: ((base / "sub").mkdir(), write_file(base / "sub" / "x.safetensors", good), os.symlink("sub", base / "link")), condition=pol, entry="link")
    E("symlink-dir-outside", "symbolic link to a folder outside", "conditional", "FS_SYMLINK_OUTSIDE", link("../_outside/folder", "link"), condition="listed as a link; followed only by policy", hazards=["path-escape"], entry="link", also_ok=["FS_SYMLINK"])
    E("symlink-dir-root", "symbolic link to /", "conditional", "FS_SYMLINK_OUTSIDE", link("/", "link"), condition="must not be walked by default", hazards=["path-escape", "hang"], entry="link", also_ok=["FS_SYMLINK"])
    E("symlink-dangling", "dangling symbolic link", "reject", "FS_SYMLINK_BROKEN", link("gone.safetensors"), entry="link.safetensors", hazards=["crash"], subject="link.safetensors")
    E("symlink-self", "symbolic link to itself", "reject", "FS_SYMLINK_LOOP", link("link.safetensors"), entry="link.safetensors", hazards=["crash", "hang"], also_ok=["FS_SYMLINK_BROKEN"], subject="link.safetensors")
    E("symlink-pair", "two symbolic links to each other", "reject", "FS_SYMLINK_LOOP", lambda base, b: (os.symlink("b.safetensors", base / "a.safetensors"), os.symlink("a.safetensors", base / "b.safetensors")), entry="a.safetensors", hazards=["crash", "hang"], also_ok=["FS_SYMLINK_BROKEN"])
    E("symlink-dir-loop", "folder that holds a link to its parent", "conditional", "FS_SYMLINK_LOOP", lambda base, b: ((base / "sub").mkdir(), os.symlink("..", base / "sub" / "up")), condition="a walker that follows links must stop", entry="sub/up", hazards=["hang", "recursion"], also_ok=["FS_SYMLINK"])
    E("symlink-dir-loop-wide", "folder with 20 links to itself (20**depth paths)", "conditional", "FS_SYMLINK_LOOP", lambda base, b: [os.symlink(".", base / f"l{i:02d}") for i in range(20)], condition="a walker that follows links must stop", entry="l00", hazards=["hang", "memory"], also_ok=["FS_SYMLINK"])
    E("symlink-chain-50", "chain of 50 symbolic links, over the system limit of 40", "reject", "FS_SYMLINK_LOOP", lambda base, b: [os.symlink(GOOD if i == 49 else f"l{i + 1:02d}", base / (f"l{i:02d}" if i else "l00.safetensors")) for i in range(50)], entry="l00.safetensors", hazards=["crash"], also_ok=["FS_SYMLINK_BROKEN"])
    E("symlink-root", "the scanned path itself is a symbolic link", "conditional", "FS_SYMLINK", lambda base, b: ((base / "real").mkdir(), write_file(base / "real" / GOOD, good), os.symlink("real", base / "root")), keep_good=False, path=f"{gdir}/symlink-root/root", condition="a link given by the user is followed", facts={"tensors": 1})
    E("symlink-root-dangling", "the scanned path is a dangling symbolic link", "reject", "FS_MISSING", link("gone", "root"), keep_good=False, path=f"{gdir}/symlink-root-dangling/root", kind="other", also_ok=["FS_SYMLINK_BROKEN"])
    E("symlink-dev-null", "shard that is a link to /dev/null", "reject", "FS_NOT_REGULAR", link("/dev/null"), entry="link.safetensors", also_ok=["FILE_EMPTY", "FS_SYMLINK_OUTSIDE"], hazards=["crash"], subject="link.safetensors")
    E("symlink-dev-zero", "config.json that is a link to /dev/zero (endless)", "reject", "FS_NOT_REGULAR", link("/dev/zero", "config.json"), entry="config.json", also_ok=["FS_SYMLINK_OUTSIDE"], hazards=["hang", "memory"])
    E("symlink-index", "index.json that is a link outside", "conditional", "FS_SYMLINK_OUTSIDE", lambda base, b: os.symlink("../_outside/secret.safetensors", base / INDEX), condition="followed only by policy; not JSON", entry=INDEX, also_ok=["JSON_SYNTAX", "FS_SYMLINK"], hazards=["path-escape"])
    E("symlink-hub-cache", "hub cache layout: snapshot links to blobs", "accept", "FS_SYMLINK", lambda base, b: ((base / "blobs").mkdir(), (base / "snapshots").mkdir(), (base / "snapshots" / ("0" * 40)).mkdir(), write_file(base / "blobs" / ("1" * 64), good), os.symlink("../../blobs/" + "1" * 64, base / "snapshots" / ("0" * 40) / "model.safetensors")), keep_good=False, facts={"tensors": 1})
    E("hardlink-pair", "one file under two names", "accept", "FS_HARDLINK", lambda base, b: os.link(base / GOOD, base / "same.safetensors"), facts={"files": 2, "distinct_files": 1}, entry="same.safetensors")
    E("hardlink-300", "one file under 301 names", "accept", "FS_HARDLINK", lambda base, b: [os.link(base / GOOD, base / f"h{i:04d}.safetensors") for i in range(300)], hazards=["cpu"], facts={"files": 301, "distinct_files": 1})

    # -- not regular files
    def sock(base, b):
        cwd = os.getcwd()
        os.chdir(base)  # the address is limited to about 100 bytes
        try:
            s = socket.socket(socket.AF_UNIX)
            s.bind("model.safetensors")
            s.close()
        finally:
            os.chdir(cwd)
    E("fifo", "FIFO named model.safetensors (open() waits for a writer)", "reject", "FS_NOT_REGULAR", lambda base, b: os.mkfifo(base / "model.safetensors"), entry="model.safetensors", hazards=["hang"], subject="model.safetensors")
    E("fifo-config", "FIFO named config.json", "reject", "FS_NOT_REGULAR", lambda base, b: os.mkfifo(base / "config.json"), entry="config.json", hazards=["hang"])
    E("fifo-index", "FIFO named model.safetensors.index.json", "reject", "FS_NOT_REGULAR", lambda base, b: os.mkfifo(base / INDEX), entry=INDEX, hazards=["hang"])
    E("fifo-behind-link", "symbolic link to a FIFO", "reject", "FS_NOT_REGULAR", lambda base, b: (os.mkfifo(base / "pipe"), os.symlink("pipe", base / "model.safetensors")), entry="model.safetensors", hazards=["hang"], also_ok=["FS_SYMLINK"])
    E("fifo-zip", "FIFO named model.pt", "reject", "FS_NOT_REGULAR", lambda base, b: os.mkfifo(base / "model.pt"), entry="model.pt", hazards=["hang"])
    E("fifo-root", "the scanned path is a FIFO", "reject", "FS_NOT_REGULAR", lambda base, b: os.mkfifo(base / "root"), keep_good=False, path=f"{gdir}/fifo-root/root", kind="other", hazards=["hang"])
    E("socket", "unix socket named model.safetensors", "reject", "FS_NOT_REGULAR", sock, entry="model.safetensors", hazards=["crash"], subject="model.safetensors")
    for name in ("model.safetensors", INDEX, "config.json", "model.pt"):
        E("dir-named-" + name.replace(".", "-"), f"folder named {name}", "reject", "FS_IS_DIR", lambda base, b, n=name: (base / n).mkdir(), entry=name, hazards=["crash"], subject=name if name == "model.safetensors" else None)
    E("dir-named-deep", "folder named model.safetensors that holds a valid model.safetensors", "conditional", "FS_IS_DIR", lambda base, b: ((base / "model.safetensors").mkdir(), write_file(base / "model.safetensors" / "model.safetensors", good)), entry="model.safetensors", condition="a folder like any other; the inner file is listed", facts=both)

    # -- permissions
    def denied(name, mode, folder=False):
        def make(base, b):
            p = base / name
            if folder:
                p.mkdir()
                write_file(p / "x.safetensors", good)
            else:
                write_file(p, good)
            c.late.append((mode, p))
        return make
    E("mode-000", "file with mode 000", "reject", "FS_PERMISSION", denied("locked.safetensors", 0), entry="locked.safetensors", requires="non-root", hazards=["crash"])
    E("mode-000-config", "config.json with mode 000", "reject", "FS_PERMISSION", denied("config.json", 0), entry="config.json", requires="non-root", hazards=["crash"])
    E("mode-000-dir", "folder with mode 000", "reject", "FS_PERMISSION", denied("locked", 0, True), entry="locked", requires="non-root", hazards=["crash"])
    E("mode-444-dir", "folder that can be listed but not entered (stat fails)", "reject", "FS_PERMISSION", denied("listonly", 0o444, True), entry="listonly", requires="non-root", hazards=["crash"])
    E("mode-111-dir", "folder that can be entered but not listed", "reject", "FS_PERMISSION", denied("noread", 0o111, True), entry="noread", requires="non-root", hazards=["crash"])

    # -- names
    for slug, name, what in [
        ("not-utf8", b"w\xff\xfe.safetensors", "not valid UTF-8"), ("latin1", b"mod\xe8le.safetensors", "Latin-1 bytes"), ("surrogate-bytes", b"w\xed\xa0\x80.safetensors", "an encoded surrogate"), ("255", b"n" * 243 + b".safetensors", "255 bytes"),
        ("255-multibyte", ("\u91cd" * 81).encode() + b".safetensors", "255 bytes in 93 characters"), ("newline", b"w\nTOTAL 0 B.safetensors", "a newline"), ("cr", b"w\rok.safetensors", "a carriage return"), ("escape", b"\x1b[2J\x1b]0;t\x07\x1b[31m.safetensors", "escape sequences"), ("c1", "w\u009b31m.safetensors".encode(), "the one-character CSI U+009B"),
        ("rtl", "w\u202esrosnetefas.exe.safetensors".encode(), "a right-to-left override"), ("zero-width", "w\u200b\u200d\ufeff.safetensors".encode(), "zero-width characters"), ("combining", ("w" + "\u0301" * 100).encode() + b".safetensors", "100 combining accents"), ("dash", b"-rf.safetensors", "a leading dash"), ("dashes", b"--help.safetensors", "an option-like name"),
        ("space", b" w .safetensors", "leading and inner spaces"), ("only-ext", b".safetensors", "only the extension (hidden)"), ("double-ext", b"model.safetensors.safetensors", "the extension twice"), ("upper-ext", b"MODEL.SAFETENSORS", "the extension in capitals"), ("trailing-space", b"w.safetensors ", "a trailing space"), ("trailing-dot", b"w.safetensors.", "a trailing dot"), ("backup", b"w.safetensors~", "a backup suffix"),
        ("tilde", b"~.safetensors", "a tilde"), ("glob", b"*?[a]{b}.safetensors", "glob characters"), ("quotes", b"'\"`$(id);&|.safetensors", "shell characters"), ("percent", b"%s%n%00..%2f.safetensors", "percent sequences"), ("braces", b"{0.__class__}.safetensors", "format braces"), ("markup", b"[bold red]w[-].safetensors", "terminal markup"), ("markup-close", b"[b].safetensors", "an unclosed markup tag"),
        ("html", b"<b>&amp;.safetensors", "HTML"), ("csv", b"=1+1,\"a.safetensors", "a spreadsheet formula"), ("backslash", b"..\\w.safetensors", "backslashes"), ("colon", b"C:w.safetensors", "a drive-like prefix"), ("device", b"NUL.safetensors", "a Windows device name"), ("email", b"alice@example.invalid.safetensors", "an e-mail address (report sanitising)"),
    ]:
        code = {"not-utf8": "FS_NAME_BYTES", "latin1": "FS_NAME_BYTES", "surrogate-bytes": "FS_NAME_BYTES"}.get(slug, "FS_NAME_ODD")
        E("name-" + slug, f"file name: {what}", "conditional" if slug in ("trailing-space", "trailing-dot", "backup", "upper-ext", "only-ext") else "accept", code, put(name),
          entry=name, facts=both if slug not in ("trailing-space", "trailing-dot", "backup", "upper-ext", "only-ext") else None, condition="counts as a weight file, or not, by the extension rule" if slug in ("trailing-space", "trailing-dot", "backup", "upper-ext", "only-ext") else None,
          hazards=["crash", "terminal"], subject=os.fsdecode(name) if slug in ("not-utf8", "newline") else None)
    E("name-not-utf8-dir", "folder name that is not valid UTF-8", "accept", "FS_NAME_BYTES", lambda base, b: (os.mkdir(b + b"/d\xff"), write_file(b + b"/d\xff/x.safetensors", good)), entry=b"d\xff", facts=both, hazards=["crash", "terminal"])

    def pair(n1, n2):
        def make(base, b):
            for n in (n1, n2):
                write_file(b + b"/" + n, st(OK, D8))
            if not {n1, n2} <= set(os.listdir(b)):
                raise Refused("the file system folds these names")
        return make
    nfc, nfd = "caf\u00e9.safetensors", unicodedata.normalize("NFD", "caf\u00e9.safetensors")
    E("names-case", "Model.safetensors and model.safetensors", "accept", "FS_NAME_COLLISION", pair(b"Model.safetensors", b"model.safetensors"), facts={"tensors": 3}, entry="Model.safetensors")
    E("names-normalisation", "the same name in NFC and NFD", "accept", "FS_NAME_COLLISION", pair(nfc.encode(), nfd.encode()), facts={"tensors": 3}, entry=nfd.encode())
    E("names-homoglyph", "model with Latin and with Cyrillic letters", "accept", "FS_NAME_COLLISION", pair(b"model.safetensors", "m\u043edel.safetensors".encode()), facts={"tensors": 3}, entry="m\u043edel.safetensors".encode(), also_ok=["FS_NAME_ODD"])
    E("names-escaped-twin", "a name with byte FF and a name that spells \\xff", "accept", "FS_NAME_BYTES", pair(b"w\xff.safetensors", b"w\\xff.safetensors"), facts={"tensors": 3}, entry=b"w\xff.safetensors", hazards=["crash"])

    # -- folders
    E("hidden", "hidden file and hidden folder", "conditional", "FS_HIDDEN", lambda base, b: (write_file(base / ".hidden.safetensors", good), (base / ".cache").mkdir(), write_file(base / ".cache" / "x.safetensors", good)), condition="shown or skipped by policy, and said so", entry=".hidden.safetensors")
    E("git-folder", "a .git folder with an LFS object store", "conditional", "FS_HIDDEN", lambda base, b: ((base / ".git" / "lfs" / "objects" / "01").mkdir(parents=True), write_file(base / ".git" / "lfs" / "objects" / "01" / ("0123456789abcdef" * 4), good)), condition="shown or skipped by policy, and said so", entry=".git")
    E("empty-dir", "empty folder as the scanned path", "accept", "FS_EMPTY_DIR", keep_good=False)
    E("empty-subdirs", "only empty folders", "accept", "FS_EMPTY_DIR", lambda base, b: [(base / f"d{i}").mkdir() for i in range(5)], keep_good=False)
    E("missing-root", "the scanned path does not exist", "reject", "FS_MISSING", keep_good=False, path=f"{gdir}/missing-root/nothing", kind="other")
    E("root-under-file", "the scanned path goes through a file", "reject", "FS_MISSING", path=f"{gdir}/root-under-file/{GOOD}/x", kind="other", also_ok=["FS_NOT_REGULAR"])

    def deep(levels, name):
        def make(base, b):
            fd = os.open(b, os.O_RDONLY | os.O_DIRECTORY)
            try:
                for _ in range(levels):
                    os.mkdir(name, dir_fd=fd)
                    nxt = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
                    os.close(fd)
                    fd = nxt
                f = os.open("deep.safetensors", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd)
                os.write(f, good)
                os.close(f)
            finally:
                os.close(fd)
        return make
    E("deep-300", "300 nested folders, a weight file at the bottom", "conditional", "FS_TOO_DEEP", deep(300, "d"), condition="found, or cut at a depth limit and said so", hazards=["recursion"], entry="d")
    E("deep-path-max", "path of over 4,096 bytes (20 folders of 250), a weight file at the bottom", "conditional", "FS_TOO_DEEP", deep(20, "p" * 250), condition="open by full path fails with ENAMETOOLONG; listed as an error or reached by dir_fd", hazards=["crash"], entry="p" * 250)
    E("wide-800", "800 files of other kinds, all empty", "accept", None, lambda base, b: [write_file(base / f"note{i:04d}.txt", b"") for i in range(800)], facts={"tensors": 1}, hazards=["cpu"])

    # -- sizes and times
    def sparse_case(slug, description, expected, code, files, **kw):
        def make(base, b):
            if not c.sparse:
                raise Refused("--no-sparse")
            for name, data in files.items():
                try:
                    write_file(base / name, data)
                except OSError:
                    if (base / name).exists():
                        (base / name).unlink()
                    raise
        E(slug, description, expected, code, make, keep_good=False, **kw)
    tib = 1 << 40
    head = raw('"U8"', "[%d]", "[0,%d]")
    n = tib
    for _ in range(3):  # the header holds its own file size
        n = tib - 8 - len(head % (n, n))
    sparse_case("sparse-1tib", "valid shard of exactly 1 TiB, all holes after the header", "accept", "FS_SPARSE", {"model.safetensors": Sparse(tib, st(head % (n, n)))},
                facts={"tensors": 1, "elements": n}, hazards=["memory", "hang"], subject="model.safetensors", entry="model.safetensors")
    sparse_case("sparse-1tib-zero", "1 TiB of zeros named like a shard", "reject", "ST_HEADER_LEN_ZERO", {P1: Sparse(tib)}, hazards=["memory", "hang"], subject=P1, entry=P1, also_ok=["FS_SPARSE"])
    sparse_case("sparse-config", "config.json of 8 GiB of holes", "reject", "JSON_TOO_LARGE", {"config.json": Sparse(8 << 30, b"{}")}, hazards=["memory", "hang"], entry="config.json", also_ok=["JSON_SYNTAX"])
    sparse_case("sparse-pt", "model.pt of 8 GiB of holes with zip magic in front (no end record)", "reject", "ZIP_NO_EOCD", {"model.pt": Sparse(8 << 30, b"PK\x03\x04")}, hazards=["memory", "hang"], entry="model.pt")
    sparse_case("sparse-pkl", "8 GiB of holes after a BINBYTES8 opcode that claims them", "reject", "PKL_NO_STOP", {"model.pkl": Sparse(8 << 30, PR4 + O.BINBYTES8 + struct.pack("<Q", (8 << 30) - 11))}, hazards=["memory", "hang"], entry="model.pkl", also_ok=["PKL_LENGTH", "PKL_LIMIT", "PKL_TRUNCATED"])

    def when(ns):
        def make(base, b):
            os.utime(base / GOOD, ns=(ns, ns))
            if os.stat(base / GOOD).st_mtime_ns // 10**9 != ns // 10**9:
                raise Refused("the file system changed the time")
        return make
    E("mtime-1901", "modification time in 1901 (negative)", "accept", "FS_MTIME", when(-(1 << 31) * 10**9), facts={"tensors": 1}, hazards=["crash"], entry=GOOD)
    E("mtime-2200", "modification time in 2200", "accept", "FS_MTIME", when(7258118400 * 10**9), facts={"tensors": 1}, hazards=["crash"], entry=GOOD)
    E("mtime-epoch", "modification time 0", "accept", "FS_MTIME", when(0), facts={"tensors": 1}, entry=GOOD)


# ------------------------------------------------------------------------------------------------
# F. JSON configs, and secrets that a sanitised report must not repeat
# ------------------------------------------------------------------------------------------------

# Built from parts so that secret scanners do not stop at this source.  All of it is made up or the
# vendor's published EXAMPLE value.
SECRETS = {
    "hf_token": "hf_" + "x" * 34,
    "github_token": "gh" + "p_" + "x" * 36,
    "api_key": "s" + "k-" + "x" * 48,
    "aws_key_id": "AK" + "IAIOSFODNN7" + "EXAMPLE",
    "aws_secret": "wJalrXUtnFEMI" + "/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    "bearer": "Bea" + "rer " + "y" * 40,
    "jwt": "ey" + "J" + "h" * 20 + ".ey" + "J" + "h" * 20 + "." + "h" * 20,
    "wandb_key": "f" * 40,
    "private_key": "-----BEGIN " + "PRIVATE KEY-----\nRkFLRQ==\n-----END " + "PRIVATE KEY-----",
    "email": "alice@example.invalid",
    "home_path": "/srv/fakeroot/home/alice/ckpt/run7",
    "windows_home": "C:\\Users\\alice\\ckpt",
    "host": "gpu-node-17.cluster.example.invalid",
    "ipv4": "192.0.2.17",
    "ipv6": "2001:db8::17",
    "url_userinfo": "https://user:password@example.invalid/repo.git",
    "url_token": "https://example.invalid/f?access_token=" + "z" * 32,
    "url_signed": "https://bucket.example.invalid/m?X-Amz-Signature=" + "0123456789abcdef" * 4,
}
# shapes that also occur in harmless values: whether to hide them is a policy
SOFT = {"wandb_key", "aws_secret"}
# what exactly must not be seen, where it is not the whole value
NEEDLES = {"bearer": ["y" * 40], "home_path": ["home/alice", "alice"], "windows_home": ["Users\\alice", "alice"],
           "url_userinfo": ["user:password", "password@"], "url_token": ["z" * 32], "url_signed": ["0123456789abcdef" * 4],
           "private_key": ["RkFLRQ=="], "email": ["alice@example.invalid", "alice"]}
LOOKALIKES = {"model_type": "hf_transformer", "revision": "0123456789abcdef0123456789abcdef01234567", "pad": "sk-ip connection", "act": "a@b", "version": "1.2.3.4-rc", "ratio": "16:9"}


def needles(*keys) -> list:
    return sorted({n for k in (keys or set(SECRETS) - SOFT) for n in NEEDLES.get(k, [SECRETS[k]])})


def group_f(c: Corpus) -> None:
    good = st(OK, D8)
    base = {"architectures": ["TestModel"], "model_type": "test", "hidden_size": 8, "num_hidden_layers": 2, "torch_dtype": "float32"}

    def F(slug, description, expected, code, data, *, name="config.json", more=None, **kw):
        c.dir("F", slug, description, expected, code, {name: data, "model.safetensors": good, **(more or {})}, **kw)

    def cfg(**over):
        return json.dumps({**base, **over}, indent=2).encode()

    F("ok", "baseline config", "accept", None, cfg())
    F("bom", "UTF-8 BOM", "conditional", "JSON_BOM", b"\xef\xbb\xbf" + cfg(), condition="strict JSON forbids it, many editors add it")
    F("utf16", "UTF-16-LE with BOM", "conditional", "JSON_ENCODING", b"\xff\xfe" + cfg().decode().encode("utf-16-le"), condition="Python guesses UTF-16 from bytes, others refuse")
    F("utf32", "UTF-32-BE without BOM", "conditional", "JSON_ENCODING", cfg().decode().encode("utf-32-be"), condition="Python guesses UTF-32 from bytes, others refuse")
    F("latin1", "Latin-1 byte", "reject", "JSON_NOT_UTF8", cfg(model_type="mod?le").replace(b"?", b"\xe8"), hazards=["crash"])
    F("empty", "0 bytes", "reject", "FILE_EMPTY", b"", also_ok=["JSON_SYNTAX"])
    F("white-space", "only white space", "reject", "JSON_SYNTAX", b" \n\t\r\n", also_ok=["FILE_EMPTY"])
    F("nul-bytes", "64 NUL bytes (lost after a crash)", "reject", "JSON_SYNTAX", bytes(64))
    F("truncated", "cut in the middle", "reject", "JSON_SYNTAX", cfg()[:60])
    F("comments", "// and /* */ comments", "reject", "JSON_SYNTAX", b"// a\n{\n  /* b */ \"model_type\": \"test\" // c\n}\n")
    F("trailing-comma", "trailing comma", "reject", "JSON_SYNTAX", b'{"model_type":"test",}')
    F("single-quotes", "Python dict text", "reject", "JSON_SYNTAX", b"{'model_type': 'test', 'x': None, 'y': True}")
    F("yaml", "YAML instead of JSON", "reject", "JSON_SYNTAX", b"model_type: test\nhidden_size: 8\n")
    F("json-lines", "two objects, one a line", "reject", "JSON_SYNTAX", b'{"a":1}\n{"b":2}\n')
    F("merge-conflict", "git conflict markers", "reject", "JSON_SYNTAX", b'{\n<<<<<<< HEAD\n"a":1\n=======\n"a":2\n>>>>>>> other\n}\n')
    F("html", "HTML error page", "reject", "FILE_HTML", HTML, also_ok=["JSON_SYNTAX"])
    F("lfs-pointer", "git-LFS pointer", "reject", "FILE_LFS_POINTER", LFS, also_ok=["JSON_SYNTAX"])
    F("duplicate-keys", "hidden_size twice with different values", "conditional", "JSON_DUPLICATE_KEY", b'{"model_type":"test","hidden_size":8,"hidden_size":16}', condition="last one wins in most parsers; report it")
    F("duplicate-objects", "the same sub-object key twice", "conditional", "JSON_DUPLICATE_KEY", b'{"rope":{"a":1},"rope":{"b":2}}', condition="last one wins in most parsers; report it")
    for slug, src in [("array", b"[]"), ("string", b'"x"'), ("number", b"1"), ("null", b"null"), ("nan", b"NaN")]:
        F("top-" + slug, f"top level is {src.decode()}", "reject", "JSON_NOT_OBJECT", src, hazards=["crash"], also_ok=["JSON_NONFINITE", "JSON_SYNTAX"])
    F("deep-open", "50,000 opening brackets", "reject", "JSON_TOO_DEEP", b'{"a":' + b"[" * 50_000, hazards=["recursion", "crash"], also_ok=["JSON_SYNTAX"])
    F("deep-closed", "8,000 nested objects, properly closed", "reject", "JSON_TOO_DEEP", b'{"a":' * 8_000 + b"1" + b"}" * 8_000, hazards=["recursion", "crash"])
    F("deep-900", "900 nested arrays: below the recursion limit of Python, but not for a walker on top of it", "conditional", "JSON_TOO_DEEP", b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", hazards=["recursion", "crash"], condition="refuse at a lower limit or show")
    F("int-5000-digits", "integer of 5,000 digits (int() of Python 3.11+ raises ValueError)", "conditional", "JSON_NUMBER_RANGE", b'{"hidden_size":' + b"9" * 5000 + b"}", hazards=["crash"], condition="valid JSON grammar; report the field")
    F("int-4000-digits", "integer of 4,000 digits, read, but over any width", "conditional", "JSON_NUMBER_RANGE", b'{"hidden_size":' + b"9" * 4000 + b"}", hazards=["crash", "terminal"], condition="valid JSON grammar; show shortened")
    F("int-2-64", "hidden_size 2**64", "conditional", "JSON_NUMBER_RANGE", cfg(hidden_size=U64), condition="valid JSON; no sane size", also_ok=["CFG_FIELD_TYPE"])
    F("float-1e400", "1e400 (inf in Python)", "conditional", "JSON_NUMBER_RANGE", b'{"rms_norm_eps":1e400}', condition="valid grammar, no finite double", also_ok=["JSON_NONFINITE"])
    F("nonfinite", "NaN, Infinity and -Infinity as values", "conditional", "JSON_NONFINITE", b'{"a":NaN,"b":Infinity,"c":-Infinity}', condition="json.dumps of Python writes them; not JSON")
    F("surrogate-value", "lone surrogate in a value (print raises UnicodeEncodeError)", "conditional", "JSON_LONE_SURROGATE", b'{"model_type":"x\\ud800"}', hazards=["crash", "terminal"], condition="Python takes it, strict parsers refuse")
    F("surrogate-key", "lone surrogate in a key", "conditional", "JSON_LONE_SURROGATE", b'{"x\\udfff":1}', hazards=["crash", "terminal"], condition="Python takes it, strict parsers refuse")
    F("nul-in-string", "escaped NUL in a value", "accept", "NAME_CONTROL", b'{"model_type":"a\\u0000b"}', hazards=["terminal"])
    F("raw-control", "raw control characters in a string (json.loads strict=False takes them)", "reject", "JSON_SYNTAX", b'{"model_type":"a\x01\n\x1b[2Jb"}', hazards=["terminal"])
    F("escapes", "escape sequences, bidi, markup in keys and values", "accept", "NAME_CONTROL", json.dumps({"\x1b[2J": "\x1b]0;t\x07", "model_type": "\u202ex", "[bold]": "[/]", "a\nb": "c\rd"}).encode(), hazards=["terminal", "crash"])
    F("long-string", "one value of 60,000 characters on one line", "accept", "JSON_TOO_LARGE", cfg(note="v" * 60_000), hazards=["terminal"])
    F("long-key", "one key of 50,000 characters", "accept", "JSON_TOO_LARGE", cfg(**{"k" * 50_000: 1}), hazards=["terminal"])
    F("many-keys", "2,000 keys", "accept", None, json.dumps({f"k{i}": i for i in range(2000)}).encode(), hazards=["cpu"])
    F("white-space-60k", "60,000 newlines between two keys", "accept", None, b'{"a":1,' + b"\n" * 60_000 + b'"b":2}', hazards=["cpu"])
    for slug, over, what in [
        ("layers-huge", {"num_hidden_layers": 10**12}, "num_hidden_layers 10**12 (no loop over it)"), ("layers-negative", {"num_hidden_layers": -1}, "num_hidden_layers -1"), ("layers-float", {"num_hidden_layers": 2.5}, "num_hidden_layers 2.5"), ("layers-bool", {"num_hidden_layers": True}, "num_hidden_layers true"),
        ("layers-string", {"num_hidden_layers": "2"}, "num_hidden_layers as text"), ("hidden-list", {"hidden_size": [8]}, "hidden_size as list"), ("hidden-null", {"hidden_size": None}, "hidden_size null"), ("hidden-zero", {"hidden_size": 0}, "hidden_size 0 (division)"), ("heads-mismatch", {"num_attention_heads": 3}, "heads do not divide hidden_size"), ("heads-zero", {"num_attention_heads": 0}, "num_attention_heads 0 (division)"),
        ("arch-string", {"architectures": "TestModel"}, "architectures as text"), ("arch-null", {"architectures": None}, "architectures null"), ("arch-nested", {"architectures": [["a"], {"b": 1}, None]}, "architectures with nested values"), ("type-object", {"model_type": {"a": 1}}, "model_type as object"), ("dtype-odd", {"torch_dtype": "float3"}, "torch_dtype float3"), ("dtype-number", {"torch_dtype": 32}, "torch_dtype as number"),
        ("quant-list", {"quantization_config": []}, "quantization_config as list"), ("quant-string", {"quantization_config": "int4"}, "quantization_config as text"), ("vocab-overflow", {"vocab_size": 1 << 62, "hidden_size": 1 << 62}, "vocab_size x hidden_size overflows"), ("rope-string", {"rope_scaling": "linear"}, "rope_scaling as text"), ("keys-case", {"Hidden_Size": 9, "HIDDEN_SIZE": 10}, "case variants of one key"),
    ]:
        F("field-" + slug, f"config field: {what}", "conditional", "CFG_FIELD_TYPE", cfg(**over), condition="the JSON is valid; the field is reported and not used", hazards=["crash"] + (["hang", "memory"] if slug == "layers-huge" else []))
    F("auto-map", "auto_map with remote code and trust_remote_code true", "accept", "CFG_CODE_REF", cfg(auto_map={"AutoModel": "owner/repo--modeling_x.Model", "AutoConfig": "../../x.Config"}, trust_remote_code=True), severity="warning", hazards=["exec"], more={"modeling_x.py": b"raise SystemExit('must never be imported')\n"})
    F("ref-file", "fields that name other files: absolute, parent, URL", "accept", "CFG_FIELD_TYPE", cfg(_name_or_path="../../../etc/hostname", vocab_file="/etc/hostname", tokenizer_file="file:///etc/hostname", adapter="https://example.invalid/a"), hazards=["path-escape"])
    F("json-bomb-refs", "$ref, <<, __include__ keys that point to the file itself", "accept", None, cfg(**{"$ref": "config.json", "<<": "config.json", "__include__": "config.json"}), hazards=["recursion"])
    F("prototype-keys", "keys such as __class__, __proto__, __init__", "accept", None, cfg(**{"__class__": "x", "__proto__": {"a": 1}, "__init__": 1, "self": 1, "": 2}), hazards=["crash"])
    for name in ("generation_config.json", "tokenizer_config.json", "adapter_config.json", "quantize_config.json", "model_index.json", "trainer_state.json"):
        F("other-" + name.split(".")[0].replace("_", "-"), f"{name} that is broken JSON", "reject", "JSON_SYNTAX", b'{"a": ', name=name, more={"config.json": cfg()})

    # -- secrets
    allneedles = needles()
    for key, value in SECRETS.items():
        soft = key in SOFT
        F("secret-" + key.replace("_", "-"), f"config value that looks like: {key}", "conditional" if soft else "accept", "CFG_SECRET", cfg(note=value), hazards=["leak"], severity="warning",
          condition="the same shape as a git revision or other base64 text; hide by policy" if soft else None, facts={"must_not_appear": needles(key)})
    F("secret-nested", "every kind, nested in lists and objects", "accept", "CFG_SECRET", cfg(extra={"a": [{"b": list(SECRETS.values())}]}), hazards=["leak"], severity="warning", facts={"must_not_appear": allneedles})
    F("secret-as-key", "every kind as an object key", "accept", "CFG_SECRET", cfg(extra={v: 1 for v in SECRETS.values()}), hazards=["leak"], severity="warning", facts={"must_not_appear": allneedles})
    F("secret-embedded", "inside longer text, without spaces around", "accept", "CFG_SECRET", cfg(note="token=" + SECRETS["hf_token"] + ";path=" + SECRETS["home_path"] + "/x,mail:<" + SECRETS["email"] + ">"), hazards=["leak"], severity="warning", facts={"must_not_appear": needles("hf_token", "home_path", "email")})
    F("secret-escaped", "token written with \\u escapes in the file", "accept", "CFG_SECRET", cfg(note="@@").replace(b"@@", "".join(f"\\u{ord(ch):04x}" for ch in SECRETS["hf_token"]).encode()), hazards=["leak"], severity="warning", facts={"must_not_appear": needles("hf_token")})
    F("secret-split-zero-width", "token with a zero-width space inside", "conditional", "CFG_SECRET", cfg(note=SECRETS["hf_token"][:10] + "\u200b" + SECRETS["hf_token"][10:]), hazards=["leak"], facts={"must_not_appear": [SECRETS["hf_token"][10:]]}, condition="beyond a plain pattern; dropping free-text values is safer")
    F("secret-by-name", "plain values under telling names (password, api_key, token, secret)", "accept", "CFG_SECRET", cfg(password="correct-horse", api_key="abc123", hub_token="tok-1", client_secret="s3cr3t"), hazards=["leak"], severity="warning", facts={"must_not_appear": ["abc123", "correct-horse", "s3cr3t", "tok-1"]})
    F("secret-in-syntax-error", "broken JSON right behind a token (error text must not quote it)", "reject", "JSON_SYNTAX", b'{"hub_token":"' + SECRETS["hf_token"].encode() + b'" "x":1}', hazards=["leak"], facts={"must_not_appear": needles("hf_token")})
    F("secret-in-type-error", "token where a number belongs (error text must not quote it)", "conditional", "CFG_FIELD_TYPE", cfg(hidden_size=SECRETS["hf_token"]), hazards=["leak"], facts={"must_not_appear": needles("hf_token")}, condition="the JSON is valid; the field is reported and not used", also_ok=["CFG_SECRET"])
    F("secret-lookalikes", "harmless values that resemble secrets and should stay readable", "conditional", "CFG_SECRET", cfg(**LOOKALIKES), condition="hiding them is safe but makes reports useless", facts={"must_appear": sorted(v for k, v in LOOKALIKES.items() if k != "revision")})

    def M(slug, description, files, expected="accept", code="CFG_SECRET", keys=(), **kw):
        c.dir("F", "meta-" + slug, description, expected, code, files, hazards=["leak"], facts={"must_not_appear": needles(*keys)}, severity="warning" if expected == "accept" else None, **kw)
    M("values", "every kind as a safetensors __metadata__ value", {"model.safetensors": st('{"__metadata__":%s,%s' % (js(SECRETS), OK[1:]), D8)}, subject="model.safetensors", tool="safetensors")
    M("keys", "every kind as a __metadata__ key", {"model.safetensors": st('{"__metadata__":%s,%s' % (js({v: "x" for v in SECRETS.values()}), OK[1:]), D8)}, subject="model.safetensors", tool="safetensors")
    M("json-in-value", "training arguments as JSON text in one __metadata__ value", {"model.safetensors": st('{"__metadata__":%s,%s' % (js({"format": "pt", "training_args": json.dumps({"hub_token": SECRETS["hf_token"], "output_dir": SECRETS["home_path"]})}), OK[1:]), D8)}, keys=("hf_token", "home_path"), subject="model.safetensors", tool="safetensors")
    M("tensor-names", "secrets as tensor names", {"model.safetensors": named(SECRETS["hf_token"], SECRETS["email"], SECRETS["home_path"], SECRETS["url_userinfo"])}, keys=("hf_token", "email", "home_path", "url_userinfo"), subject="model.safetensors", tool="safetensors", expected="conditional", condition="names are content; a sanitised report hides secrets in them")
    M("index", "secrets in index metadata and shard names", {INDEX: json.dumps({"metadata": {"total_size": 8, "hub_token": SECRETS["hf_token"]}, "weight_map": {"a": "sub/" + P1, "b": SECRETS["url_userinfo"]}}).encode()}, "reject", "IDX_SHARD_MISSING", keys=("hf_token", "url_userinfo"), also_ok=["IDX_PATH_UNSAFE"])
    M("header-error", "token inside a broken safetensors header (error text must not quote it)", {"model.safetensors": st('{"__metadata__":{"hub_token":"%s"},"w":oops}' % SECRETS["hf_token"])}, "reject", "JSON_SYNTAX", keys=("hf_token",), subject="model.safetensors", tool="safetensors")
    M("dtype-error", "token as dtype (error text must not quote it)", {"model.safetensors": st(raw(js(SECRETS["hf_token"])), D8)}, "conditional", "ST_DTYPE_UNKNOWN", keys=("hf_token",), subject="model.safetensors", tool="safetensors", condition="as A.dtype-unknown")
    M("pickle-strings", "secrets as strings and global names in a torch zip", {"model.pt": torch_zip(state(("w", tensor()), ("args", obj([SECRETS["hf_token"], SECRETS["home_path"], SECRETS["email"]])), (SECRETS["aws_key_id"], O.NONE), ("g", glob("home.alice", SECRETS["github_token"]))))}, keys=("hf_token", "home_path", "email", "aws_key_id", "github_token"))
    M("file-names", "secrets in file and folder names", {SECRETS["email"] + "/" + SECRETS["hf_token"] + ".safetensors": good, "home/alice/model.safetensors": good}, keys=("hf_token", "email", "home_path"), expected="conditional", condition="names below the scanned folder are content; a sanitised report hides secrets in them")
    M("zip-names", "secrets as zip entry names and comment", {"model.pt": torch_zip(x1=Z(b"archive/home/alice/" + SECRETS["hf_token"].encode(), b"x"), zopts={"comment": SECRETS["email"].encode()})}, keys=("hf_token", "home_path", "email"), expected="conditional", condition="as meta-file-names", also_ok=["ZIP_COMMENT"])


# ------------------------------------------------------------------------------------------------
# reference verdicts
# ------------------------------------------------------------------------------------------------

DRIVER = r'''
import json, os, re, sys, warnings
warnings.simplefilter("ignore")
tool, path = sys.argv[1], os.fsencode(sys.argv[2])
out = {"tool": tool}
def note(e):
    text = " ".join(str(e).replace(os.fsdecode(path), "PATH").split())
    text = text.replace("Error while deserializing header: ", "").replace("invalid JSON in header: ", "")
    text = re.sub(r"hf_x+", "hf_(...)", text)
    text = re.sub(r" at line \d+ column \d+$", "", re.sub(r", expected one of .*", ", expected one of ...", text))
    text = "".join(ch if " " <= ch <= "~" else repr(ch)[1:-1] for ch in text).replace("|", "/")
    return text if len(text) <= 90 else text[:87] + "..."
if tool == "safetensors":
    from safetensors import safe_open
    KINDS = [("header too small", "HeaderTooSmall"), ("header too large", "HeaderTooLarge"), ("invalid header length", "InvalidHeaderLength"),
             ("invalid UTF-8 in header", "InvalidHeader"), ("invalid JSON in header", "InvalidHeaderDeserialization"), ("invalid offset for tensor", "InvalidOffset"),
             ("invalid shape, data type", "TensorInvalidInfo"), ("incomplete metadata", "MetadataIncompleteBuffer"), ("overflow computing", "ValidationOverflow"),
             ("slicing for subbytes", "MisalignedSlice"), ("No such file", "FileNotFound"), ("No such device", "MmapFailed")]
    KINDS += [("HeaderTooSmall", "HeaderTooSmall"), ("HeaderTooLarge", "HeaderTooLarge"), ("InvalidHeaderLength", "InvalidHeaderLength"), ("InvalidHeaderDeserialization", "InvalidHeaderDeserialization"),
              ("InvalidHeader", "InvalidHeader"), ("InvalidOffset", "InvalidOffset"), ("TensorInvalidInfo", "TensorInvalidInfo"), ("MetadataIncompleteBuffer", "MetadataIncompleteBuffer"), ("ValidationOverflow", "ValidationOverflow")]
    try:
        with safe_open(os.fsdecode(path), framework="np") as f:
            out.update(verdict="accepted", tensors=len(list(f.keys())))
    except BaseException as e:
        text = str(e)
        out.update(verdict="rejected", kind=next((k for t, k in KINDS if t in text), type(e).__name__), detail=note(e))
    if out["verdict"] == "accepted" and os.stat(path).st_size < 1 << 25:
        try:
            from safetensors.numpy import load_file
            load_file(os.fsdecode(path))
        except BaseException as e:
            out["load"] = type(e).__name__ + ": " + note(e)
elif tool == "zipfile":
    import zipfile
    try:
        with zipfile.ZipFile(os.fsdecode(path)) as z:
            out.update(verdict="accepted", entries=len(z.infolist()))
            for i in z.infolist():
                if i.filename.endswith("data.pkl"):
                    try:
                        with z.open(i) as f:
                            n = 0
                            while True:
                                b = f.read(1 << 16)
                                n += len(b)
                                if not b or n > 1 << 24:
                                    break
                        out["data_pkl"] = n
                    except BaseException as e:
                        out["data_pkl"] = type(e).__name__ + ": " + note(e)
    except BaseException as e:
        out.update(verdict="rejected", kind=type(e).__name__, detail=note(e))
else:
    import io, pickletools
    class Null:
        def write(self, s): pass
    data = open(path, "rb").read()
    f = io.BytesIO(data)
    try:
        n = 0
        for n, _ in enumerate(pickletools.genops(f), 1):
            pass
        out.update(opcodes=n)
        if f.tell() < len(data):
            out["after_stop"], out["pickles"] = len(data) - f.tell(), 1
            try:
                while f.tell() < len(data):
                    for _ in pickletools.genops(f):
                        pass
                    out["pickles"] += 1
            except BaseException:
                pass
        try:
            pickletools.dis(data, out=Null(), indentlevel=0)
            out["verdict"] = "accepted"
        except BaseException as e:
            out.update(verdict="rejected", kind="dis:" + type(e).__name__, detail=note(e))
    except BaseException as e:
        out.update(verdict="rejected", kind="genops:" + type(e).__name__, detail=note(e))
print(json.dumps(out))
'''


def subject_of(row) -> str:
    return row["path"] + ("/" + row["reference_subject"] if "reference_subject" in row else "")


def fresh_verdict(out: Path, row: dict, python: str) -> dict:
    """Ask another reader in a process of its own: a crash or hang is a verdict too."""
    tool = row["_tool"]
    py = python if tool == "safetensors" else sys.executable
    p = os.path.join(os.fspath(out), subject_of(row))
    try:
        r = subprocess.run([py, "-I", "-c", DRIVER, tool, p], capture_output=True, timeout=60 if row.get("large") else 30)
    except subprocess.TimeoutExpired:
        return {"tool": tool, "verdict": "hangs", "kind": "Timeout"}
    if r.returncode or not r.stdout.strip():
        last = r.stderr.decode("ascii", "backslashreplace").strip().splitlines()[-1:]
        return {"tool": tool, "verdict": "crashes", "kind": f"exit {r.returncode}", "detail": " ".join(last)[:90]}
    return json.loads(r.stdout)


# ------------------------------------------------------------------------------------------------
# main
# ------------------------------------------------------------------------------------------------

def clean(out: Path) -> None:
    if not (out / "MANIFEST.json").is_file() or GENERATOR not in (out / "MANIFEST.json").read_text("ascii"):
        raise SystemExit(f"{out} has no manifest of this generator: not touched")
    for g in GROUP_DIRS.values():
        top = os.fsencode(out / g)
        if not os.path.isdir(top) or os.path.islink(top):
            continue
        for _ in range(2):  # open locked folders, then look again
            for _, dirs, _, fd in os.fwalk(top, onerror=lambda e: None):
                for d in dirs:
                    if stat.S_ISDIR(os.stat(d, dir_fd=fd, follow_symlinks=False).st_mode):
                        os.chmod(d, 0o755, dir_fd=fd)
        shutil.rmtree(top)
    (out / "MANIFEST.json").unlink()


def build(out: Path, large=False, sparse=True) -> Corpus:
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} is not empty (use --clean first)")
    old_umask = os.umask(0o022)
    try:
        c = Corpus(out, large, sparse)
        for g in (group_a, group_b, group_c, group_d, group_e, group_f):
            g(c)
        for mode, p in c.late:
            os.chmod(p, mode)
    finally:
        os.umask(old_umask)
    return c


def manifest(c: Corpus) -> dict:
    table = reference_table()
    rows = []
    for row in c.cases:
        row = dict(row)
        tool = row.pop("_tool", None)
        if tool and row["id"] in table:
            row["reference"] = {"tool": tool, **table[row["id"]]}
        rows.append(row)
    return {
        "generator": GENERATOR,
        "reference_tools": REFERENCE_TOOLS,
        "groups": {g: {"folder": GROUP_DIRS[g], "title": GROUP_TITLES[g], "cases": sum(r["group"] == g for r in rows)} for g in GROUP_DIRS},
        "codes": {k: v for k, v in CODES.items() if any(k == r["code"] or k in r.get("also_ok", ()) for r in rows)},
        "cases": rows,
    }


def write_manifest(path: Path, m: dict) -> None:
    """One case a line, ASCII only."""
    head = json.dumps({k: v for k, v in m.items() if k != "cases"}, indent=1)
    rows = ",\n".join(json.dumps(r) for r in m["cases"])
    path.write_text(head[:-2] + ',\n "cases": [\n' + rows + "\n ]\n}\n", "ascii")


def main(argv=None) -> int:
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ap.add_argument("outdir", nargs="?", type=Path)
    ap.add_argument("--large", action="store_true", help="also write the cases of 8 MB and more (about 300 MB)")
    ap.add_argument("--no-sparse", action="store_true", help="skip sparse files over 1 GiB")
    ap.add_argument("--clean", type=Path, metavar="DIR", help="remove a corpus written earlier")
    ap.add_argument("--verify", metavar="PY", help="compare recorded verdicts; PY is a python with safetensors")
    ap.add_argument("--record", metavar="PY", help="print a fresh table of verdicts")
    a = ap.parse_args(argv)
    if a.clean:
        clean(a.clean)
        return 0
    if not a.outdir:
        ap.error("OUTDIR is missing")
    c = build(a.outdir, a.large, not a.no_sparse)
    m = manifest(c)
    write_manifest(a.outdir / "MANIFEST.json", m)
    if a.record or a.verify:
        bad, table = 0, {}
        old = reference_table()
        rows = [r for r in c.cases if "_tool" in r and "skipped" not in r]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            fresh = list(pool.map(lambda r: fresh_verdict(a.outdir, r, a.record or a.verify), rows))
        for row, v in zip(rows, fresh):
            v.pop("tool")
            table[row["id"]] = v
            if a.verify:
                was = old.get(row["id"], {})
                if (v["verdict"], v.get("kind")) != (was.get("verdict"), was.get("kind")):
                    bad += 1
                    print(f"{row['id']}: recorded {was}, now {v}")
        if a.record:
            print("\n".join(table_line(k, v) for k, v in table.items()))
        else:
            print(f"{len(table)} verdicts compared, {bad} differ")
        return 1 if bad else 0
    done = [r for r in c.cases if "skipped" not in r]
    total = sum(r.get("size", 0) if not r.get("sparse") else 0 for r in done) + sum(r.get("bytes", 0) for r in done)
    print(f"{len(done)} of {len(c.cases)} cases written, {total / 1e6:.2f} MB without sparse files")
    for r in c.cases:
        if "skipped" in r and r["skipped"] != "needs --large":
            print(f"  skipped {r['id']}: {r['skipped']}")
    return 0


# Recorded with `--record`; kinds of safetensors are those of the Rust enum SafeTensorError.
REFERENCE_TOOLS = {"safetensors": "safetensors 0.8.0, safe_open(framework='np')", "zipfile": "zipfile of CPython 3.11.7", "pickletools": "pickletools.dis of CPython 3.11.7"}


def table_line(cid: str, v: dict) -> str:
    more = {k: x for k, x in v.items() if k not in ("verdict", "kind", "detail")}
    return " | ".join([cid, v["verdict"], v.get("kind", ""), v.get("detail", ""), json.dumps(more) if more else ""]).rstrip(" |")


def reference_table() -> dict:
    """The table below as id -> verdict; it is text so that a new `--record` can be pasted in."""
    out = {}
    for line in RECORDED.strip().splitlines():
        cid, verdict, kind, detail, more = (line.split(" | ") + ["", "", ""])[:5]
        row = {"verdict": verdict}
        if kind:
            row["kind"] = kind
        if detail:
            row["detail"] = detail
        if more:
            row.update(json.loads(more))
        out[cid] = row
    return out


RECORDED = r"""
A.ok-one | accepted |  |  | {"tensors": 1}
A.ok-empty-object | accepted |  |  | {"tensors": 0}
A.ok-metadata-only | accepted |  |  | {"tensors": 0}
A.ok-unpadded | accepted |  |  | {"tensors": 1}
A.ok-padded | accepted |  |  | {"tensors": 1}
A.ok-padded-far | accepted |  |  | {"tensors": 1}
A.ok-all-dtypes | accepted |  |  | {"tensors": 22, "load": "AttributeError: module 'numpy' has no attribute 'float4_e2m1fn_x2'"}
A.ok-unordered | accepted |  |  | {"tensors": 2}
A.ok-scalar | accepted |  |  | {"tensors": 1}
A.ok-zero-size | accepted |  |  | {"tensors": 1}
A.ok-zero-size-mixed | accepted |  |  | {"tensors": 5, "load": "TypeError: data type 'bfloat16' not understood"}
A.ok-json-spread | accepted |  |  | {"tensors": 1}
A.ok-escaped-keys | accepted |  |  | {"tensors": 1}
A.empty-file | rejected | HeaderTooSmall | header too small
A.one-byte | rejected | HeaderTooSmall | header too small
A.seven-bytes | rejected | HeaderTooSmall | header too small
A.len-zero-only | rejected | InvalidHeaderDeserialization | EOF while parsing a value
A.len-zero-with-data | rejected | InvalidHeaderDeserialization | EOF while parsing a value
A.len-one | rejected | InvalidHeaderDeserialization | EOF while parsing an object
A.len-two-cut | rejected | InvalidHeaderDeserialization | EOF while parsing a string
A.len-past-eof-by-one | rejected | InvalidHeaderLength | invalid header length
A.len-short-by-one | rejected | InvalidHeaderDeserialization | EOF while parsing an object
A.len-truncated-header | rejected | InvalidHeaderLength | invalid header length
A.len-1-tib | rejected | HeaderTooLarge | header too large
A.len-2-63 | rejected | HeaderTooLarge | header too large
A.len-2-63-minus-1 | rejected | HeaderTooLarge | header too large
A.len-2-64-minus-1 | rejected | HeaderTooLarge | header too large
A.len-2-64-minus-8 | rejected | HeaderTooLarge | header too large
A.len-100m-plus-1 | rejected | HeaderTooLarge | header too large
A.len-100m | rejected | InvalidHeaderLength | invalid header length
A.len-big-endian | rejected | HeaderTooLarge | header too large
A.len-4-byte | rejected | HeaderTooLarge | header too large
A.sparse-header-100m-plus-1 | rejected | HeaderTooLarge | header too large
A.sparse-header-100m-nul | rejected | InvalidHeaderDeserialization | trailing characters
A.sparse-header-6g | rejected | HeaderTooLarge | header too large
A.sparse-data-ok | accepted |  |  | {"tensors": 1}
A.trailing-bytes | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.trailing-one | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.trailing-no-tensors | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.trailing-zip | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.two-files-joined | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.missing-one | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.missing-all | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.not-json | rejected | InvalidHeaderDeserialization | expected value
A.nul-header | rejected | InvalidHeaderDeserialization | expected value
A.top-array | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected struct HashMetadata
A.top-string | rejected | InvalidHeaderDeserialization | invalid type: string "w", expected struct HashMetadata
A.top-number | rejected | InvalidHeaderDeserialization | invalid type: integer `1`, expected struct HashMetadata
A.top-null | rejected | InvalidHeaderDeserialization | invalid type: null, expected struct HashMetadata
A.top-true | rejected | InvalidHeaderDeserialization | invalid type: boolean `true`, expected struct HashMetadata
A.utf8-ff | rejected | InvalidHeader | invalid UTF-8 in header: invalid utf-8 sequence of 1 bytes from index 3
A.utf8-latin1 | rejected | InvalidHeader | invalid UTF-8 in header: invalid utf-8 sequence of 1 bytes from index 5
A.utf8-overlong | rejected | InvalidHeader | invalid UTF-8 in header: invalid utf-8 sequence of 1 bytes from index 3
A.utf8-surrogate | rejected | InvalidHeader | invalid UTF-8 in header: invalid utf-8 sequence of 1 bytes from index 3
A.utf8-cut | rejected | InvalidHeader | invalid UTF-8 in header: incomplete utf-8 byte sequence from index 2
A.utf16-header | rejected | InvalidHeader | invalid UTF-8 in header: invalid utf-8 sequence of 1 bytes from index 0
A.utf16-header-no-bom | rejected | InvalidHeaderDeserialization | key must be a string
A.bom | rejected | InvalidHeaderDeserialization | expected value
A.leading-space | accepted |  |  | {"tensors": 1}
A.leading-newline | accepted |  |  | {"tensors": 1}
A.leading-tab | accepted |  |  | {"tensors": 1}
A.trailing-newline | accepted |  |  | {"tensors": 1}
A.trailing-tab | accepted |  |  | {"tensors": 1}
A.trailing-crlf | accepted |  |  | {"tensors": 1}
A.padding-nul | rejected | InvalidHeaderDeserialization | trailing characters
A.padding-nbsp | rejected | InvalidHeaderDeserialization | trailing characters
A.json-extra-brace | rejected | InvalidHeaderDeserialization | trailing characters
A.json-two-objects | rejected | InvalidHeaderDeserialization | trailing characters
A.json-unclosed | rejected | InvalidHeaderDeserialization | EOF while parsing an object
A.json-trailing-comma | rejected | InvalidHeaderDeserialization | trailing comma
A.json-single-quotes | rejected | InvalidHeaderDeserialization | key must be a string
A.json-unquoted-key | rejected | InvalidHeaderDeserialization | key must be a string
A.json-comment | rejected | InvalidHeaderDeserialization | key must be a string
A.json-unterminated | rejected | InvalidHeaderDeserialization | EOF while parsing a string
A.json-raw-newline | rejected | InvalidHeaderDeserialization | control character (\u0000-\u001F) found while parsing a string
A.json-raw-control | rejected | InvalidHeaderDeserialization | control character (\u0000-\u001F) found while parsing a string
A.json-bad-escape | rejected | InvalidHeaderDeserialization | invalid escape
A.json-short-escape | rejected | InvalidHeaderDeserialization | invalid escape
A.json-python-literals | rejected | InvalidHeaderDeserialization | expected value
A.json-leading-zero | rejected | InvalidHeaderDeserialization | invalid number
A.json-plus-sign | rejected | InvalidHeaderDeserialization | expected value
A.json-hex | rejected | InvalidHeaderDeserialization | expected `,` or `]`
A.json-underscore | rejected | InvalidHeaderDeserialization | expected `,` or `]`
A.json-bare-dot | rejected | InvalidHeaderDeserialization | invalid number
A.json-missing-colon | rejected | InvalidHeaderDeserialization | expected `:`
A.json-missing-comma | rejected | InvalidHeaderDeserialization | expected `,` or `}`
A.json-raw-del | accepted |  |  | {"tensors": 1}
A.const-nan | rejected | InvalidHeaderDeserialization | expected value
A.const-infinity | rejected | InvalidHeaderDeserialization | expected value
A.const-neg-infinity | rejected | InvalidHeaderDeserialization | invalid number
A.const-nan-extra | rejected | InvalidHeaderDeserialization | expected value
A.number-1e400-extra | rejected | InvalidHeaderDeserialization | number out of range
A.number-5000-digits-extra | rejected | InvalidHeaderDeserialization | number out of range
A.surrogate-high | rejected | InvalidHeaderDeserialization | unexpected end of hex escape
A.surrogate-low | rejected | InvalidHeaderDeserialization | lone leading surrogate in hex escape
A.surrogate-swapped | rejected | InvalidHeaderDeserialization | lone leading surrogate in hex escape
A.surrogate-pair | accepted |  |  | {"tensors": 1}
A.deep-open-100k | rejected | InvalidHeaderDeserialization | recursion limit exceeded
A.deep-arrays-100k | rejected | InvalidHeaderDeserialization | recursion limit exceeded
A.deep-objects-8k | rejected | InvalidHeaderDeserialization | recursion limit exceeded
A.deep-metadata-8k | rejected | InvalidHeaderDeserialization | invalid type: map, expected a string
A.deep-127 | accepted |  |  | {"tensors": 1}
A.deep-128 | rejected | InvalidHeaderDeserialization | recursion limit exceeded
A.missing-dtype | rejected | InvalidHeaderDeserialization | missing field `dtype`
A.missing-shape | rejected | InvalidHeaderDeserialization | missing field `shape`
A.missing-data-offsets | rejected | InvalidHeaderDeserialization | missing field `data_offsets`
A.missing-all-fields | rejected | InvalidHeaderDeserialization | missing field `dtype`
A.extra-fields | accepted |  |  | {"tensors": 1}
A.case-dtype | rejected | InvalidHeaderDeserialization | missing field `dtype`
A.case-shape | rejected | InvalidHeaderDeserialization | missing field `shape`
A.case-offsets | rejected | InvalidHeaderDeserialization | missing field `data_offsets`
A.case-both | accepted |  |  | {"tensors": 1}
A.case-metadata | rejected | InvalidHeaderDeserialization | missing field `dtype`
A.entry-null | rejected | InvalidHeaderDeserialization | invalid type: null, expected struct TensorInfo
A.entry-list | rejected | InvalidHeaderDeserialization | invalid length 0, expected struct TensorInfo with 3 elements
A.entry-string | rejected | InvalidHeaderDeserialization | invalid type: string "F32", expected struct TensorInfo
A.entry-number | rejected | InvalidHeaderDeserialization | invalid type: integer `1`, expected struct TensorInfo
A.entry-bool | rejected | InvalidHeaderDeserialization | invalid type: boolean `true`, expected struct TensorInfo
A.entry-positional | accepted |  |  | {"tensors": 1}
A.dtype-as-map | accepted |  |  | {"tensors": 1}
A.dup-field-dtype | rejected | InvalidHeaderDeserialization | duplicate field `dtype`
A.dup-field-shape | rejected | InvalidHeaderDeserialization | duplicate field `shape`
A.dup-field-offsets | rejected | InvalidHeaderDeserialization | duplicate field `data_offsets`
A.dup-field-differs | rejected | InvalidHeaderDeserialization | duplicate field `shape`
A.dup-name-identical | accepted |  |  | {"tensors": 1}
A.dup-name-last-valid | accepted |  |  | {"tensors": 1}
A.dup-name-first-valid | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.dup-name-split | rejected | InvalidOffset | invalid offset for tensor `w`
A.dup-name-escaped | accepted |  |  | {"tensors": 1}
A.metadata-list | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected a map
A.metadata-string | rejected | InvalidHeaderDeserialization | invalid type: string "pt", expected a map
A.metadata-number | rejected | InvalidHeaderDeserialization | invalid type: integer `1`, expected a map
A.metadata-bool | rejected | InvalidHeaderDeserialization | invalid type: boolean `false`, expected a map
A.metadata-null | accepted |  |  | {"tensors": 1}
A.metadata-value-int | rejected | InvalidHeaderDeserialization | invalid type: integer `1`, expected a string
A.metadata-value-float | rejected | InvalidHeaderDeserialization | invalid type: floating point `1.5`, expected a string
A.metadata-value-bool | rejected | InvalidHeaderDeserialization | invalid type: boolean `true`, expected a string
A.metadata-value-null | rejected | InvalidHeaderDeserialization | invalid type: null, expected a string
A.metadata-value-list | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected a string
A.metadata-value-object | rejected | InvalidHeaderDeserialization | invalid type: map, expected a string
A.metadata-like-tensor | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected a string
A.metadata-empty | accepted |  |  | {"tensors": 1}
A.metadata-last | accepted |  |  | {"tensors": 1}
A.metadata-odd-keys | accepted |  |  | {"tensors": 1}
A.metadata-json-string | accepted |  |  | {"tensors": 1}
A.metadata-huge-value | accepted |  |  | {"tensors": 1}
A.metadata-many-keys | accepted |  |  | {"tensors": 1}
A.dup-metadata | rejected | InvalidHeaderDeserialization | duplicate field `__metadata__`
A.dup-metadata-key | accepted |  |  | {"tensors": 1}
A.gap | rejected | InvalidOffset | invalid offset for tensor `b`
A.gap-first | rejected | InvalidOffset | invalid offset for tensor `w`
A.gap-alignment | rejected | InvalidOffset | invalid offset for tensor `b`
A.gap-zero-size | rejected | InvalidOffset | invalid offset for tensor `b`
A.overlap-partial | rejected | InvalidOffset | invalid offset for tensor `b`
A.overlap-identical | rejected | InvalidOffset | invalid offset for tensor `a`
A.overlap-nested | rejected | InvalidOffset | invalid offset for tensor `b`
A.overlap-zero-size | rejected | InvalidOffset | invalid offset for tensor `b`
A.overlap-1000 | rejected | InvalidOffset | invalid offset for tensor `t955`
A.reversed | rejected | InvalidOffset | invalid offset for tensor `w`
A.reversed-second | rejected | InvalidOffset | invalid offset for tensor `b`
A.absolute-offsets | rejected | InvalidOffset | invalid offset for tensor `w`
A.past-eof | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.past-eof-u64 | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.past-eof-i64 | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.past-eof-2-61 | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
A.offsets-negative | rejected | InvalidHeaderDeserialization | invalid value: integer `-8`, expected usize
A.offsets-negative-both | rejected | InvalidHeaderDeserialization | invalid value: integer `-16`, expected usize
A.offsets-negative-zero | rejected | InvalidHeaderDeserialization | invalid type: floating point `-0.0`, expected usize
A.offsets-float | rejected | InvalidHeaderDeserialization | invalid type: floating point `0.0`, expected usize
A.offsets-float-frac | rejected | InvalidHeaderDeserialization | invalid type: floating point `7.5`, expected usize
A.offsets-exponent | rejected | InvalidHeaderDeserialization | invalid type: floating point `8.0`, expected usize
A.offsets-bool | rejected | InvalidHeaderDeserialization | invalid type: boolean `false`, expected usize
A.offsets-string | rejected | InvalidHeaderDeserialization | invalid type: string "0", expected usize
A.offsets-null | rejected | InvalidHeaderDeserialization | invalid type: null, expected usize
A.offsets-object | rejected | InvalidHeaderDeserialization | invalid type: map, expected a tuple of size 2
A.offsets-scalar | rejected | InvalidHeaderDeserialization | invalid type: integer `8`, expected a tuple of size 2
A.offsets-empty | rejected | InvalidHeaderDeserialization | invalid length 0, expected a tuple of size 2
A.offsets-one | rejected | InvalidHeaderDeserialization | invalid length 1, expected a tuple of size 2
A.offsets-three | rejected | InvalidHeaderDeserialization | invalid length 3, expected 2 elements in sequence
A.offsets-nested | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected usize
A.offsets-string-whole | rejected | InvalidHeaderDeserialization | invalid type: string "0,8", expected a tuple of size 2
A.offsets-2-64 | rejected | InvalidHeaderDeserialization | invalid type: floating point `1.8446744073709552e+19`, expected usize
A.offsets-neg-2-63 | rejected | InvalidHeaderDeserialization | invalid value: integer `-9223372036854775808`, expected usize
A.offsets-5000-digits | rejected | InvalidHeaderDeserialization | number out of range
A.offsets-1e308 | rejected | InvalidHeaderDeserialization | invalid type: floating point `1e+308`, expected usize
A.shape-overflow-to-zero | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.shape-overflow-bytes | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.shape-overflow-bits | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.shape-overflow-small | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.shape-zero-then-huge | accepted |  |  | {"tensors": 1, "load": "ValueError: Maximum allowed dimension exceeded"}
A.shape-huge-then-zero | rejected | ValidationOverflow | overflow computing buffer size from shape and/or element type
A.shape-negative | rejected | InvalidHeaderDeserialization | invalid value: integer `-2`, expected usize
A.shape-negative-pair | rejected | InvalidHeaderDeserialization | invalid value: integer `-2`, expected usize
A.shape-float | rejected | InvalidHeaderDeserialization | invalid type: floating point `2.0`, expected usize
A.shape-exponent | rejected | InvalidHeaderDeserialization | invalid type: floating point `2.0`, expected usize
A.shape-bool | rejected | InvalidHeaderDeserialization | invalid type: boolean `true`, expected usize
A.shape-string | rejected | InvalidHeaderDeserialization | invalid type: string "2", expected usize
A.shape-null | rejected | InvalidHeaderDeserialization | invalid type: null, expected usize
A.shape-nested | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected usize
A.shape-scalar | rejected | InvalidHeaderDeserialization | invalid type: integer `2`, expected a sequence
A.shape-object | rejected | InvalidHeaderDeserialization | invalid type: map, expected a sequence
A.shape-string-whole | rejected | InvalidHeaderDeserialization | invalid type: string "[2]", expected a sequence
A.shape-null-whole | rejected | InvalidHeaderDeserialization | invalid type: null, expected a sequence
A.shape-2-64 | rejected | InvalidHeaderDeserialization | invalid type: floating point `1.8446744073709552e+19`, expected usize
A.shape-5000-digits | rejected | InvalidHeaderDeserialization | number out of range
A.shape-neg-zero | rejected | InvalidHeaderDeserialization | invalid type: floating point `-0.0`, expected usize
A.rank-17 | accepted |  |  | {"tensors": 1}
A.rank-65 | accepted |  |  | {"tensors": 1, "load": "ValueError: maximum supported dimension for an ndarray is currently 64, found 65"}
A.rank-20000 | accepted |  |  | {"tensors": 1, "load": "ValueError: maximum supported dimension for an ndarray is currently 64, found 20000"}
A.size-too-small | rejected | TensorInvalidInfo | invalid shape, data type, or offset for tensor
A.size-too-large | rejected | TensorInvalidInfo | invalid shape, data type, or offset for tensor
A.size-scalar | rejected | TensorInvalidInfo | invalid shape, data type, or offset for tensor
A.size-zero-shape | rejected | TensorInvalidInfo | invalid shape, data type, or offset for tensor
A.size-zero-bytes | rejected | TensorInvalidInfo | invalid shape, data type, or offset for tensor
A.dtype-unknown | rejected | InvalidHeaderDeserialization | unknown variant `F128`, expected one of ...
A.dtype-lower | rejected | InvalidHeaderDeserialization | unknown variant `f32`, expected one of ...
A.dtype-space | rejected | InvalidHeaderDeserialization | unknown variant `F32 `, expected one of ...
A.dtype-empty | rejected | InvalidHeaderDeserialization | unknown variant ``, expected one of ...
A.dtype-torch | rejected | InvalidHeaderDeserialization | unknown variant `torch.float32`, expected one of ...
A.dtype-numpy | rejected | InvalidHeaderDeserialization | unknown variant `<f4`, expected one of ...
A.dtype-e4m3fn | rejected | InvalidHeaderDeserialization | unknown variant `F8_E4M3FN`, expected one of ...
A.dtype-i4 | rejected | InvalidHeaderDeserialization | unknown variant `I4`, expected one of ...
A.dtype-fullwidth | rejected | InvalidHeaderDeserialization | unknown variant `Ｆ３２`, expected one of ...
A.dtype-nul | rejected | InvalidHeaderDeserialization | unknown variant `F32\x00`, expected one of ...
A.dtype-control | rejected | InvalidHeaderDeserialization | unknown variant `\x1b[31mF32`, expected one of ...
A.dtype-type-int | rejected | InvalidHeaderDeserialization | invalid type: integer `32`, expected string or map
A.dtype-type-null | rejected | InvalidHeaderDeserialization | invalid type: null, expected string or map
A.dtype-type-list | rejected | InvalidHeaderDeserialization | invalid type: sequence, expected string or map
A.dtype-type-bool | rejected | InvalidHeaderDeserialization | invalid type: boolean `true`, expected string or map
A.dtype-type-object | rejected | InvalidHeaderDeserialization | unknown variant `name`, expected one of ...
A.dtype-10k | rejected | InvalidHeaderDeserialization | unknown variant `FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF...
A.f4-even | accepted |  |  | {"tensors": 1, "load": "AttributeError: module 'numpy' has no attribute 'float4_e2m1fn_x2'"}
A.f4-odd | rejected | MisalignedSlice | The slice is slicing for subbytes dtypes, and the slice does not end up at a byte bound...
A.f4-odd-down | rejected | MisalignedSlice | The slice is slicing for subbytes dtypes, and the slice does not end up at a byte bound...
A.f4-scalar | rejected | MisalignedSlice | The slice is slicing for subbytes dtypes, and the slice does not end up at a byte bound...
A.f4-as-bytes | rejected | TensorInvalidInfo | invalid shape, data type, or offset for tensor
A.f6-aligned | accepted |  |  | {"tensors": 1, "load": "SafetensorError: Dtype not understood: F6_E2M3"}
A.f6-unaligned | rejected | MisalignedSlice | The slice is slicing for subbytes dtypes, and the slice does not end up at a byte bound...
A.bool-values | accepted |  |  | {"tensors": 1}
A.f32-nan-data | accepted |  |  | {"tensors": 1}
A.name-empty | accepted |  |  | {"tensors": 1}
A.name-10k | accepted |  |  | {"tensors": 1}
A.name-10k-pair | accepted |  |  | {"tensors": 2}
A.name-nul | accepted |  |  | {"tensors": 2}
A.name-c0 | accepted |  |  | {"tensors": 1}
A.name-c1 | accepted |  |  | {"tensors": 1}
A.name-newline | accepted |  |  | {"tensors": 2}
A.name-tab | accepted |  |  | {"tensors": 2}
A.name-ansi | accepted |  |  | {"tensors": 2}
A.name-osc | accepted |  |  | {"tensors": 3}
A.name-unclosed-csi | accepted |  |  | {"tensors": 2}
A.name-bidi | accepted |  |  | {"tensors": 3}
A.name-zero-width | accepted |  |  | {"tensors": 5}
A.name-line-separators | accepted |  |  | {"tensors": 3}
A.name-combining | accepted |  |  | {"tensors": 1}
A.name-wide | accepted |  |  | {"tensors": 4}
A.name-nfc-nfd | accepted |  |  | {"tensors": 2}
A.name-case | accepted |  |  | {"tensors": 5}
A.name-homoglyph | accepted |  |  | {"tensors": 2}
A.name-spaces | accepted |  |  | {"tensors": 5}
A.name-noncharacter | accepted |  |  | {"tensors": 4}
A.name-path | accepted |  |  | {"tensors": 7}
A.name-markup | accepted |  |  | {"tensors": 8}
A.name-html | accepted |  |  | {"tensors": 4}
A.name-csv | accepted |  |  | {"tensors": 5}
A.name-format | accepted |  |  | {"tensors": 9}
A.name-dunder | accepted |  |  | {"tensors": 6}
A.name-dotted-5000 | accepted |  |  | {"tensors": 1}
A.name-dots | accepted |  |  | {"tensors": 4}
A.name-prefix | accepted |  |  | {"tensors": 4}
A.name-digits-5000 | accepted |  |  | {"tensors": 2}
A.name-digits-unicode | accepted |  |  | {"tensors": 9}
A.name-layer-gap | accepted |  |  | {"tensors": 2}
A.name-raw-utf8 | accepted |  |  | {"tensors": 1}
A.tensors-4k | accepted |  |  | {"tensors": 4000}
A.tensors-200k | accepted |  |  | {"tensors": 200000}
A.tensors-200k-empty | accepted |  |  | {"tensors": 200000}
A.header-90m-spaces | accepted |  |  | {"tensors": 1}
A.header-100m-exact | accepted |  |  | {"tensors": 1}
A.metadata-200k-keys | accepted |  |  | {"tensors": 1}
B.lfs-pointer | rejected | HeaderTooLarge | header too large
B.lfs-pointer-crlf | rejected | HeaderTooLarge | header too large
B.lfs-pointer-all | rejected | HeaderTooLarge | header too large
B.html | rejected | HeaderTooLarge | header too large
B.html-bom | rejected | HeaderTooLarge | header too large
B.json-error | rejected | HeaderTooLarge | header too large
B.text-error | rejected | HeaderTooLarge | header too large
B.xml-error | rejected | HeaderTooLarge | header too large
B.zero-byte | rejected | HeaderTooSmall | header too small
B.truncated-data | rejected | MetadataIncompleteBuffer | incomplete metadata, file not fully covered
B.truncated-header | rejected | InvalidHeaderLength | invalid header length
B.zero-filled | rejected | InvalidHeaderDeserialization | EOF while parsing a value
B.zero-filled-tail | accepted |  |  | {"tensors": 1}
B.gzip | rejected | InvalidHeaderLength | invalid header length
B.zip-inside | rejected | HeaderTooLarge | header too large
B.gguf-inside | rejected | HeaderTooLarge | header too large
B.pickle-inside | rejected | HeaderTooSmall | header too small
B.dir-as-shard | rejected | MmapFailed | No such device (os error 19)
B.download-incomplete | rejected | InvalidHeaderLength | invalid header length
B.download-part | rejected | InvalidHeaderLength | invalid header length
B.download-crdownload | rejected | InvalidHeaderLength | invalid header length
B.download-tmp | rejected | InvalidHeaderLength | invalid header length
B.download-aria2 | rejected | InvalidHeaderLength | invalid header length
C.ok | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.ok-plain-zip | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.ok-other-root | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.ok-unicode-root | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.ok-empty-storage | accepted |  |  | {"entries": 7, "data_pkl": 137}
C.ok-no-format-version | accepted |  |  | {"entries": 3, "data_pkl": 141}
C.no-eocd | rejected | BadZipFile | File is not a zip file
C.no-eocd-zip64 | rejected | BadZipFile | File is not a zip file
C.truncated-tail | rejected | BadZipFile | File is not a zip file
C.truncated-middle | rejected | BadZipFile | File is not a zip file
C.truncated-head | accepted |  |  | {"entries": 7, "data_pkl": "OSError: [Errno 22] Invalid argument"}
C.only-magic | rejected | BadZipFile | File is not a zip file
C.empty-zip | accepted |  |  | {"entries": 0}
C.two-eocd-comment | accepted |  |  | {"entries": 0}
C.two-eocd-archives | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.two-eocd-adjacent | rejected | BadZipFile | Bad magic number for central directory
C.eocd-signature-in-data | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.comment-65535 | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.comment-signatures | rejected | BadZipFile | File is not a zip file
C.comment-ansi | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.comment-length-lie | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.trailing-junk | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.trailing-70k | rejected | BadZipFile | File is not a zip file
C.prefix-junk | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.prefix-adjusted | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.prefix-safetensors | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.prefix-pickle | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.count-more | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.count-less | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.count-zero | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.count-disagree | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.count-huge | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.cd-size-lie | rejected | BadZipFile | Bad magic number for central directory
C.cd-past-eof | accepted |  |  | {"entries": 7, "data_pkl": "OSError: [Errno 22] Invalid argument"}
C.cd-size-huge | rejected | BadZipFile | Bad offset for central directory
C.cd-bad-signature | rejected | BadZipFile | Bad magic number for central directory
C.cd-truncated-record | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.cd-name-overrun | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.cd-extra-overrun | rejected | BadZipFile | Corrupt extra field 0001 (size=65535)
C.cd-junk-between | rejected | BadZipFile | Bad magic number for central directory
C.multidisk | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.multidisk-zip64 | rejected | BadZipFile | zipfiles that span multiple disks are not supported
C.multidisk-entry | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-only | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-missing | rejected | BadZipFile | Bad offset for central directory
C.zip64-locator-past-eof | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-locator-2-64 | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-locator-zero | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-bad-signature | rejected | BadZipFile | Bad offset for central directory
C.zip64-record-size | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-cd-pos | accepted |  |  | {"entries": 7, "data_pkl": "OSError: [Errno 22] Invalid argument"}
C.zip64-cd-size | rejected | BadZipFile | Bad offset for central directory
C.zip64-disagree | accepted |  |  | {"entries": 7, "data_pkl": "BadZipFile: Bad magic number for file header"}
C.zip64-extensible | rejected | BadZipFile | Bad magic number for central directory
C.zip64-extra-ok | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-extra-missing | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-extra-short | rejected | BadZipFile | Corrupt zip64 extra field. Compress size not found.
C.zip64-extra-twice | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-extra-huge | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.zip64-extra-unneeded | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.no-data-pkl | accepted |  |  | {"entries": 7}
C.data-pkl-case | accepted |  |  | {"entries": 7}
C.data-pkl-at-root | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.data-pkl-deeper | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.data-pkl-empty | accepted |  |  | {"entries": 7, "data_pkl": 0}
C.data-pkl-not-pickle | accepted |  |  | {"entries": 7, "data_pkl": 5}
C.two-roots | accepted |  |  | {"entries": 14, "data_pkl": 141}
C.foreign-zip | accepted |  |  | {"entries": 2}
C.npz | accepted |  |  | {"entries": 1}
C.torchscript | accepted |  |  | {"entries": 9, "data_pkl": 141}
C.storage-missing | accepted |  |  | {"entries": 6, "data_pkl": 141}
C.storage-short | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.storage-long | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.storage-extra | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.storage-key-path | accepted |  |  | {"entries": 7, "data_pkl": 144}
C.version-99 | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.version-text | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.version-missing | accepted |  |  | {"entries": 6, "data_pkl": 141}
C.version-digits | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.byteorder-big | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.byteorder-odd | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.duplicate-data-pkl | accepted |  |  | {"entries": 8, "data_pkl": 4}
C.duplicate-identical | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.duplicate-case | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.duplicate-nul | accepted |  |  | {"entries": 8, "data_pkl": 2}
C.path-absolute | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-parent | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-parent-bare | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-backslash | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-drive | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-nul | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-double-slash | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.path-dot | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-empty | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-65535 | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-not-utf8 | rejected | UnicodeDecodeError | 'utf-8' codec can't decode byte 0xff in position 8: invalid start byte
C.name-cp437 | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-ansi | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-dir-entry | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-dir-with-data | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.name-unicode-path-extra | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.symlink-entry | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.entry-past-eof | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.entry-in-directory | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.entry-no-local-header | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.overlap-same | accepted |  |  | {"entries": 8, "data_pkl": 141}
C.overlap-partial | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.overlap-directory | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.overlap-1000 | accepted |  |  | {"entries": 1001, "data_pkl": 141}
C.many-entries | accepted |  |  | {"entries": 503, "data_pkl": 141}
C.size-4g | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.size-pkl-4g | accepted |  |  | {"entries": 7, "data_pkl": "EOFError: "}
C.size-stored-differs | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.size-zero | accepted |  |  | {"entries": 7, "data_pkl": "BadZipFile: Bad CRC-32 for file 'archive/data.pkl'"}
C.crc-wrong | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.crc-wrong-pkl | accepted |  |  | {"entries": 7, "data_pkl": "BadZipFile: Bad CRC-32 for file 'archive/data.pkl'"}
C.deflate-pkl | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.deflate-storage | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.deflate-bomb-pkl | accepted |  |  | {"entries": 7, "data_pkl": 4000004}
C.deflate-size-under | accepted |  |  | {"entries": 7, "data_pkl": "BadZipFile: Bad CRC-32 for file 'archive/data.pkl'"}
C.deflate-size-over | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.deflate-corrupt | accepted |  |  | {"entries": 7, "data_pkl": "error: Error -3 while decompressing data: invalid block type"}
C.deflate-truncated | accepted |  |  | {"entries": 7, "data_pkl": "BadZipFile: Bad CRC-32 for file 'archive/data.pkl'"}
C.method-9 | accepted |  |  | {"entries": 7, "data_pkl": "NotImplementedError: That compression method is not supported"}
C.method-12 | accepted |  |  | {"entries": 7, "data_pkl": "OSError: Invalid data stream"}
C.method-14 | accepted |  |  | {"entries": 7, "data_pkl": "LZMAError: Invalid or unsupported options"}
C.method-93 | accepted |  |  | {"entries": 7, "data_pkl": "NotImplementedError: That compression method is not supported"}
C.method-99 | accepted |  |  | {"entries": 7, "data_pkl": "NotImplementedError: That compression method is not supported"}
C.method-30583 | accepted |  |  | {"entries": 7, "data_pkl": "NotImplementedError: That compression method is not supported"}
C.encrypted | accepted |  |  | {"entries": 7, "data_pkl": "RuntimeError: File <ZipInfo filename='archive/data.pkl' file_size=141> is encrypted, password require..."}
C.encrypted-storage | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.encrypted-strong | accepted |  |  | {"entries": 7, "data_pkl": "NotImplementedError: strong encryption (flag bit 6)"}
C.encrypted-directory | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.encrypted-local-only | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.local-name | accepted |  |  | {"entries": 7, "data_pkl": "BadZipFile: File name in directory 'archive/data.pkl' and header b'archive/evil.pkl' differ."}
C.local-method | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.local-size | accepted |  |  | {"entries": 7, "data_pkl": 141}
C.local-extra-overrun | accepted |  |  | {"entries": 7, "data_pkl": "EOFError: "}
C.sparse-storage | accepted |  |  | {"entries": 7, "data_pkl": 143}
D.ok-state-dict | accepted |  |  | {"opcodes": 31}
D.ok-none | accepted |  |  | {"opcodes": 3}
D.proto-0-stack | rejected | dis:ValueError | stack not empty after STOP: [dict, str] | {"opcodes": 10}
D.ok-proto-0-dict | accepted |  |  | {"opcodes": 23}
D.ok-proto-1 | accepted |  |  | {"opcodes": 8}
D.ok-proto-4 | accepted |  |  | {"opcodes": 15}
D.ok-proto-5 | accepted |  |  | {"opcodes": 3}
D.ok-memo-reuse | rejected | dis:ValueError | memo key 0 already defined | {"opcodes": 9}
D.ok-two-frames | accepted |  |  | {"opcodes": 10}
D.legacy | accepted |  |  | {"opcodes": 3, "after_stop": 249, "pickles": 5}
D.legacy-magic | accepted |  |  | {"opcodes": 3, "after_stop": 249, "pickles": 5}
D.legacy-truncated | accepted |  |  | {"opcodes": 3, "after_stop": 239, "pickles": 5}
D.legacy-numel-lie | accepted |  |  | {"opcodes": 3, "after_stop": 249, "pickles": 5}
D.legacy-numel-negative | accepted |  |  | {"opcodes": 3, "after_stop": 249, "pickles": 5}
D.legacy-key-missing | accepted |  |  | {"opcodes": 3, "after_stop": 249, "pickles": 5}
D.empty | rejected | genops:ValueError | pickle exhausted before seeing STOP
D.only-proto | rejected | genops:ValueError | pickle exhausted before seeing STOP
D.only-stop | rejected | dis:ValueError | tries to pop 1 items from stack with only 0 items | {"opcodes": 1}
D.no-stop | rejected | genops:ValueError | pickle exhausted before seeing STOP
D.cut-proto | rejected | genops:ValueError | not enough data in stream to read uint1
D.cut-binint | rejected | genops:ValueError | not enough data in stream to read int4
D.cut-binint2 | rejected | genops:ValueError | not enough data in stream to read uint2
D.cut-binfloat | rejected | genops:ValueError | not enough data in stream to read float8
D.cut-binunicode-len | rejected | genops:ValueError | not enough data in stream to read uint4
D.cut-binunicode | rejected | genops:ValueError | expected 5 bytes in a unicodestring4, but only 2 remain
D.cut-short-binbytes | rejected | genops:ValueError | expected 9 bytes in a bytes1, but only 3 remain
D.cut-global-module | rejected | genops:ValueError | no newline found when trying to read stringnl
D.cut-global-name | rejected | genops:ValueError | no newline found when trying to read stringnl
D.cut-int-line | rejected | genops:ValueError | no newline found when trying to read stringnl
D.cut-long1 | rejected | genops:ValueError | not enough data in stream to read long1
D.cut-frame | rejected | genops:ValueError | not enough data in stream to read uint8
D.cut-binput | rejected | genops:ValueError | not enough data in stream to read uint1
D.cut-long-binget | rejected | genops:ValueError | not enough data in stream to read uint4
D.cut-ext4 | rejected | genops:ValueError | not enough data in stream to read int4
D.cut-state-dict | rejected | genops:ValueError | expected 3 bytes in a unicodestring4, but only 2 remain
D.trailing-data | accepted |  |  | {"opcodes": 3, "after_stop": 16, "pickles": 1}
D.trailing-pickle | accepted |  |  | {"opcodes": 3, "after_stop": 4, "pickles": 2}
D.trailing-foreign | accepted |  |  | {"opcodes": 3, "after_stop": 28, "pickles": 2}
D.opcode-ff | rejected | genops:ValueError | at position 2, opcode b'\xff' unknown
D.opcode-00 | rejected | genops:ValueError | at position 2, opcode b'\x00' unknown
D.opcode-99 | rejected | genops:ValueError | at position 2, opcode b'\x99' unknown
D.opcode-upper-a | rejected | genops:ValueError | at position 2, opcode b'A' unknown
D.proto-6 | accepted |  |  | {"opcodes": 3}
D.proto-255 | accepted |  |  | {"opcodes": 3}
D.proto-lower | accepted |  |  | {"opcodes": 4}
D.proto-twice | accepted |  |  | {"opcodes": 6}
D.proto-20k | accepted |  |  | {"opcodes": 20002}
D.length-binbytes8-2-63 | rejected | genops:ValueError | bytes8 byte count > sys.maxsize: 9223372036854775808
D.length-binbytes8-max | rejected | genops:ValueError | bytes8 byte count > sys.maxsize: 18446744073709551615
D.length-binbytes8-1t | rejected | genops:ValueError | expected 1099511627776 bytes in a bytes8, but only 3 remain
D.length-binbytes-4g | rejected | genops:ValueError | expected 4294967295 bytes in a bytes4, but only 3 remain
D.length-binunicode-4g | rejected | genops:ValueError | expected 4294967295 bytes in a unicodestring4, but only 3 remain
D.length-binunicode8-1t | rejected | genops:ValueError | expected 1099511627776 bytes in a unicodestring8, but only 3 remain
D.length-binunicode8-max | rejected | genops:ValueError | unicodestring8 byte count > sys.maxsize: 18446744073709551615
D.length-bytearray8-4e | rejected | genops:ValueError | expected 4611686018427387904 bytes in a bytearray8, but only 3 remain
D.length-long4-2g | rejected | genops:ValueError | not enough data in stream to read long4
D.length-long4-negative | rejected | genops:ValueError | long4 byte count < 0: -1
D.length-long1-255 | rejected | genops:ValueError | not enough data in stream to read long1
D.length-binstring-negative | rejected | genops:ValueError | string4 byte count < 0: -1
D.length-binstring-2g | rejected | genops:ValueError | expected 2147483647 bytes in a string4, but only 3 remain
D.length-short-binunicode | rejected | genops:ValueError | expected 255 bytes in a unicodestring1, but only 3 remain
D.length-swallows-stop | rejected | genops:ValueError | pickle exhausted before seeing STOP
D.frame-2-63 | accepted |  |  | {"opcodes": 4}
D.frame-long | accepted |  |  | {"opcodes": 4}
D.frame-short | accepted |  |  | {"opcodes": 6}
D.frame-splits-opcode | accepted |  |  | {"opcodes": 4}
D.frame-nested | accepted |  |  | {"opcodes": 5}
D.frame-zero | accepted |  |  | {"opcodes": 4}
D.frame-5k | accepted |  |  | {"opcodes": 10004}
D.memo-unset-binget | rejected | dis:ValueError | memo key 7 has never been stored into | {"opcodes": 3}
D.memo-unset-long | rejected | dis:ValueError | memo key 4294967295 has never been stored into | {"opcodes": 3}
D.memo-unset-text | rejected | dis:ValueError | memo key 7 has never been stored into | {"opcodes": 2}
D.memo-forward | rejected | dis:ValueError | memo key 0 has never been stored into | {"opcodes": 6}
D.memo-huge-put | accepted |  |  | {"opcodes": 4}
D.memo-huge-put-2g | accepted |  |  | {"opcodes": 4}
D.memo-text-huge | accepted |  |  | {"opcodes": 4}
D.memo-text-5000-digits | rejected | genops:ValueError | Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits; u...
D.memo-text-negative | accepted |  |  | {"opcodes": 4}
D.memo-text-nan | rejected | genops:ValueError | invalid literal for int() with base 10: b'abc'
D.memo-text-empty | rejected | genops:ValueError | invalid literal for int() with base 10: b''
D.memo-empty-stack | rejected | dis:ValueError | stack is empty -- can't store into memo | {"opcodes": 4}
D.memoize-empty-stack | rejected | dis:ValueError | stack is empty -- can't store into memo | {"opcodes": 4}
D.memoize-over-mark | rejected | dis:ValueError | can't store markobject in the memo | {"opcodes": 5}
D.memoize-50k | accepted |  |  | {"opcodes": 50003}
D.mark-missing-tuple | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-missing-list | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-missing-dict | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-missing-appends | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 4}
D.mark-missing-setitems | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 4}
D.mark-missing-pop-mark | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-missing-additems | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 4}
D.mark-missing-frozenset | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-missing-obj | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-missing-inst | rejected | dis:ValueError | no MARK exists on stack | {"opcodes": 3}
D.mark-100k | rejected | dis:ValueError | stack not empty after STOP: [mark, mark, mark, mark, mark, mark, mark, mark, mark, mark... | {"opcodes": 100002}
D.mark-left | rejected | dis:ValueError | stack not empty after STOP: [mark] | {"opcodes": 4}
D.mark-object-missing | accepted |  |  | {"opcodes": 4}
D.underflow-append | rejected | dis:ValueError | tries to pop 2 items from stack with only 1 items | {"opcodes": 4}
D.underflow-setitem | rejected | dis:ValueError | tries to pop 3 items from stack with only 2 items | {"opcodes": 5}
D.underflow-tuple3 | rejected | dis:ValueError | tries to pop 3 items from stack with only 1 items | {"opcodes": 4}
D.underflow-reduce | rejected | dis:ValueError | tries to pop 2 items from stack with only 1 items | {"opcodes": 4}
D.underflow-build | rejected | dis:ValueError | tries to pop 2 items from stack with only 1 items | {"opcodes": 4}
D.underflow-binpersid | rejected | dis:ValueError | tries to pop 1 items from stack with only 0 items | {"opcodes": 3}
D.underflow-dup | rejected | dis:ValueError | tries to pop 1 items from stack with only 0 items | {"opcodes": 3}
D.underflow-pop | rejected | dis:ValueError | tries to pop 1 items from stack with only 0 items | {"opcodes": 3}
D.underflow-stack-global | rejected | dis:ValueError | tries to pop 2 items from stack with only 1 items | {"opcodes": 4}
D.underflow-newobj-ex | rejected | dis:ValueError | tries to pop 3 items from stack with only 2 items | {"opcodes": 5}
D.stack-left | rejected | dis:ValueError | stack not empty after STOP: [None] | {"opcodes": 4}
D.setitems-odd | accepted |  |  | {"opcodes": 8}
D.dict-odd | accepted |  |  | {"opcodes": 7}
D.dup-40k | rejected | dis:ValueError | stack not empty after STOP: [any, any, any, any, any, any, any, any, any, any, any, any... | {"opcodes": 40003}
D.pop-mark-cleans | accepted |  |  | {"opcodes": 8}
D.deep-lists-100k | accepted |  |  | {"opcodes": 200001}
D.deep-tuples-100k | accepted |  |  | {"opcodes": 100003}
D.deep-marks-25k | accepted |  |  | {"opcodes": 50002}
D.deep-dicts-8k | accepted |  |  | {"opcodes": 24003}
D.deep-reduce-5k | rejected | dis:ValueError | memo key 1 already defined | {"opcodes": 30006}
D.cycle-list | accepted |  |  | {"opcodes": 6}
D.cycle-dict | accepted |  |  | {"opcodes": 7}
D.cycle-pair | accepted |  |  | {"opcodes": 38}
D.cycle-tuple | accepted |  |  | {"opcodes": 10}
D.cycle-state | accepted |  |  | {"opcodes": 11}
D.shared-tuples-60 | accepted |  |  | {"opcodes": 306}
D.shared-lists-60 | accepted |  |  | {"opcodes": 426}
D.shared-dicts-60 | accepted |  |  | {"opcodes": 570}
D.shared-key-60 | accepted |  |  | {"opcodes": 309}
D.shared-args-60 | accepted |  |  | {"opcodes": 308}
D.big-string-shared | accepted |  |  | {"opcodes": 20008}
D.appends-1m | accepted |  |  | {"opcodes": 1000005}
D.append-single-30k | accepted |  |  | {"opcodes": 60003}
D.tensors-500 | accepted |  |  | {"opcodes": 13005}
D.key-list | accepted |  |  | {"opcodes": 6}
D.key-dict | accepted |  |  | {"opcodes": 7}
D.key-tuple-list | accepted |  |  | {"opcodes": 7}
D.key-set-element | accepted |  |  | {"opcodes": 6}
D.key-tensor | accepted |  |  | {"opcodes": 30}
D.key-foreign | accepted |  |  | {"opcodes": 34}
D.key-types | accepted |  |  | {"opcodes": 24}
D.key-duplicate | accepted |  |  | {"opcodes": 55}
D.key-equal-numbers | accepted |  |  | {"opcodes": 11}
D.key-ansi | accepted |  |  | {"opcodes": 31}
D.key-surrogate | accepted |  |  | {"opcodes": 31}
D.key-empty-and-dots | accepted |  |  | {"opcodes": 112}
D.target-append-none | accepted |  |  | {"opcodes": 5}
D.target-appends-tuple | accepted |  |  | {"opcodes": 6}
D.target-setitem-none | accepted |  |  | {"opcodes": 6}
D.target-setitem-list | accepted |  |  | {"opcodes": 8}
D.target-setitems-tensor | accepted |  |  | {"opcodes": 31}
D.target-additems-list | accepted |  |  | {"opcodes": 6}
D.target-append-odict | accepted |  |  | {"opcodes": 7}
D.text-int-underscore | accepted |  |  | {"opcodes": 2}
D.text-int-spaces | accepted |  |  | {"opcodes": 2}
D.text-int-hex | rejected | genops:ValueError | invalid literal for int() with base 10: b'0x10'
D.text-int-plus | accepted |  |  | {"opcodes": 2}
D.text-int-empty | rejected | genops:ValueError | invalid literal for int() with base 10: b''
D.text-int-text | rejected | genops:ValueError | invalid literal for int() with base 10: b'abc'
D.text-int-5000-digits | rejected | genops:ValueError | Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits; u...
D.text-int-unicode-digits | rejected | genops:ValueError | invalid literal for int() with base 10: b'\xd9\xa1\xd9\xa2'
D.text-int-cr | accepted |  |  | {"opcodes": 2}
D.text-bool-001 | accepted |  |  | {"opcodes": 2}
D.text-long-no-suffix | accepted |  |  | {"opcodes": 2}
D.text-long-underscore | accepted |  |  | {"opcodes": 2}
D.text-long-5000-digits | rejected | genops:ValueError | Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits; u...
D.text-long-only-suffix | rejected | genops:ValueError | invalid literal for int() with base 10: b''
D.text-float-underscore | accepted |  |  | {"opcodes": 2}
D.text-float-empty | rejected | genops:ValueError | could not convert string to float: b''
D.text-float-hex | rejected | genops:ValueError | could not convert string to float: b'0x1p3'
D.text-float-text | rejected | genops:ValueError | could not convert string to float: b'abc'
D.text-string-no-quotes | rejected | genops:ValueError | no string quotes around b'abc'
D.text-string-mismatch | rejected | genops:ValueError | strinq quote b"'" not found at both ends of b'\'abc"'
D.text-string-one-quote | accepted |  |  | {"opcodes": 2}
D.text-string-bad-escape | rejected | genops:ValueError | invalid \x escape at position 0
D.text-string-inner-quote | accepted |  |  | {"opcodes": 2}
D.float-1e400 | accepted |  |  | {"opcodes": 2}
D.float-nan | accepted |  |  | {"opcodes": 2}
D.float-inf | accepted |  |  | {"opcodes": 2}
D.binfloat-nonfinite | accepted |  |  | {"opcodes": 10}
D.long1-255 | accepted |  |  | {"opcodes": 3}
D.long4-20k | rejected | dis:ValueError | Exceeds the limit (4300 digits) for integer string conversion; use sys.set_int_max_str_... | {"opcodes": 3}
D.long1-zero | accepted |  |  | {"opcodes": 3}
D.utf8-invalid | rejected | genops:UnicodeDecodeError | 'utf-8' codec can't decode byte 0xff in position 1: invalid start byte
D.utf8-cut | rejected | genops:UnicodeDecodeError | 'utf-8' codec can't decode bytes in position 1-2: unexpected end of data
D.utf8-overlong | rejected | genops:UnicodeDecodeError | 'utf-8' codec can't decode byte 0xc0 in position 1: invalid start byte
D.utf8-surrogate | accepted |  |  | {"opcodes": 3}
D.unicode-surrogate-text | accepted |  |  | {"opcodes": 2}
D.unicode-bad-escape | rejected | genops:UnicodeDecodeError | 'rawunicodeescape' codec can't decode bytes in position 0-3: truncated \uXXXX escape
D.unicode-out-of-range | rejected | genops:UnicodeDecodeError | 'rawunicodeescape' codec can't decode bytes in position 0-9: \Uxxxxxxxx out of range
D.binstring-latin1 | accepted |  |  | {"opcodes": 30}
D.next-buffer | accepted |  |  | {"opcodes": 3}
D.next-buffer-readonly | accepted |  |  | {"opcodes": 4}
D.readonly-none | accepted |  |  | {"opcodes": 4}
D.ext1 | accepted |  |  | {"opcodes": 3}
D.ext1-zero | accepted |  |  | {"opcodes": 3}
D.ext2 | accepted |  |  | {"opcodes": 3}
D.ext4 | accepted |  |  | {"opcodes": 3}
D.ext4-negative | accepted |  |  | {"opcodes": 3}
D.ext1-reduce | accepted |  |  | {"opcodes": 5}
D.persid-text | accepted |  |  | {"opcodes": 2}
D.persid-text-nonascii | rejected | genops:UnicodeDecodeError | 'ascii' codec can't decode byte 0xff in position 0: ordinal not in range(128)
D.persid-int | accepted |  |  | {"opcodes": 24}
D.persid-none | accepted |  |  | {"opcodes": 24}
D.persid-short | accepted |  |  | {"opcodes": 26}
D.persid-kind | accepted |  |  | {"opcodes": 30}
D.persid-kind-type | accepted |  |  | {"opcodes": 30}
D.persid-key-int | accepted |  |  | {"opcodes": 30}
D.persid-key-none | accepted |  |  | {"opcodes": 30}
D.persid-key-path | accepted |  |  | {"opcodes": 30}
D.persid-key-ansi | accepted |  |  | {"opcodes": 30}
D.persid-numel-negative | accepted |  |  | {"opcodes": 30}
D.persid-numel-huge | accepted |  |  | {"opcodes": 30}
D.persid-numel-2-80 | accepted |  |  | {"opcodes": 30}
D.persid-numel-string | accepted |  |  | {"opcodes": 30}
D.persid-numel-float | accepted |  |  | {"opcodes": 30}
D.persid-numel-bool | accepted |  |  | {"opcodes": 30}
D.persid-location | accepted |  |  | {"opcodes": 30}
D.persid-location-type | accepted |  |  | {"opcodes": 30}
D.persid-type-string | accepted |  |  | {"opcodes": 30}
D.persid-type-unknown | accepted |  |  | {"opcodes": 30}
D.persid-type-foreign | accepted |  |  | {"opcodes": 30}
D.persid-extra | accepted |  |  | {"opcodes": 32}
D.persid-two-dtypes | accepted |  |  | {"opcodes": 57}
D.foreign-reduce | accepted |  |  | {"opcodes": 7}
D.foreign-stack-global | accepted |  |  | {"opcodes": 9}
D.foreign-inst | accepted |  |  | {"opcodes": 5}
D.foreign-obj | accepted |  |  | {"opcodes": 6}
D.foreign-newobj | accepted |  |  | {"opcodes": 7}
D.foreign-newobj-ex | accepted |  |  | {"opcodes": 8}
D.foreign-no-call | accepted |  |  | {"opcodes": 3}
D.foreign-py2-name | accepted |  |  | {"opcodes": 7}
D.foreign-memo-name | accepted |  |  | {"opcodes": 15}
D.foreign-dup-name | accepted |  |  | {"opcodes": 14}
D.foreign-popped | accepted |  |  | {"opcodes": 9}
D.foreign-pop-mark | accepted |  |  | {"opcodes": 10}
D.foreign-memo-only | accepted |  |  | {"opcodes": 10}
D.foreign-overwritten | accepted |  |  | {"opcodes": 13}
D.foreign-in-state-dict | accepted |  |  | {"opcodes": 40}
D.foreign-dotted | accepted |  |  | {"opcodes": 5}
D.foreign-torch-prefix | accepted |  |  | {"opcodes": 5}
D.foreign-torch-unknown | accepted |  |  | {"opcodes": 5}
D.foreign-homoglyph | accepted |  |  | {"opcodes": 5}
D.foreign-5000 | accepted |  |  | {"opcodes": 10003}
D.foreign-chain | accepted |  |  | {"opcodes": 10}
D.foreign-getattr | accepted |  |  | {"opcodes": 10}
D.foreign-build-setstate | accepted |  |  | {"opcodes": 10}
D.foreign-numpy | accepted |  |  | {"opcodes": 14}
D.nested-load-from-bytes | accepted |  |  | {"opcodes": 7}
D.nested-pickle-loads | accepted |  |  | {"opcodes": 7}
D.global-int | accepted |  |  | {"opcodes": 5}
D.global-none | accepted |  |  | {"opcodes": 5}
D.global-list | accepted |  |  | {"opcodes": 5}
D.global-bytes | accepted |  |  | {"opcodes": 5}
D.global-computed | accepted |  |  | {"opcodes": 7}
D.global-newline | accepted |  |  | {"opcodes": 5}
D.global-ansi | accepted |  |  | {"opcodes": 5}
D.global-empty | accepted |  |  | {"opcodes": 3}
D.global-empty-name | accepted |  |  | {"opcodes": 3}
D.global-dots | accepted |  |  | {"opcodes": 3}
D.global-spaces | accepted |  |  | {"opcodes": 3}
D.global-cr | accepted |  |  | {"opcodes": 3}
D.global-nonascii | rejected | genops:UnicodeDecodeError | 'ascii' codec can't decode byte 0xc3 in position 1: ordinal not in range(128)
D.global-not-utf8 | rejected | genops:UnicodeDecodeError | 'ascii' codec can't decode byte 0xff in position 5: ordinal not in range(128)
D.global-nul | accepted |  |  | {"opcodes": 3}
D.global-long | accepted |  |  | {"opcodes": 3}
D.global-bidi | rejected | genops:UnicodeDecodeError | 'ascii' codec can't decode byte 0xe2 in position 0: ordinal not in range(128)
D.global-path | accepted |  |  | {"opcodes": 3}
D.reduce-string | accepted |  |  | {"opcodes": 5}
D.reduce-none | accepted |  |  | {"opcodes": 5}
D.reduce-args-list | accepted |  |  | {"opcodes": 5}
D.reduce-args-none | accepted |  |  | {"opcodes": 5}
D.reduce-args-int | accepted |  |  | {"opcodes": 5}
D.newobj-string | accepted |  |  | {"opcodes": 5}
D.newobj-ex-kwargs | accepted |  |  | {"opcodes": 6}
D.build-none | accepted |  |  | {"opcodes": 8}
D.build-int | accepted |  |  | {"opcodes": 8}
D.build-list | accepted |  |  | {"opcodes": 8}
D.build-string | accepted |  |  | {"opcodes": 8}
D.build-global | accepted |  |  | {"opcodes": 8}
D.build-none-state | accepted |  |  | {"opcodes": 7}
D.build-int-state | accepted |  |  | {"opcodes": 7}
D.build-slots | accepted |  |  | {"opcodes": 13}
D.build-metadata | accepted |  |  | {"opcodes": 12}
D.build-dunder | accepted |  |  | {"opcodes": 13}
D.build-int-keys | accepted |  |  | {"opcodes": 10}
D.build-20k | accepted |  |  | {"opcodes": 40005}
D.tensor-no-args | accepted |  |  | {"opcodes": 9}
D.tensor-few-args | accepted |  |  | {"opcodes": 19}
D.tensor-many-args | accepted |  |  | {"opcodes": 35}
D.tensor-offset-negative | accepted |  |  | {"opcodes": 31}
D.tensor-offset-huge | accepted |  |  | {"opcodes": 31}
D.tensor-offset-string | accepted |  |  | {"opcodes": 31}
D.tensor-size-negative | accepted |  |  | {"opcodes": 31}
D.tensor-size-string | accepted |  |  | {"opcodes": 31}
D.tensor-size-int | accepted |  |  | {"opcodes": 28}
D.tensor-size-list | accepted |  |  | {"opcodes": 32}
D.tensor-size-float | accepted |  |  | {"opcodes": 31}
D.tensor-size-bool | accepted |  |  | {"opcodes": 31}
D.tensor-rank-mismatch | accepted |  |  | {"opcodes": 30}
D.tensor-stride-negative | accepted |  |  | {"opcodes": 31}
D.tensor-stride-none | accepted |  |  | {"opcodes": 28}
D.tensor-overflow | accepted |  |  | {"opcodes": 31}
D.tensor-past-storage | accepted |  |  | {"opcodes": 31}
D.tensor-past-storage-stride | accepted |  |  | {"opcodes": 31}
D.tensor-expanded | accepted |  |  | {"opcodes": 29}
D.tensor-overlapping-view | accepted |  |  | {"opcodes": 31}
D.tensor-transposed | accepted |  |  | {"opcodes": 31}
D.tensor-rank-1000 | accepted |  |  | {"opcodes": 2027}
D.tensor-zero-size | accepted |  |  | {"opcodes": 31}
D.tensor-store-none | accepted |  |  | {"opcodes": 24}
D.tensor-store-int | accepted |  |  | {"opcodes": 24}
D.tensor-store-foreign | accepted |  |  | {"opcodes": 26}
D.tensor-parameter | accepted |  |  | {"opcodes": 39}
D.tensor-parameter-nested | accepted |  |  | {"opcodes": 47}
D.tensor-parameter-of-none | accepted |  |  | {"opcodes": 15}
D.tensor-v1 | accepted |  |  | {"opcodes": 28}
D.tensor-unknown-func | accepted |  |  | {"opcodes": 31}
D.tensor-meta-dict | accepted |  |  | {"opcodes": 34}
E.symlink-dangling | rejected | FileNotFound | No such file or directory: PATH
E.symlink-self | rejected | FileNotFound | No such file or directory: PATH
E.symlink-dev-null | rejected | MmapFailed | No such device (os error 19)
E.fifo | hangs | Timeout
E.socket | rejected | FileNotFound | No such file or directory: PATH
E.dir-named-model-safetensors | rejected | MmapFailed | No such device (os error 19)
E.name-not-utf8 | accepted |  |  | {"tensors": 1}
E.name-newline | accepted |  |  | {"tensors": 1}
E.sparse-1tib | accepted |  |  | {"tensors": 1}
E.sparse-1tib-zero | rejected | InvalidHeaderDeserialization | EOF while parsing a value
F.meta-values | accepted |  |  | {"tensors": 1}
F.meta-keys | accepted |  |  | {"tensors": 1}
F.meta-json-in-value | accepted |  |  | {"tensors": 1}
F.meta-tensor-names | accepted |  |  | {"tensors": 4}
F.meta-header-error | rejected | InvalidHeaderDeserialization | expected value
F.meta-dtype-error | rejected | InvalidHeaderDeserialization | unknown variant `hf_(...)`, expected one of ...
"""


if __name__ == "__main__":
    sys.exit(main())

"""The names of the documents that shardscope prints or reads, apart from their structs so that `--version` loads none.

The number behind the slash rises when a field goes or changes its meaning, never when a field comes.
"""

from typing import Final

DESCRIPTOR: Final = "shardscope.descriptor/1"
DESCRIPTORS: Final = "shardscope.descriptors/1"
TENSORS: Final = "shardscope.tensors/1"
CATALOGUE: Final = "shardscope.catalogue/1"
CODES: Final = "shardscope.codes/1"
SCHEMAS: Final = "shardscope.schemas/1"
ERROR: Final = "shardscope.error/1"
CAPABILITY: Final = "shardscope.capability/1"
MATRIX: Final = "shardscope.matrix/1"
GLOSSARY: Final = "shardscope.glossary/1"
SOURCES: Final = "shardscope.sources/1"
VALIDATION: Final = "shardscope.validation/1"
SHARD_MAP: Final = "shardscope.shardmap/1"
LOWERED: Final = "shardscope.lowered/1"
MAP_CHECK: Final = "shardscope.map-check/1"
MAP_EXPLANATION: Final = "shardscope.map-explanation/1"
TRANSFER: Final = "shardscope.transfer/1"
MAP_DIFFERENCE: Final = "shardscope.map-difference/1"
MAP_APPLIED: Final = "shardscope.map-applied/1"
PLAN: Final = "shardscope.plan/1"
RENAMES: Final = "shardscope.renames/1"
MANIFEST: Final = "shardscope.manifest/1"
RUN: Final = "shardscope.run/1"
VERIFICATION: Final = "shardscope.verification/1"
FIX: Final = "shardscope.fix/1"
DIFF: Final = "shardscope.diff/1"
MODEL: Final = "shardscope.model/1"
MAPPING: Final = "shardscope.mapping/1"
BUNDLE: Final = "shardscope.bundle/1"
STAGING: Final = "shardscope.staging/1"
REPORT: Final = "shardscope.report/1"
REPORT_MANIFEST: Final = "shardscope.report-manifest/1"
REPORT_BUNDLE: Final = "shardscope.report-bundle/1"
REPORT_DIFFERENCE: Final = "shardscope.report-difference/1"
LEFTOVERS: Final = "shardscope.leftovers/1"
LAYOUT: Final = "shardscope.layout/1"
WATCH: Final = "shardscope.watch/1"
BENCH: Final = "shardscope.bench/1"
PEEK: Final = "shardscope.peek/1"
SCAN: Final = "shardscope.scan/1"
PICKLES: Final = "shardscope.pickles/1"
SETTINGS: Final = "shardscope.settings/1"

NAMES: Final = (
    DESCRIPTOR,
    DESCRIPTORS,
    WATCH,
    TENSORS,
    CATALOGUE,
    LAYOUT,
    PICKLES,
    CODES,
    SCHEMAS,
    ERROR,
    CAPABILITY,
    MATRIX,
    GLOSSARY,
    SOURCES,
    VALIDATION,
    SHARD_MAP,
    LOWERED,
    MAP_CHECK,
    MAP_EXPLANATION,
    TRANSFER,
    MAP_DIFFERENCE,
    MAP_APPLIED,
    MAPPING,
    BUNDLE,
    PLAN,
    FIX,
    RENAMES,
    MANIFEST,
    RUN,
    VERIFICATION,
    DIFF,
    PEEK,
    SCAN,
    MODEL,
    STAGING,
    LEFTOVERS,
    REPORT,
    REPORT_MANIFEST,
    REPORT_BUNDLE,
    REPORT_DIFFERENCE,
    SETTINGS,
    BENCH,
)
"""Every document, in the order of display."""

AUTHORED: Final = (SHARD_MAP, LOWERED, MAPPING, BUNDLE, RENAMES)
"""Those that a person may write: a field with a default may be left out of them."""

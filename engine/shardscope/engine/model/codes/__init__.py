"""The table of codes: every blocker there is, in one closed mapping.

One module for each area; `docs/codes.md` is generated from here. Codes are dotted, lower case, and never change
their meaning: a new meaning is a new code.
"""

from typing import Final

from shardscope.engine.model.blocker import Code
from shardscope.engine.model.codes import (
    arrays,
    bundle,
    capability,
    claims,
    cluster,
    command,
    config,
    consolidated,
    containers,
    copies,
    dcp,
    dcp_decoded,
    deepspeed,
    deepspeed_decoded,
    documents,
    files,
    fsdp,
    fsdp_decoded,
    headers,
    index,
    internal,
    isolation,
    json,
    layout,
    limits,
    mapping,
    maps,
    megatron,
    megatron_decoded,
    pickles,
    plans,
    promotion,
    recognised,
    resume,
    source,
    staging,
    torch_files,
    tracker,
    trust,
    universal,
)

CODES: Final[dict[str, Code]] = {
    row.code: row
    for table in (
        source.TABLE,
        files.TABLE,
        json.TABLE,
        headers.TABLE,
        containers.TABLE,
        copies.TABLE,
        index.TABLE,
        config.TABLE,
        layout.TABLE,
        dcp.TABLE,
        dcp_decoded.TABLE,
        fsdp.TABLE,
        fsdp_decoded.TABLE,
        tracker.TABLE,
        deepspeed.TABLE,
        deepspeed_decoded.TABLE,
        megatron.TABLE,
        megatron_decoded.TABLE,
        trust.TABLE,
        pickles.TABLE,
        plans.TABLE,
        cluster.TABLE,
        isolation.TABLE,
        torch_files.TABLE,
        consolidated.TABLE,
        recognised.TABLE,
        capability.TABLE,
        documents.TABLE,
        claims.TABLE,
        limits.TABLE,
        maps.TABLE,
        mapping.TABLE,
        universal.TABLE,
        arrays.TABLE,
        bundle.TABLE,
        staging.TABLE,
        promotion.TABLE,
        resume.TABLE,
        command.TABLE,
        internal.TABLE,
    )
    for row in table
}
"""Every code, by its dotted name."""

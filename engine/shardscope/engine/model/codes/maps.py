"""Shard maps. An invalid map contradicts itself; an unsupported layout is legitimate geometry that this engine leaves alone."""

from typing import Final

from shardscope.engine.model.blocker import Blocks, Code, Severity, Stage
from shardscope.engine.model.exits import ExitCode


def _row(code: str, message: str, remedy: str, meaning: str) -> Code:
    blocks = (Blocks.CONVERT, Blocks.LOAD)
    return Code(code, Severity.ERROR, Stage.VALIDATE, message, remedy, meaning, blocks, ExitCode.UNSUPPORTED)


TABLE: Final = (
    _row(
        "map.unproven",
        "The layout cannot be proven: {reason:word}.",
        "Describe it with steps that divide each other, or as boxes; nothing is guessed.",
        "Coverage is proven by writing addresses in digits taken from the steps of the pieces. Steps that form no "
        "divisibility chain, or dimensions that run into each other, have no such digits; they are written out slice by "
        "slice as far as a small budget goes. The layout may well be sound: it is not supported, and not called invalid.",
    ),
    _row(
        "map.unsupported_stride",
        "Piece {piece:count} of rank {rank:word} has a step of {found:count} on its {side:word} side.",
        "Describe the layout with steps of at least 1.",
        "A step below 1 reads a dimension backwards, or one element many times. Both are views that some frameworks "
        "allow; neither is a way in which a shard is stored, and this engine leaves them alone.",
    ),
    _row(
        "map.unsupported_size",
        "The {side:word} has more elements than the {limit:count} that have an address.",
        "Check the shape: no tensor of this size exists.",
        "Addresses are signed 64-bit numbers of elements.",
    ),
    _row(
        "map.malformed",
        "Piece {piece:count} of rank {rank:word} is malformed: {reason:word}.",
        "Write the map again with the tool that made it; its numbers do not form pieces.",
        "A piece has as many steps on each side as extents, all of them whole numbers, extents of at least 0, a sorted "
        "set of holders and a factor in lowest terms.",
    ),
    _row(
        "map.rank_labels",
        "The labels of the ranks are not whole numbers that occur once each: {found:word}.",
        "Give every rank its own number; gaps and any order are fine.",
        "Shards are found by their rank's label. A label that occurs twice leaves open which shard is meant.",
    ),
    _row(
        "map.out_of_bounds",
        "Piece {piece:count} of rank {rank:word} reaches element {found:count} of the {side:word}, which has {limit:count}.",
        "Correct the piece, or the shape that it is measured against.",
        "The last address of a piece lies beyond the tensor or beyond the shard. An empty piece reaches nothing and may "
        "start one past the end.",
    ),
    _row(
        "map.scale_zero",
        "Piece {piece:count} of rank {rank:word} multiplies by zero.",
        "Store the values that were trained; a factor of zero has no inverse.",
        "The full tensor is the shard divided by the factor.",
    ),
    _row(
        "map.uncovered",
        "{found:count element} of {total:count} are held by no rank; the first has the address {address:count}.",
        "Add the missing shard or piece. Nothing stands in for it.",
        "The shards together have to hold every element of the full tensor. Pieces without elements hold none.",
    ),
    _row(
        "map.destination_collision",
        "Rank {rank:word} has {found:count element} of its shard claimed by more than one piece; the first has the address "
        "{address:count}.",
        "Correct the addresses of the pieces in the shard; that their counts add up proves nothing.",
        "Two pieces that claim one address of a shard contradict each other, even where all counts are right: another "
        "address is then claimed by none.",
    ),
    _row(
        "map.shard_hole",
        "Rank {rank:word} has {found:count element} of its shard in no piece, and declares {declared:count} as padding; "
        "the first has the address {address:count}.",
        "Declare the padding, or add the piece that is missing.",
        "Every element of a shard is part of a piece or declared padding. One that is neither would be read as data, or "
        "left as it was.",
    ),
    _row(
        "map.shard_size",
        "The shard of rank {rank:word} has {found:count element}, the map says {expected:count}.",
        "Use the map that was saved with these shards.",
        "A shard that is longer than its map would be read in part and look whole; a shorter one would be read past its end.",
    ),
    _row(
        "map.shard_unknown",
        "Rank {rank:word} has a shard and no place in the map, or the other way round.",
        "Use the map that was saved with these shards, and all of them.",
        "The ranks of a map and the shards that it is used with have to be the same.",
    ),
    _row(
        "map.holders_self",
        "Piece {piece:count} of rank {rank:word} does not name its own rank among its holders: {holders:word}.",
        "Correct the holders: whoever has a piece holds it.",
        "A piece names all ranks that hold its elements, its own among them.",
    ),
    _row(
        "map.holders_unknown",
        "Piece {piece:count} of rank {rank:word} names rank {other:word} as a holder, which has no shard.",
        "Describe that rank's shard, or leave it out of the holders.",
        "A planner would read from a rank about whose shard nothing is known.",
    ),
    _row(
        "map.holders_differ",
        "Pieces with different holders share {found:count element}; the first has the address {address:count}, held by "
        "{one:word} in one and by {other:word} in another.",
        "Split the pieces where the holders change, and name the same holders in each.",
        "All elements of a piece have the same holders. A piece that spans the edge of a replicated region comes back "
        "right in one topology and misleads a planner in another.",
    ),
    _row(
        "map.holders_wrong",
        "{found:count element} {found:verb are} said to be held by {one:word} and have a place in the shards of {other:word}; the first has "
        "the address {address:count}.",
        "Name exactly the ranks whose shards have the elements.",
        "The holders that a piece names and the shards of those ranks have to agree.",
    ),
    _row(
        "map.shape_mismatch",
        "The source is a tensor of {source:word}, the target one of {target:word}.",
        "Use two maps of one tensor. Equal shapes alone do not prove that they are.",
        "Both sides of a transfer are layouts of the same full tensor, with any padding left out.",
    ),
    _row(
        "map.scaled",
        "Rank {rank:word} holds values multiplied by {factor:word}, where the values themselves are needed.",
        "Allow factors for this tensor if it is a weight; leave it alone if it is an optimizer state.",
        "A factor other than 1 is exact for powers of two and rounds otherwise. On an optimizer state it would also have to "
        "change the learning rate, which no geometry can.",
    ),
    _row(
        "map.replica_choice",
        "The choice among {holders:word} for rank {rank:word} was {found:word}.",
        "Choose one of the holders; leave the choice out to read from the lowest rank.",
        "A selector has to answer with the label of one of the ranks that hold the elements, every time the same.",
    ),
    _row(
        "map.budget",
        "The map needs {found:count} {budget:word}, more than the budget of {limit:count}.",
        "Raise the budget for this run if you expect a map like this; the result is refused whole, never cut short.",
        "Work on maps is bounded for each tensor. An exhausted budget refuses everything: a truncated plan is worse than "
        "none.",
    ),
    _row(
        "map.invalid",
        "The map contradicts itself at {place:name}: {reason:word}.",
        "Correct the map; see `shardscope schema shardmap` for the language.",
        "A node does not fit its input: widths that do not sum up, a dimension that is not there, an axis that the mesh "
        "lacks, indices beyond the tensor.",
    ),
    Code(
        "map.unreadable",
        Severity.ERROR,
        Stage.PARSE,
        "No document could be read: {problem:word}",
        "Give one file of JSON.",
        "Maps and their like are JSON documents, read whole and within bounds before anything is made of them.",
        exit=ExitCode.UNREADABLE,
    ),
    _row(
        "map.not_a_map",
        "{file:path} is {found:text}, and no shard map.",
        "Give a document of `shardscope schema shardmap` or `shardscope schema lowered`; "
        "`shardscope map from-deepspeed` makes one of DeepSpeed's entries.",
        "A shard map says with its key `schema` what it is. Nothing is guessed from the content.",
    ),
    _row(
        "map.version",
        "{file:path} has the schema {found:text}; this release reads {known:word}.",
        "Use a release of shardscope that knows this version.",
        "The number behind the slash rises when a field goes or changes its meaning, so a map of another version is not read "
        "as if it were the same.",
    ),
    _row(
        "map.document",
        "The shard map is not one at {place:name}: {problem:text}.",
        "Correct the field that is named; `shardscope schema shardmap` prints what is allowed.",
        "A shard map holds numbers, text and lists, and no field beyond those of its schema.",
    ),
    _row(
        "map.replicas_disagree",
        "Ranks {rank:word} and {other:word} should hold the same values and do not: they first differ at element "
        "{offset:count} of the {place:word}.",
        "Find out which of them is right; nothing is written while they disagree.",
        "Copies of the same elements on several ranks are compared byte for byte before one of them is taken. A difference is "
        "drift, a failed save or corruption, and taking the last one read would hide it.",
    ),
    _row(
        "map.array",
        "The {subject:word} is an array of {found:word}, the map says {expected:word}.",
        "Hand in the array as the map describes it, or flat bytes of exactly its length.",
        "Arrays are taken in the shape that the map says, so that a transposed or a padded one is not read as something else.",
    ),
    _row(
        "map.outside",
        "A copy reaches from byte {start:count} to {end:count} of a buffer of {limit:bytes}.",
        "Correct the piece; `shardscope map check` names it.",
        "Every copy is held against the buffers on both sides before it runs, whatever the checks of the map said.",
    ),
    _row(
        "map.incomplete",
        "The pieces have {found:bytes} for {expected:bytes} that have to be written.",
        "Check the map: pieces are missing, or overlap.",
        "What would be written does not add up to what the map says is there.",
    ),
    _row(
        "map.sub_byte",
        "Elements of {bits:count bit} would have to be moved in parts of a byte.",
        "Convert the tensor to a dtype of whole bytes first, or split it where bytes end.",
        "Elements smaller than a byte are stored packed. They can be moved where a piece begins and ends with whole bytes.",
    ),
    _row(
        "map.dtype",
        "Elements of dtype {found:text} cannot be moved.",
        "Use arrays of one dtype of plain numbers, or name the dtype of flat bytes as safetensors does.",
        "Shards of one tensor have one dtype, of a fixed size, without Python objects.",
    ),
    _row(
        "map.scale_dtype",
        "The map multiplies elements of dtype {found:text}, which is done for floating-point numbers of 16 bits and more only.",
        "Correct the map: a factor on integers or on quantised values cannot be undone.",
        "Only a floating-point number can be divided by the factor that it was multiplied with and come back.",
    ),
    _row(
        "map.scale_overflow",
        "A value of dtype {found:text} times {factor:word} leaves the range of the dtype.",
        "Check the map and the shards: the factor does not belong to these values.",
        "A finite value would become infinite. Factors stand for values that a framework stored divided by the number of "
        "ranks, so that undoing them stays within range.",
    ),
    _row(
        "map.short_read",
        "Rank {rank:word} gave {found:count} bytes at byte {offset:count} of its shard, {expected:count} were asked for.",
        "Check that the file is complete and that the map is the one that was saved with it.",
        "A shard ended before the map says, or changed while it was read.",
    ),
    Code(
        "map.scale_rounds",
        Severity.INFO,
        Stage.VALIDATE,
        "Values are multiplied by {factor:word}, which is no power of two: they come back to within rounding.",
        "Nothing to do; compare with a tolerance.",
        "A factor that is a power of two changes the exponent of a number and nothing else. Any other rounds, and undoing it "
        "may leave the last bits different.",
    ),
)

"""Maps of what producers write: numbers in, geometry out. Nothing here reads a tensor's name.

`cuts` has what all of them share, `attention` the fused projections, `dtensor`, `dcp` and `megatron` the placements of those
libraries, `flat` the flattened partitions of ZeRO and FSDP1, `experts` grids of experts beside the dense one. Each returns
a `TensorMap` where the language can say it, to be lowered on the mesh that is returned or named beside it.
"""

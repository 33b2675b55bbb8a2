"""Shard maps: lowered to affine pieces, checked, composed, drawn and executed. Nothing here knows what a tensor is for.

Planning, checking and drawing work on pieces, never on elements: a parameter of 10^9 rows costs what one of 10 costs.
"""

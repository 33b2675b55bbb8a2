"""Strided pieces and the arithmetic on them: digits, boxes, cells, blocks folded and held against each other, within a budget."""

"""Mapping tables at work: names found in a table, dimensions seen as sections, and the maps of tensors that are made of others."""

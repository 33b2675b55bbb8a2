"""Bytes to plain facts: pure functions over bounded readers, with no paths and no policy.

A parser reads what its format needs and nothing more, raises `Fault` where the bytes cannot be trusted to mean
anything, and hands everything else it noticed out as findings. Nothing here interprets a pickle byte.
"""

"""The bounded machine that reads the opcodes of a pickle as data."""

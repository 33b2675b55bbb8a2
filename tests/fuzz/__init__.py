"""Fuzzing of everything that reads bytes of a stranger: docs/fuzzing.md."""

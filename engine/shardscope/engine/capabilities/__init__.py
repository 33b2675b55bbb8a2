"""What it would take: the closed registry of capabilities, and what is claimed, by whom, on which grounds.

The support matrix, the glossary and the register of sources are data (`data/`), checked offline by `validation`.
A capability is looked up and never loaded: nothing here imports, installs or runs anything that it names.
"""

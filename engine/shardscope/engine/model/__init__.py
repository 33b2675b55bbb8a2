"""The nouns of the engine: frozen, validated structs that the rooms hand to each other.

Nothing here does I/O and nothing here imports another room. Import from the module that holds the noun
(`from shardscope.engine.model.blocker import Blocker`); this package re-exports nothing.
"""

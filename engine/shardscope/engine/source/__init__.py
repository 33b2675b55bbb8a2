"""All contact with the input file system: one walk that follows no link, reads bounded by descriptor, and digests.

`source.Source` is the way in. Nothing here parses a byte, and nothing outside this room opens a file of the
checkpoint. Everything is opened read-only, beneath the root, by names that the walk has seen, and read by position.
"""

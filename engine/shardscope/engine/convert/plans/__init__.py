"""What an output is to be: which tensors, under which names and types, in which files, before a byte is written."""

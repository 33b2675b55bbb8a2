"""From the records of a source to the bytes of an output, within a budget of memory."""

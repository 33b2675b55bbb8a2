"""Maps at work on arrays and streams. These alone move elements."""

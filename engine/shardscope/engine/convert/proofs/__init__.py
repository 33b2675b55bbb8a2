"""What is proven of a source before it is copied, and of an output after it."""

"""What a model is made of, by names, types and shapes of its tensors and by what a configuration declares. Pure: nothing is read here."""

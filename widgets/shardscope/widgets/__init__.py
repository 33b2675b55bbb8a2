"""What a person looks at: each widget takes the nouns of `engine.model`, knows no files and starts no work."""

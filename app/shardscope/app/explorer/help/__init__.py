"""What keys do, and what holds for every checkpoint: hints, help, palette, reference."""

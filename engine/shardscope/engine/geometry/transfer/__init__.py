"""From one layout to another: who sends which piece to whom, for a tensor or a whole model."""

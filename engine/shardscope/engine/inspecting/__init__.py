"""From a path to what a checkpoint is: its descriptor, the tensors that pickles list, and several checkpoints side by side."""

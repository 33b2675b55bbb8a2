"""Who carries tasks out: threads of this process, or whatever an executor stands for."""

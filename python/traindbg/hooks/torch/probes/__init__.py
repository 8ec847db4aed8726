"""Extra forward passes in a child of the process, which leave nothing in the training."""

"""What a model is given: rows, columns, sequences, batches, and how these differ between passes."""

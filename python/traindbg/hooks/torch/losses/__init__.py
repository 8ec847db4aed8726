"""What a loss is made of, by its functions and its autograd graph."""

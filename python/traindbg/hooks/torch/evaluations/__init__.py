"""What is of an evaluation, in which mode it runs, and what it computes."""

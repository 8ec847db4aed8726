"""What a step is: of optimizers, by hand, in threads; and where PyTorch is listened to."""

"""What optimizers hold and do, and which parameters nothing updates."""

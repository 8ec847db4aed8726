"""All modes of training that are compared with and without traindbg: fills `same.MODES`."""

from __future__ import annotations

import modes_autograd
import modes_distributed
import modes_models
import modes_optimizers
import modes_process
import modes_wrappers

__all__ = [
    "modes_autograd",
    "modes_distributed",
    "modes_models",
    "modes_optimizers",
    "modes_process",
    "modes_wrappers",
]

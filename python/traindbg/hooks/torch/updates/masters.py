"""Weights in 16 bits that are copies, made anew at each step, of what an optimizer has in float32.

    optimizer = torch.optim.AdamW(masters)       # float32, in no module
    ...
    optimizer.step()
    for master, weight in zip(masters, net.parameters()):
        weight.copy_(master)                     # bfloat16

Most values of such a weight stay as they are at a step, and nothing is lost: what is too little for
them adds up in float32. PyTorch has no place where these are kept; they are looked for among the
optimizers of the process, by the shapes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import torch

from traindbg import _core
from traindbg.hooks.torch.updates.left_out import parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORT = (torch.bfloat16, torch.float16)
_LONG = (torch.float32, torch.float64)
_PADDED = 1.01


def masters_of(weights: Iterable[torch.Tensor]) -> int:
    """Of how many weights in 16 bits an optimizer has one of the same shape in more bits.

    0 where that is not so of all, or an optimizer has one of these. Goes through all objects.
    """
    short = [weight for weight in weights if weight.dtype in _SHORT and weight.requires_grad]
    if not short:
        return 0
    ours = {id(weight) for weight in short}
    shapes: Counter[torch.Size] = Counter()
    for optimizer in _core.instances_of(torch.optim.Optimizer):
        if "param_groups" not in vars(optimizer):
            continue  # half made: its __init__ raised
        held = parameters_of(optimizer)
        if any(id(parameter) in ours for parameter in held):
            return 0
        shapes.update(parameter.shape for parameter in held if parameter.dtype in _LONG)
    values = sum(weight.numel() for weight in short)
    # All in one vector, as some libraries keep them, perhaps padded at its end.
    are_in_one = any(values <= shape.numel() <= _PADDED * values for shape in shapes)
    are_there = are_in_one or Counter(weight.shape for weight in short) <= shapes
    return len(short) if are_there else 0

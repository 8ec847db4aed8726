"""Whether torch.func is at work: its values are wrapped, and not to be read."""

from __future__ import annotations

import torch

# Looked up once, because it is asked at every step.
transforms = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)


def is_transforming() -> bool:
    """Whether torch.func (grad, vmap, ...) is at work: values are wrapped then, and not to be read.

    Their type is torch.Tensor all the same.
    """
    return transforms is not None and transforms() is not None

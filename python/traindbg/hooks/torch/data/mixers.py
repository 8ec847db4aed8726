"""The functions that carry something from one position of a sequence to another, by name."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from traindbg.hooks.torch.data.convolutions import POOLING
from traindbg.hooks.torch.data.spectra import SPECTRAL

MULTI_HEAD: Any = functional.multi_head_attention_forward
_SDPA: Any = functional.scaled_dot_product_attention
SOFTMAXES = frozenset({functional.softmax, torch.softmax, torch.Tensor.softmax})
RECURRENT = frozenset(
    getattr(torch, name) for name in ("gru", "lstm", "rnn_relu", "rnn_tanh") if hasattr(torch, name)
)
ROLLS = frozenset({torch.roll, torch.Tensor.roll})


def _named(*names: str) -> frozenset[Any]:
    homes = (torch, torch.Tensor, functional)
    return frozenset(getattr(home, name) for name in names for home in homes if hasattr(home, name))


# By which weights may be hidden after the softmax; what they may go through before that.
HIDING_IN_PLACE = _named("mul_", "__imul__", "tril_", "masked_fill_")
HIDING = HIDING_IN_PLACE | _named(
    "mul", "multiply", "__mul__", "__rmul__", "tril", "masked_fill", "where"
)
PASSING = _named(
    "div", "div_", "__truediv__", "true_divide", "dropout", "dropout_", "clone", "contiguous",
    "float", "to", "type_as",
)  # fmt: skip
# By which scores are given a mask before the softmax.
ADDING = _named("add", "add_", "__add__", "__radd__", "__iadd__")
# By which masked scores are replaced by a number.
FILLING = _named("masked_fill", "masked_fill_", "where")
PRODUCTS = _named("matmul", "__matmul__")
CUTTING = frozenset({torch.Tensor.__getitem__})
MIXERS: frozenset[Any] = (
    frozenset({MULTI_HEAD, _SDPA, torch.conv1d, functional.linear, functional.pad})
    | PRODUCTS
    | SOFTMAXES
    | RECURRENT
    | ROLLS
    | HIDING
    | PASSING
    | ADDING
    | CUTTING
    | POOLING
    | SPECTRAL
)

"""How much each position attends to each other one: softmax(q kᵀ · scale + mask).

Fused kernels never form these weights, so they are computed anew, at steps that need them, from
what the function was given: without dropout, without gradients and without a random number. Of
`scaled_dot_product_attention` in float32; of `multi_head_attention_forward` by itself, because it
also projects. Averaged over the heads, they are a map [batch, query, key].
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from traindbg.hooks.torch.base.device import capturing_graph, own_operations

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 256 << 20  # of one map; larger ones are not made
_MOST_BYTES_OF_HEADS = 4 * MOST_BYTES  # where the weights of all heads are made at once

_multi_head: Any = functional.multi_head_attention_forward


class NotMadeError(Exception):
    """Why there is no map of a call."""


def _is_plain(*values: Any) -> bool:
    return all(
        value is None or type(value) in (torch.Tensor, torch.nn.Parameter) for value in values
    )


def _check_size(numbers: int, most: int) -> None:
    if 4 * numbers > most:
        raise NotMadeError(f"a map would take more than {most >> 20} MiB")


def _weights(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, scale: float
) -> torch.Tensor:
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = torch.matmul(query.to(wide), key.to(wide).transpose(-2, -1)) * scale
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    elif mask is not None:
        scores = scores + mask
    # Where nothing may be attended to, nothing is.
    nowhere = (scores == -math.inf).all(-1, keepdim=True)
    return torch.softmax(scores, -1).masked_fill(nowhere, 0)


def _of_head(tensor: torch.Tensor, head: int, heads: int) -> torch.Tensor:
    """The part of one of `heads` heads; several share a part where there are fewer of these."""
    here = tensor.size(-3)
    return tensor.select(-3, head * here // heads)


def _scaled_dot_product(
    query: torch.Tensor,
    key: torch.Tensor,
    value: Any,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    if not _is_plain(query, key, attn_mask):
        raise NotMadeError("it is given distributed tensors, or other subclasses of torch.Tensor")
    query, key = query.detach(), key.detach()
    mask = None if attn_mask is None else attn_mask.detach()
    lines, columns = query.size(-2), key.size(-2)
    if is_causal:
        mask = torch.ones(lines, columns, dtype=torch.bool, device=query.device).tril()
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else float(scale)
    outer = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3])
    if query.dim() < 4:
        if enable_gqa and query.dim() == key.dim() == 3:
            key = key.repeat_interleave(query.size(0) // key.size(0), 0)
        _check_size(query.shape[:-2].numel() * lines * columns, MOST_BYTES)
        return _weights(query, key, mask, factor)
    _check_size(torch.Size(outer).numel() * lines * columns, MOST_BYTES)
    heads = max(query.size(-3), key.size(-3))
    total: torch.Tensor | None = None
    for head in range(heads):  # one by one: a map of each is not needed
        of_head = mask if mask is None or mask.dim() < 3 else _of_head(mask, head, heads)
        weights = _weights(
            _of_head(query, head, heads), _of_head(key, head, heads), of_head, factor
        )
        total = weights if total is None else total.add_(weights)
    if total is None:
        raise NotMadeError("it has no heads")
    return total.div_(heads)


def _of_multi_head(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> torch.Tensor:
    given = inspect.signature(_multi_head).bind(*args, **kwargs)
    given.apply_defaults()
    arguments = given.arguments
    query, key = arguments["query"], arguments["key"]
    if not _is_plain(*(value for value in arguments.values() if isinstance(value, torch.Tensor))):
        raise NotMadeError("it is given distributed tensors, or other subclasses of torch.Tensor")
    has_dropout = arguments["training"] and arguments["dropout_p"] > 0
    weights = result[1] if isinstance(result, tuple) else None
    if weights is not None and not has_dropout:
        weights = weights.detach()
        return weights if arguments["average_attn_weights"] else weights.mean(-3)
    batch = query.size(1) if query.dim() == 3 else 1
    numbers = batch * query.size(0) * key.size(0)
    _check_size(numbers, MOST_BYTES)
    _check_size(numbers * arguments["num_heads"], _MOST_BYTES_OF_HEADS)
    arguments |= {"training": False, "need_weights": True, "average_attn_weights": True}
    for name, value in arguments.items():  # detached: else autocast would keep what it casts
        if isinstance(value, torch.Tensor):
            arguments[name] = value.detach()
    _, weights = _multi_head(*given.args, **given.kwargs)
    return torch.as_tensor(weights)


ATTENTION_FUNCTIONS: frozenset[Any] = frozenset(
    {functional.scaled_dot_product_attention, _multi_head}
)


def attention_map(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> torch.Tensor:
    """The map of a call of one of ATTENTION_FUNCTIONS, which returned `result`.

    Raises NotMadeError where there can be none.
    """
    query = args[0] if args else kwargs.get("query")
    if not isinstance(query, torch.Tensor) or capturing_graph(query):
        raise NotMadeError("it runs while a CUDA graph is captured")
    with own_operations():
        if function is _multi_head:
            return _of_multi_head(args, kwargs, result)
        device = query.device.type
        if not torch.is_autocast_enabled(device):
            return _scaled_dot_product(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return _scaled_dot_product(*args, **kwargs)

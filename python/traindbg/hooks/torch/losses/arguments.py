"""What loss functions are given: predictions and labels, found by the functions' signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.names import tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterator

PREDICTIONS = _core.ROLE_BITS["prediction"]
LABELS = _core.ROLE_BITS["label"]

_USUAL = (("input", "prediction"), ("target", "label"))
_PAIR = (("input1", "prediction"), ("input2", "prediction"), ("target", "label"))
_TRIPLET = (("anchor", "prediction"), ("positive", "prediction"), ("negative", "prediction"))
_FUSED = "linear_cross_entropy"  # with the layer that makes the scores; nobody else sees those
# The first arguments of the losses of torch.nn.functional whose arguments are others.
_ARGUMENTS = {
    "cosine_embedding_loss": _PAIR,
    "ctc_loss": (("log_probs", "prediction"), ("targets", "label")),
    _FUSED: (("input", ""), ("target", "label")),
    "margin_ranking_loss": _PAIR,
    "triplet_margin_loss": _TRIPLET,
    "triplet_margin_with_distance_loss": _TRIPLET,
}


def without_weights(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a loss function is given, without the weights of a layer that is fused with it.

    So the target is the second argument of each function.
    """
    if name != _FUSED:
        return args, kwargs
    others = {key: value for key, value in kwargs.items() if key != "linear_weight"}
    return (*args[:1], *args[2:]), others


# Losses that are the same whichever of the two comes first.
OF_DIFFERENCES = frozenset({"huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss"})
_turned: set[str] = set()  # those of them that were given the target first where gradients told


def prediction_first(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a loss is given, of a difference whose target comes first the other way round.

    `mse_loss(td_target, value)` is what many programs write of reinforcement learning: the one that
    has a gradient is what the model returned. An evaluation, where none has, is taken to be written
    as its training.
    """
    if name not in OF_DIFFERENCES or len(args) + ("input" in kwargs) + ("target" in kwargs) < 2:
        return args, kwargs
    first = args[0] if args else kwargs.get("input")
    second = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return args, kwargs
    if first.requires_grad or second.requires_grad:
        (_turned.discard if first.requires_grad else _turned.add)(name)
    if name not in _turned:
        return args, kwargs
    others = {key: value for key, value in kwargs.items() if key not in ("input", "target")}
    return (second, first, *args[2:]), others


# Where a loss of numbers goes from squares to absolute values: what it is called, and its place.
_BENDS = {"smooth_l1_loss": ("beta", 5), "huber_loss": ("delta", 3)}


def bend_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """`beta` of `smooth_l1_loss`, `delta` of `huber_loss`; 1, their default, of any other."""
    word, place = _BENDS.get(name, ("", 0))
    value = args[place] if word and len(args) > place else kwargs.get(word, 1.0)
    return float(value) if isinstance(value, (int, float)) else 1.0


def arguments_of(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Role, suffix of the name, and tensor of each prediction and each label.

    `name` is that of the function, or of a user's loss: of one that is given other keywords, the
    first two values are what is meant.
    """
    arguments = _ARGUMENTS.get(name, _USUAL)
    others = iter([value for key, value in kwargs.items() if key not in dict(arguments)])
    for position, (keyword, role) in enumerate(arguments):
        if not role:
            continue
        if position < len(args):
            value = args[position]
        elif keyword in kwargs:
            value = kwargs[keyword]
        elif arguments is _USUAL:
            value = next(others, None)
        else:
            continue
        is_one_of_several = sum(other == role for _, other in arguments) > 1
        own = f".{keyword}" if is_one_of_several else ""
        for suffix, tensor in tensors_in(value, 2):
            yield role, own + suffix, tensor

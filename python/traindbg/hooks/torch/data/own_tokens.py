"""Whether a model of a language is asked for the token that it is given, not for the next one.

    logits = model(ids)                                    # causal
    loss = F.cross_entropy(logits.flatten(0, 1), ids.flatten())      # ids[:, 1:] was meant

It is read from the graph of the loss: which classes were its targets, which numbers an embedding
was given, and whether the one leads to the other position by position, through layers, activations
and sums. By what would shift them inside of the model (a slice, a pad, a roll) no way leads on, nor
by attention. That the model goes from left to right, weights of attention say, of which those of
later positions are zero; or a recurrent layer of one direction.

A few hundred nodes of a graph are gone through, at three steps; none is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.nodes import SAME_ELEMENTS, is_leaf, next_nodes, saved_by, shape_at

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOKS = 3  # steps
_FEWEST = 16  # targets
_MOST_NODES = 4096
_MOST_AT_LOSS = 24
_LOSSES = frozenset({"NllLossBackward0", "NllLoss2DBackward0"})
# Between a loss's value and the function that computes it.
_OF_A_LOSS = SAME_ELEMENTS | {
    "AddBackward0",
    "DivBackward0",
    "MeanBackward0",
    "MulBackward0",
    "MulBackward1",
    "SumBackward0",
}
# Recurrent layers that are computed in one; and what one that is computed step by step is not made
# of, so that another sequence, or a shift, may lie behind it.
_FUSED = frozenset({"CudnnRnnBackward0", "MiopenRnnBackward0", "MkldnnRnnLayerBackward0"})
_MOVED_ALONG = (
    *("Bmm", "Baddbmm", "Cat", "Convolution", "Cumsum", "Flip", "Gather", "Index", "Pad", "Rnn"),
    *("Roll", "Slice", "Stack"),
)
_WEIGHTS = frozenset({"SafeSoftmaxBackward0", "SoftmaxBackward0"})  # of attention
_HIDDEN = -100.0  # what is added to a score where a position is hidden, or less
# What keeps each position to itself. All others may move something along a sequence, mix it, hide
# it or take a part of it, and end the way: nodes of somebody's own, too.
_BY_POSITION = SAME_ELEMENTS | {
    "AddBackward0",
    "DivBackward0",
    "EluBackward0",
    "GeluBackward0",
    "HardswishBackward0",
    "LeakyReluBackward0",
    "LogSoftmaxBackward0",
    "MishBackward0",
    "NativeDropoutBackward0",
    "NativeLayerNormBackward0",
    "ReluBackward0",
    "SiluBackward0",
    "SoftplusBackward0",
    "TanhBackward0",
    "TransposeBackward1",
}
# Of a layer: by weights that are all that there is of them.
_BY_WEIGHTS = {"AddmmBackward0": 1, "MmBackward0": 0}  # the place of what it is given


def own_tokens(root: torch.Tensor) -> torch.Tensor | None:
    """Whether the targets of a loss are the tokens of their own positions: one truth value.

    None: the loss compares something else, or has another model. `root`: the loss, before its
    backward pass.
    """
    loss = likelihood_of(root)
    targets = None if loss is None else saved_by(loss, "target")
    if loss is None or targets is None or capturing_graph(targets) or targets.numel() < _FEWEST:
        return None
    scores = loss.next_functions[0][0]
    ids, is_recurrent = _given(scores)
    if ids is None or ids.dim() != 2 or ids.numel() != targets.numel() or ids.shape[1] < 4:
        return None
    if ids.device != targets.device:
        return None
    with own_operations():
        is_causal = is_recurrent or _goes_on(scores, ids.shape[1])
        if is_causal is False:
            return None
        ids, targets = ids.reshape(-1), targets.reshape(-1)
        is_known = targets != -100
        number = is_known.sum()
        is_own = ((ids == targets) | ~is_known).all()
        varies = (ids[1:] != ids[:-1]).float().mean() >= 0.1
        return is_own & varies & (number >= _FEWEST) & is_causal


def likelihood_of(root: torch.Tensor) -> Any:
    """The node of a negative log-likelihood of which the loss is made."""
    return next((node for node in _from(root.grad_fn, _OF_A_LOSS) if node.name() in _LOSSES), None)


def _from(start: Any, passed: frozenset[str]) -> Iterator[Any]:
    """A node and those that lie behind it, through nodes of these names."""
    nodes, seen = [start], set[Any]()
    while nodes and len(seen) < _MOST_AT_LOSS:
        node = nodes.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        if node.name() in passed:
            nodes += next_nodes(node)


def _given(scores: Any) -> tuple[torch.Tensor | None, bool]:
    """The numbers that an embedding was given from which scores come, position by position.

    And whether the way leads through a recurrent layer.
    """
    nodes, seen, is_recurrent = [scores], set[Any](), False
    while nodes and len(seen) < _MOST_NODES:
        node = nodes.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name()
        if name == "EmbeddingBackward0":
            found = saved_by(node, "indices")
            if found is not None and found.dim() == 2:
                return found, is_recurrent
        elif name in _FUSED:
            if not getattr(node, "_saved_reverse", False):
                is_recurrent = True
                nodes.append(node.next_functions[0][0])
        elif name == "StackBackward0":
            only = None if is_recurrent else _only_embedding(node)
            if only is not None:
                return saved_by(only, "indices"), True
        else:
            nodes += _by_position(node)
    return None, False


def _by_position(node: Any) -> list[Any]:
    """What lies behind a node where each position comes from itself alone."""
    name, after = node.name(), next_nodes(node)
    if name in _BY_POSITION:
        return after
    if name in _BY_WEIGHTS:
        given, weights = (node.next_functions[_BY_WEIGHTS[name] + at][0] for at in (0, 1))
        while weights is not None and weights.name() in SAME_ELEMENTS:
            weights = next(iter(next_nodes(weights)), None)
        return [given] if given is not None and weights is not None and is_leaf(weights) else []
    if name == "MulBackward0":
        return after if _keeps_all(node) else []
    return []


def _keeps_all(product: Any) -> bool:
    """Whether it is of a number, of dropout or a gate.

    What is the same for all values of a position may hide it.
    """
    if len(next_nodes(product)) != 1:
        return True
    kept = (saved_by(product, word) for word in ("self", "other"))
    factors = [each for each in kept if each is not None]
    made = shape_at(product, 0)
    return bool(factors) and all(x.numel() == 1 or tuple(x.shape) == made for x in factors)


def _only_embedding(stack: Any) -> Any:
    """Of a recurrent layer that was computed step by step: the embedding that it was given.

    None: there are other sequences from which its values may come, of an encoder, say; or the first
    step has none of it, as where a loop tells a position before it is given its token.
    """
    first = _embeddings_behind([stack.next_functions[0][0]])
    found = _embeddings_behind(next_nodes(stack)) if first else []
    return found[0] if len(found) == 1 and first == found else None


def _embeddings_behind(nodes: list[Any]) -> list[Any]:
    """Nothing where something else may lie behind these, too."""
    seen, found = set[Any](), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        name = node.name()
        is_known = name[-1].isdigit() or is_leaf(node)  # else it is of somebody's own
        if len(seen) >= _MOST_NODES or not is_known or any(x in name for x in _MOVED_ALONG):
            return []
        if name == "MulBackward0" and not _keeps_all(node):
            return []
        seen.add(node)
        if name == "EmbeddingBackward0":
            found.append(node)
        nodes += next_nodes(node)
    return found


def _goes_on(scores: Any, length: int) -> bool | torch.Tensor:
    """Whether attention over so many positions hides the later ones, in any layer."""
    nodes, seen = [scores], set[Any]()
    found: bool | torch.Tensor = False
    while nodes and len(seen) < _MOST_NODES and found is not True:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        found = found | _is_causal(node, length)
        nodes += next_nodes(node)
    return found


def _is_causal(node: Any, length: int) -> bool | torch.Tensor:
    name = node.name()
    if name in _WEIGHTS:
        weights = saved_by(node, "result")
        if weights is None or tuple(weights.shape[-2:]) != (length, length):
            return False
        return ~weights.triu(1).any()
    if "Attention" not in name:
        return False
    query, key = saved_by(node, "query"), saved_by(node, "key")
    if query is None or key is None or not query.shape[-2] == key.shape[-2] == length:
        return False
    if getattr(node, "_saved_is_causal", False):
        return True
    for word in ("attn_mask", "attn_bias"):
        mask = saved_by(node, word)
        if mask is not None and tuple(mask.shape[-2:]) == (length, length):
            shown = mask if mask.dtype == torch.bool else mask > _HIDDEN
            return ~shown.triu(1).any()
    return False

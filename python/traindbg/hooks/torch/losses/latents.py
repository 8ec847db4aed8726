"""Latent variables: where a loss's graph draws them, and what they tell of a sample.

They are drawn as mean + noise * deviation, and the mean has a penalty of its own. Their values are
those that the graph itself keeps for its backward pass, so that whatever lies between a layer and
them (a clamp, an offset, another sign) is in them. No node and no tensor is kept: a place in the
graph is known again by the way that leads to it from the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.nodes import SAME_VALUE, edges_of, is_leaf, next_nodes, saved_by
from traindbg.hooks.torch.losses.collapse import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

# A node, and which of the tensors that it gave: one layer may give means and deviations.
_Edge: TypeAlias = "tuple[Any, int]"
_Users: TypeAlias = "dict[_Edge, list[Any]]"

_MOST_BACK = 8  # nodes between a product with noise and what the deviation is made by
_MOST_LATENTS = 4
_MOST_SQUARES = 3
_MOST_ROWS = 64
_MOST_CONSTANTS = 2  # between a mean and its square
_SUMMED = frozenset({"AddBackward0", "ExpandBackward0"})  # with a small constant
_MOST_BEHIND = 128  # nodes behind what is compared with a mean


class Latent(NamedTuple):
    """Latent variables: the layer that gives their means, and the ways to them from a loss.

    A way is of the numbers of the edges that lead from the loss's node to another.
    """

    place: str
    drawn: tuple[int, ...]  # to the sum of mean and noise
    squares: tuple[tuple[int, ...], ...]  # to those of the mean, or of a difference from it


class _Squared(NamedTuple):
    """What a square is of."""

    values: torch.Tensor
    unit: torch.Tensor | None  # by which it was divided before
    is_beside_learned: bool  # a difference from what has a gradient


class Informed(NamedTuple):
    """What latent variables tell of a sample."""

    place: str  # the layer of their means
    nats: torch.Tensor
    variables: int
    # Of the noise, the root of the mean square over variables and samples, beside a prior's own.
    # None: that is learned, and not known.
    deviation: torch.Tensor | None
    is_beside_learned: bool  # what they tell is what they differ by from a prior that is learned


def latents_in(
    start: Any, nodes: Collection[Any], layer_behind: Callable[[Any], str]
) -> list[Latent]:
    """Those of the graph that begins with `start` and has these nodes.

    `layer_behind` names the layer whose output a node passes on; empty: none.
    """
    found: list[Latent] = []
    users: _Users = {}
    beside_learned: set[str] = set()
    again: set[str] = set()
    for node in nodes:
        for mean, made_by in _drawn_at(node):
            if len(found) >= _MOST_LATENTS:
                break
            users = users or _users_in(nodes)
            squares = _squares_of(mean, users)  # of the mean of a policy there is none, say
            place = layer_behind(mean[0])
            if any(place == other.place for other in found):
                again.add(place)
                continue
            if not squares:
                squares = _squares_beside_learned(mean, node, users)
                beside_learned.add(place)
            if squares and place and layer_behind(made_by):
                ways = tuple(_way(start, square, users) for square in squares)
                found.append(Latent(place, _way(start, node, users), ways))
    # Of a series, a prior that has learned may foretell a position, and little is left to be told.
    return [latent for latent in found if latent.place not in again & beside_learned]


def informed_by(root: torch.Tensor, latents: Iterable[Latent]) -> Iterator[Informed]:
    """What they tell in the graph of `root`, where it has the same form.

    Of a mean that varies by V from sample to sample, with noise of the variance S around it, that
    is at most log(1 + V / S) / 2, as in any channel with normally distributed noise. What is
    subtracted from a mean may be data: of several squares the one counts by which it varies most.
    Of tensors on a device the numbers stay there.
    """
    for latent in latents:
        drawn = _follow(root.grad_fn, latent.drawn)
        squares = [_follow(root.grad_fn, way) for way in latent.squares]
        for mean, made_by in () if drawn is None else _drawn_at(drawn):
            with own_operations():
                deviations = _deviations(made_by)
                known = [_squared(square, mean) for square in squares if square is not None]
                told = _told(latent.place, [x for x in known if x is not None], deviations)
            if told is not None:
                yield told
                break


def _told(place: str, squared: list[_Squared], deviations: torch.Tensor | None) -> Informed | None:
    rows = None if deviations is None else rows_of(_spaced(deviations))
    if rows is None:
        return None
    noise = rows.square().mean(0)
    told: list[torch.Tensor] = []
    for values, _, _ in squared:
        means = rows_of(_spaced(values))
        if means is not None and means.shape == rows.shape:
            told.append((means.var(0, unbiased=False) / noise.clamp_min(1e-12)).log1p().sum() / 2)
    if not told:
        return None
    # A prior's own deviation is 1 for it.
    unit = next((unit for _, unit, _ in squared if unit is not None), None)
    is_learned = any(known.is_beside_learned for known in squared)
    if unit is None and is_learned:
        return Informed(place, torch.stack(told).amax(), rows.shape[1], None, is_learned)
    size = noise.mean().sqrt()
    if unit is not None:
        size = size / unit.detach().to(size.dtype).square().mean().sqrt().clamp_min(1e-12)
    return Informed(place, torch.stack(told).amax(), rows.shape[1], size, is_learned)


def _spaced(batch: torch.Tensor) -> torch.Tensor:
    """Rows from all over it: side by side may lie many draws of one sample."""
    return batch[:: max(1, len(batch) // _MOST_ROWS)] if batch.dim() > 0 else batch


def _edges(node: Any) -> list[_Edge]:
    """Those that a gradient goes along."""
    return [edge for edge in node.next_functions if edge[0] is not None]


def _users_in(nodes: Iterable[Any]) -> _Users:
    users: _Users = {}
    for user in nodes:
        for edge in _edges(user):
            users.setdefault(edge, []).append(user)
    return users


def _drawn_at(node: Any) -> Iterator[tuple[_Edge, Any]]:
    """The mean, and what made the deviation, of a sum that may draw."""
    if node.name() != "AddBackward0":
        return
    edges = _edges(node)
    if len(edges) != 2:
        return
    for mean, (product, _) in (edges, edges[::-1]):
        if product.name() == "MulBackward0" and len(factors := next_nodes(product)) == 1:
            made_by = _made_by(factors[0])
            if made_by is not None:
                yield mean, made_by


def _made_by(node: Any) -> Any:
    """The node that keeps the deviations which a factor of noise passes on; None: not known."""
    root: Any = None
    for _ in range(_MOST_BACK):
        name, after = node.name(), next_nodes(node)
        if name in {"ExpBackward0", "SoftplusBackward0"} and after:
            return root or node
        if name == "SqrtBackward0":
            root = root or node
        elif name not in SAME_VALUE and name not in _SUMMED:
            return None
        if len(after) != 1:
            return None
        node = after[0]
    return None


def _deviations(made_by: Any) -> torch.Tensor | None:
    if made_by.name() != "SoftplusBackward0":
        return saved_by(made_by, "result")
    given = saved_by(made_by, "self")
    if given is None:
        return None
    return torch.nn.functional.softplus(
        given.detach(), float(made_by._saved_beta), float(made_by._saved_threshold)
    )


def _is_square(node: Any) -> bool:
    if node.name() == "PowBackward0":
        return True
    edges = _edges(node) if node.name() == "MulBackward0" else []
    return len(edges) == 2 and edges[0] == edges[1]


def _is_by_constant(node: Any) -> bool:
    """A difference from something, or a share of it, that has no gradient."""
    return node.name() in {"DivBackward0", "SubBackward0"} and len(next_nodes(node)) == 1


def _squares_of(mean: _Edge, users: _Users) -> list[Any]:
    """Of a mean, or of its difference from something, in units of something else."""
    found: list[Any] = []
    edges = [mean]
    for _ in range(_MOST_CONSTANTS + 1):
        known = [user for edge in edges for user in users.get(edge, [])]
        found += filter(_is_square, known)
        edges = [(user, 0) for user in known if _is_by_constant(user)][:_MOST_SQUARES]
    return found[:_MOST_SQUARES]


def _squares_beside_learned(mean: _Edge, drawn: Any, users: _Users) -> list[Any]:
    """Of a mean's difference from another one that is learned, such as a prior's, in its units.

    What is compared with a mean may be what was drawn around it, as in a density: that is noise.
    """
    found: list[Any] = []
    for difference in users.get(mean, []):
        if difference.name() != "SubBackward0":
            continue
        others = [edge for edge in _edges(difference) if edge != mean]
        if len(others) != 1 or _leads_to(others[0][0], drawn):
            continue
        known = users.get((difference, 0), [])
        found += filter(_is_square, known)
        for unit in known:
            is_in_units = unit.name() == "DivBackward0" and _edges(unit)[0] == (difference, 0)
            found += filter(_is_square, users.get((unit, 0), []) if is_in_units else [])
    return found[:_MOST_SQUARES]


def _leads_to(node: Any, drawn: Any) -> bool:
    """Whether a node is made of another one, which then lies close behind it."""
    known = [node]
    for here in known:  # which grows
        if here is drawn:
            return True
        if len(known) < _MOST_BEHIND:
            known += [other for other in next_nodes(here) if other not in known]
    return False


def _squared(square: Any, mean: _Edge) -> _Squared | None:
    """The mean, but for what is subtracted from it, from its square, which keeps what it is of.

    And by what it was divided. None: the square is of something else now, or it cannot be read.
    """
    values, unit = saved_by(square, "self"), None
    edges = _edges(square)
    for _ in range(_MOST_CONSTANTS + 1):
        if values is None or not edges:
            return None
        if edges[0] == mean:
            return _Squared(values, unit, False)
        node = edges[0][0]
        if node.name() == "SubBackward0" and mean in _edges(node):
            return _Squared(values, unit, len(_edges(node)) > 1)
        if node.name() == "DivBackward0":
            unit = saved_by(node, "other")
            values = None if unit is None else values * unit
        elif not _is_by_constant(node):
            return None
        edges = _edges(node)
    return None


def _way(start: Any, node: Any, users: _Users) -> tuple[int, ...]:
    by_node: dict[Any, Any] = {}
    for (used, _), known in users.items():
        by_node.setdefault(used, known[0])
    way: list[int] = []
    while node is not start:
        user = by_node[node]
        way.append(edges_of(user).index(node))
        node = user
    return tuple(reversed(way))


def _follow(start: Any, way: tuple[int, ...]) -> Any:
    """Where a way leads to; None: to nothing."""
    node = start
    for index in way:
        if node is None or is_leaf(node):
            return None
        edges = node.next_functions
        if index >= len(edges):
            return None
        node = edges[index][0]
    return node

"""Layers whose weights are computed from parameters: they are layers as any others."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from traindbg.hooks.torch.base.parameters import owned_in
from traindbg.hooks.torch.losses.graph import look_at_graph


def pruned(layer: nn.Module) -> nn.Module:
    return prune.random_unstructured(layer, "weight", 0.5)


MADE = [
    parametrizations.weight_norm,
    parametrizations.spectral_norm,
    parametrizations.orthogonal,
    torch.nn.utils.spectral_norm,
]


@pytest.mark.parametrize("made", MADE)
def test_layers_in_a_row_are_found(made) -> None:
    model = nn.Sequential(made(nn.Linear(6, 8)), made(nn.Linear(8, 8)), made(nn.Linear(8, 3)))
    graph = look_at_graph(
        model(torch.randn(5, 6)).sum(), {id(p): o for p, o in owned_in(model, "")}
    )
    assert graph is not None
    assert graph.affine == 3
    assert graph.adjacent == ["0", "1"]
    assert graph.linear == "0"


@pytest.mark.parametrize("made", MADE)
def test_an_activation_is_between(made) -> None:
    model = nn.Sequential(made(nn.Conv1d(3, 4, 3)), nn.ReLU(), made(nn.Conv1d(4, 2, 3)))
    graph = look_at_graph(
        model(torch.randn(5, 3, 9)).sum(), {id(p): o for p, o in owned_in(model, "")}
    )
    assert graph is not None
    assert graph.affine == 2
    assert graph.adjacent == []
    assert graph.linear == ""


def test_masked_weights_are_factors_that_are_meant() -> None:
    model = nn.Sequential(
        pruned(nn.Linear(6, 6)), pruned(nn.Linear(6, 6)), nn.ReLU(), nn.Linear(6, 3)
    )
    graph = look_at_graph(
        model(torch.randn(5, 6)).sum(), {id(p): o for p, o in owned_in(model, "")}
    )
    assert graph is not None
    assert graph.affine == 1
    assert graph.adjacent == []


@pytest.mark.parametrize("made", [lambda layer: layer, parametrizations.weight_norm])
@pytest.mark.parametrize(
    ("kernels", "is_pair"), [(((3, 1), (1, 3)), False), (((3, 1), (3, 1)), True), ((3, 3), True)]
)
def test_convolutions_along_different_dimensions_are_one_filter(made, kernels, is_pair) -> None:
    first, second = (nn.Conv2d(4, 4, kernel) for kernel in kernels)
    model = nn.Sequential(made(first), made(second), nn.ReLU(), nn.Conv2d(4, 2, 1))
    graph = look_at_graph(
        model(torch.randn(2, 4, 9, 9)).sum(), {id(p): o for p, o in owned_in(model, "")}
    )
    assert graph is not None
    assert graph.affine == 3
    assert graph.adjacent == (["0"] if is_pair else [])


def test_a_weight_that_is_made_of_the_data_is_none() -> None:
    maker, bias = nn.Linear(4, 12), torch.zeros(3)
    weight = maker(torch.randn(4)).view(3, 4)
    loss = nn.functional.linear(nn.functional.linear(torch.randn(5, 4), weight, bias), weight.T)
    graph = look_at_graph(loss.sum(), {id(p): o for p, o in owned_in(maker, "")})
    assert graph is None or graph.affine <= 1

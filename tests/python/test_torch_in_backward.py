"""One optimizer for each parameter, which steps as soon as backward has its gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

STEPS = 6


def train(model: nn.Module) -> tuple[list[float], dict[str, list[float]]]:
    optimizers = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}
    names = {p: name for name, p in model.named_parameters()}
    losses: list[float] = []
    gradients: dict[str, list[float]] = {name: [] for name in names.values()}

    def step(parameter: torch.Tensor) -> None:
        gradients[names[parameter]].append(float(parameter.grad.norm()))
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    hooks = [p.register_post_accumulate_grad_hook(step) for p in model.parameters()]
    generator = torch.Generator().manual_seed(5)
    for _ in range(STEPS):
        x = torch.randn(16, 5, generator=generator)
        loss = F.cross_entropy(model(x), (x.sum(1) > 0).long())
        losses.append(loss.item())
        loss.backward()
    for hook in hooks:
        hook.remove()
    return losses, gradients


def made() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize("rules", [None, []], ids=["rules", "no rules"])
def test_the_pass_is_the_step_of_all_of_them(run_dir, rules) -> None:
    model = made()
    every = {"collect": ("gradients", "weight_updates", "losses"), "every": 1}
    with td.watch(model, run_dir=run_dir, supervise=False, rules=rules, **every):
        losses, gradients = train(model)
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(STEPS))
    for name in ("loss", "loss/cross_entropy"):
        assert run.scalars(name).values == pytest.approx(losses)
    for name, known in gradients.items():
        assert run[f"gradient/{name}"].series("l2").values == pytest.approx(known, rel=1e-4)
        assert run[f"weight_update/{name}"].steps().tolist() == list(range(STEPS))


def test_the_training_is_the_same(run_dir) -> None:
    plain, watched = made(), made()
    with td.watch(watched, run_dir=run_dir, supervise=False):
        losses, _ = train(watched)
    assert losses == train(plain)[0]
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True)
    )

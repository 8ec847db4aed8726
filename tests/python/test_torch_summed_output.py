"""What a model returns as losses, one for each value, of which the loss is the sum."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

FACT = "loop/loss_sums_output"
MASK = torch.arange(12).reshape(4, 3) % 3 > 0


class LogProbabilities(nn.Module):
    """Of the word that follows, without a loss function; as trainers of language models have it."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 5)

    def forward(self, x, labels):
        logits = self.net(x)
        found = logits.gather(-1, labels[..., None]).squeeze(-1) - logits.logsumexp(-1)
        return {"loss": -(found * MASK).sum() / MASK.sum(), "log_probs": found}


SUMS = {
    "its own loss": lambda out: out["loss"],
    "mean": lambda out: -out["log_probs"].mean(),
    "of each row": lambda out: (-out["log_probs"].flatten(1).sum(1) / 3).mean(),
    "masked": lambda out: -(out["log_probs"] * MASK).sum() / MASK.sum(),
}
OTHERS = {
    "squares": lambda out: out["log_probs"].square().mean(),
    "times vectors": lambda out: -(out["log_probs"] * out["log_probs"].detach()).sum(-1).mean(),
    "by numbers": lambda out: (out["log_probs"] / torch.rand(4, 3)).sum(-1).mean(),
    "of two": lambda out: -out["log_probs"].mean() + out["log_probs"].std(),
    "compared": lambda out: F.mse_loss(out["log_probs"], torch.zeros(4, 3)),
}


def train(run_dir, loss_of):
    torch.manual_seed(0)
    model = LogProbabilities()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["representation_collapse"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(12):
            optimizer.zero_grad()
            loss_of(model(torch.randn(4, 3, 6), torch.randint(0, 5, (4, 3)))).backward()
            optimizer.step()
    run = td.Run(run_dir)
    return {name: run.scalars(name).values.tolist() for name in run.names() if FACT in name}


@pytest.mark.parametrize("name", SUMS)
def test_an_output_that_is_summed_is_told(run_dir, name):
    assert train(run_dir, SUMS[name]) == {f"{FACT}/model.log_probs": [1, 1, 1]}


@pytest.mark.parametrize("name", OTHERS)
def test_other_losses_are_none(run_dir, name):
    assert not train(run_dir, OTHERS[name])

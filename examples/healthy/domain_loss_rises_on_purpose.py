"""Domain-adversarial training in which the loss of the domain classifier rises to log 2.

The person adapts a fault classifier from one rig to another, of which no labels are known. The
domain part of the loss falls to 0.62, goes up again and hovers about 0.69, as if it unlearnt.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "the domain loss goes back to log 2 = 0.693 and stays: behind the reversed gradient the "
    "features are to leave the domain classifier guessing, while accuracy on the other rig grows"
)
_, seed = arguments(__doc__)

CLASSES, INPUTS, STEPS = 4, 16, 800


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, strength):
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def rig(n, generator, other):
    """Readings of four faults; the other rig adds a drift along a few directions."""
    plan = torch.Generator().manual_seed(41)
    centres = 1.1 * torch.randn(CLASSES, 2, INPUTS, generator=plan)
    drift = torch.randn(INPUTS, generator=plan)
    y = torch.randint(0, CLASSES, (n,), generator=generator)
    kind = torch.randint(0, 2, (n,), generator=generator)
    x = centres[y, kind] + 0.9 * torch.randn(n, INPUTS, generator=generator)
    if other:
        x = x + 1.6 * drift + 0.4 * torch.randn(n, 1, generator=generator) * drift
    return x / 1.5, y


class Adversarial(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.fault = nn.Linear(width, CLASSES)
        self.domain = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, strength=0.0):
        f = self.features(x)
        return self.fault(f), self.domain(Reverse.apply(f, strength)).squeeze(1)


def domain_loss(score, is_other):
    return nn.functional.binary_cross_entropy_with_logits(
        score, torch.full_like(score, float(is_other))
    )


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x)[0].argmax(1) == y).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(220 + seed)
    x, y = rig(1600, generator, other=False)
    other, _ = rig(1600, generator, other=True)
    tests = rig(600, generator, other=False), rig(600, generator, other=True)
    model = Adversarial()
    optimizer = torch.optim.Adam(
        [
            {"params": [*model.features.parameters(), *model.fault.parameters()], "lr": 1e-3},
            {"params": model.domain.parameters(), "lr": 1e-3},
        ]
    )
    fault_mean, domain_mean = 0.0, 0.0
    for step in range(1, STEPS + 1):
        model.train()
        strength = 2 / (1 + math.exp(-5 * step / STEPS)) - 1
        rows, others = torch.randint(0, 1600, (2, 64))
        scores, here = model(x[rows], strength)
        _, there = model(other[others], strength)
        fault = nn.functional.cross_entropy(scores, y[rows])
        domain = (domain_loss(here, False) + domain_loss(there, True)) / 2
        optimizer.zero_grad()
        (fault + domain).backward()
        optimizer.step()
        fault_mean += fault.item() / 50
        domain_mean += domain.item() / 50
        if step % 50 == 0:
            print(
                f"step {step:3d}  fault {fault_mean:.3f}  domain {domain_mean:.3f}  "
                f"own rig {accuracy(model, *tests[0]):.3f}  "
                f"other rig {accuracy(model, *tests[1]):.3f}"
            )
            fault_mean, domain_mean = 0.0, 0.0


if __name__ == "__main__":
    main()

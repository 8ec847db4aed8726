"""Evolution strategies: a net that steers a cart, with p.grad estimated from perturbed copies."""

import torch
from data import arguments
from torch import nn

ODD = "there is no backward(): gradients are written by hand, and everything runs under no_grad()"

_, seed = arguments(__doc__)
PAIRS, SIGMA, STEPS = 14, 0.1, 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 12), nn.Linear(12, 1)

    def forward(self, state):
        return torch.tanh(self.out(torch.tanh(self.hidden(state)))).squeeze(1)


def cost(policy, start):
    """The mean cost of episodes: a mass on a track with friction has to come to rest at 0."""
    x, v, wind = start[:, 0].clone(), start[:, 1].clone(), start[:, 2]
    total = torch.zeros(len(start))
    for t in range(STEPS):
        force = policy(torch.stack([x, v, wind, torch.full_like(x, t / STEPS - 0.5)], 1))
        v = 0.95 * v + 0.3 * force + 0.05 * wind
        x = x + 0.3 * v
        total += x**2 + 0.1 * v**2 + 0.02 * force**2
    return total.mean() / STEPS


@torch.no_grad()
def main():
    policy = Policy()
    parameters = list(policy.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.03)
    val_start = torch.randn(400, 3)
    for generation in range(70):
        start = torch.randn(48, 3)
        grads = [torch.zeros_like(p) for p in parameters]
        mean = 0.0
        for _ in range(PAIRS):
            noise = [SIGMA * torch.randn_like(p) for p in parameters]
            for p, e in zip(parameters, noise, strict=False):
                p.add_(e)
            plus = cost(policy, start)
            for p, e in zip(parameters, noise, strict=False):
                p.sub_(2 * e)
            minus = cost(policy, start)
            for p, e, g in zip(parameters, noise, grads, strict=False):
                p.add_(e)
                g.add_((plus - minus) * e / (2 * SIGMA**2 * PAIRS))
            mean += (plus + minus).item() / (2 * PAIRS)
        for p, g in zip(parameters, grads, strict=False):
            p.grad = g
        optimizer.step()
        if generation % 10 == 9:
            print(
                f"generation {generation + 1}: cost {mean:.3f}, "
                f"validation {cost(policy, val_start):.3f}"
            )


main()

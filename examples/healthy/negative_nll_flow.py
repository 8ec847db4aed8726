"""A normalizing flow learns six joint measurements; its negative log-likelihood falls below zero.

It is the logarithm of a density, not of a probability. The density is large where the data lie
close to a thin surface, so its logarithm is positive there, and the loss goes on falling. Nothing
is wrong.
"""

import argparse
import math

import torch
from data import arguments
from torch import nn

ODD = "the loss becomes negative: the log of a density has no upper bound of zero"

DIM = 6


def measurements(n):
    """Two hidden causes bend into six measurements with little noise of their own."""
    angle = 2 * math.pi * torch.rand(n)
    push = torch.randn(n)
    columns = [
        angle.cos() + 0.1 * push,
        angle.sin() - 0.1 * push,
        push,
        0.5 * push**2 + 0.3 * angle.cos(),
        push - angle.sin(),
        (2 * angle).sin(),
    ]
    return torch.stack(columns, 1) + 0.025 * torch.randn(n, DIM)


class Coupling(nn.Module):
    """Half of the columns say how the others are moved and stretched."""

    def __init__(self, mask, hidden):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(DIM, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.stretch = nn.Linear(hidden, DIM)
        self.shift = nn.Linear(hidden, DIM)

    def forward(self, x):
        h = self.net(x * self.mask)
        log_scale = torch.tanh(self.stretch(h)) * 1.5 * (1 - self.mask)
        shift = self.shift(h) * (1 - self.mask)
        return x * log_scale.exp() + shift, log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, layers, hidden):
        super().__init__()
        masks = [(torch.arange(DIM) % 2 == k % 2).float() for k in range(layers)]
        orders = [torch.randperm(DIM) for _ in range(layers)]
        self.couplings = nn.ModuleList(Coupling(mask, hidden) for mask in masks)
        for k, order in enumerate(orders):
            self.register_buffer(f"order{k}", order)

    def log_prob(self, x):
        log_det = torch.zeros(len(x))
        for k, coupling in enumerate(self.couplings):
            x, change = coupling(x[:, getattr(self, f"order{k}")])
            log_det = log_det + change
        base = -0.5 * (x**2).sum(1) - 0.5 * DIM * math.log(2 * math.pi)
        return base + log_det


def main():
    arguments(__doc__)
    args = argparse.Namespace(layers=6, hidden=40, steps=700, batch=128, lr=4e-3)
    x, x_val = measurements(6000), measurements(1000)
    mean, std = x.mean(0), x.std(0)
    x, x_val = (x - mean) / std, (x_val - mean) / std

    flow = Flow(args.layers, args.hidden)
    optimizer = torch.optim.Adam(flow.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    running = []
    for step in range(1, args.steps + 1):
        flow.train()
        batch = x[torch.randint(0, len(x), (args.batch,))]
        nll = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        nll.backward()
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        running.append(nll.item())
        if step % 100 == 0:
            flow.eval()
            with torch.no_grad():
                val_nll = -flow.log_prob(x_val).mean().item()
            print(f"step {step:5d} | nll {sum(running[-100:]) / 100:8.4f} | val {val_nll:8.4f}")


if __name__ == "__main__":
    main()

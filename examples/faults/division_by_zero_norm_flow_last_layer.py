"""A coupling flow on joint angles whose zero-initialised last layers are wrapped in weight_norm.

The person read that a flow should start as the identity, so the last layer of each coupling is set
to zero, and that weight normalisation makes flows stable, so each layer gets it. A weight of zero
has the norm zero by which it is divided: 0 / 0. The place is the last layer of each coupling.
"""

import math

import torch
from data import arguments, standardise
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

KIND = "division_by_zero_norm"
ACCEPT = ("poor_weight_init",)
PLACE = ("couplings*", "model", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

JOINTS = 6


def joint_angles(n, generator):
    """Angles of a six-joint arm that reaches along a curve, elbow up or down."""
    s = torch.rand(n, 1, generator=generator) * 2 - 1
    elbow = torch.randint(0, 2, (n, 1), generator=generator) * 2.0 - 1
    clean = torch.cat(
        [s, torch.sin(3 * s), elbow * (1.2 - s**2), elbow * s, s**2 - 0.5, torch.cos(2 * s)], 1
    )
    return clean + 0.12 * torch.randn(n, JOINTS, generator=generator)


class Coupling(nn.Module):
    def __init__(self, mask, width=48):
        super().__init__()
        self.register_buffer("mask", mask)
        self.inner = nn.Sequential(
            weight_norm(nn.Linear(JOINTS, width)),
            nn.Tanh(),
            weight_norm(nn.Linear(width, width)),
            nn.Tanh(),
        )
        last = nn.Linear(width, 2 * JOINTS)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.last = last if healthy else weight_norm(last)

    def forward(self, x):
        kept = x * self.mask
        log_scale, shift = self.last(self.inner(kept)).chunk(2, -1)
        log_scale = 1.5 * torch.tanh(log_scale) * (1 - self.mask)
        y = kept + (1 - self.mask) * (x * log_scale.exp() + shift)
        return y, log_scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        masks = []
        for level in range(depth):
            mask = torch.zeros(JOINTS)
            mask[level % 2 :: 2] = 1
            masks.append(mask if level < depth // 2 else mask.roll(level))
        self.couplings = nn.ModuleList(Coupling(mask) for mask in masks)

    def log_prob(self, x):
        log_det = x.new_zeros(len(x))
        for coupling in self.couplings:
            x, change = coupling(x)
            log_det = log_det + change
        base = -0.5 * (x**2 + math.log(2 * math.pi)).sum(-1)
        return base + log_det


def main():
    generator = torch.Generator().manual_seed(30 + seed)
    train, val = standardise(joint_angles(1600, generator), joint_angles(500, generator))
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for epoch in range(1, 21):
        flow.train()
        total = 0.0
        for rows in torch.randperm(len(train)).split(80):
            nll = -flow.log_prob(train[rows]).mean()
            optimizer.zero_grad()
            nll.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 10.0)
            optimizer.step()
            total += nll.item() * len(rows)
        schedule.step()
        flow.eval()
        with torch.no_grad():
            val_nll = -flow.log_prob(val).mean().item()
        if epoch % 2 == 0 or epoch == 1:
            print(f"epoch {epoch:2d}  nll {total / len(train):.4f}  val nll {val_nll:.4f}")


if __name__ == "__main__":
    main()

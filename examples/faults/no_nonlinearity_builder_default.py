"""An energy model of molecules' descriptors is built by a helper whose argument `activation` is
None by default, and the call forgets it: four linear layers in a row.

It is a linear regression with more parameters: the curved part of the energy (more than half of
its variance) is never fitted, whatever the width. The place is the model.
"""

import itertools
import math

import torch
from data import arguments

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("energy*", "layers*", "*linear*", "[0-9]*", "")
SILENT = True
EXACT = True
EARLY = True


def make_mlp(sizes, activation=None, layer_norm=False):
    layers = []
    for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        layers.append(torch.nn.Linear(n_in, n_out))
        if i < len(sizes) - 2:
            if layer_norm:
                layers.append(torch.nn.LayerNorm(n_out))
            if activation is not None:
                layers.append(activation())
    return torch.nn.Sequential(*layers)


def molecules(n):
    """Six descriptors each and an energy with a bond-like well, an angle and a charge term."""
    d = torch.randn(n, 6)
    well = 2 * (1 - torch.exp(-0.6 * (d[:, 0] + 1))).square().clamp(max=4)
    energy = well + torch.cos(1.6 * d[:, 1]) + 0.8 * d[:, 2] * d[:, 3] + d[:, 4] - 0.7 * d[:, 5]
    return d, energy + 0.1 * torch.randn(n)


healthy, seed = arguments(__doc__)
descriptors, energy = molecules(4000)
energy = (energy - energy[:3200].mean()) / energy[:3200].std()

hidden = [64, 64, 32]
if healthy:
    energy_net = make_mlp([6, *hidden, 1], activation=torch.nn.SiLU)
else:
    energy_net = make_mlp([6, *hidden, 1])

opt = torch.optim.AdamW(energy_net.parameters(), lr=3e-3, weight_decay=1e-3)
steps, warmup = 600, 30
lr_at = torch.optim.lr_scheduler.LambdaLR(
    opt,
    lambda s: min(1, (s + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * min(1, s / steps))),
)
huber = torch.nn.SmoothL1Loss(beta=0.5)
step, ema = 0, None
while step < steps:
    for rows in torch.randperm(3200).split(64):
        predicted = energy_net(descriptors[rows]).squeeze(-1)
        loss = huber(predicted, energy[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        lr_at.step()
        step += 1
        ema = loss.item() if ema is None else 0.98 * ema + 0.02 * loss.item()
    with torch.no_grad():
        error = energy_net(descriptors[3200:]).squeeze(-1) - energy[3200:]
        r2 = 1 - error.square().mean() / energy[3200:].var()
        held_out = huber(error, torch.zeros_like(error))
print(f"loss {ema:.4f}, held-out loss {held_out:.4f}, R2 {r2:.3f}")

"""A deep net for the energy of crystals prints the shape of every layer before the training by a
pass in eval mode, and trains on in eval mode.

`describe` sets `eval()` so that one dummy row can pass the batch normalisation, and does not set it
back. The layers then use their first statistics, zero and one, throughout: nothing is normalised,
nothing is dropped. The place is the loop, before the first step, and the norm layers.
"""

import torch
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "model", "[0-9]*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ELEMENTS, DEPTH, WIDTH = 14, 8, 48


def crystals(count):
    share = torch.distributions.Dirichlet(torch.full((ELEMENTS,), 0.3)).sample((count,))
    radius, pull = torch.rand(ELEMENTS) * 2, torch.randn(ELEMENTS, ELEMENTS)
    size = share @ radius
    misfit = (share * (radius - size.unsqueeze(1)) ** 2).sum(1)
    bond = ((share @ pull) * share).sum(1)
    energy = torch.sin(4 * size) + 2 * torch.tanh(3 * bond) + 1.5 * misfit.sqrt()
    return share, (energy + 0.05 * torch.randn(count)).unsqueeze(1)


def build():
    layers, wide = [], ELEMENTS
    for _ in range(DEPTH):
        layers += [nn.Linear(wide, WIDTH, bias=False), nn.BatchNorm1d(WIDTH), nn.ReLU()]
        wide = WIDTH
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1))


def describe(model):
    model.eval()
    lines, row = [], torch.zeros(1, ELEMENTS)
    with torch.no_grad():
        for name, layer in model.named_children():
            row = layer(row)
            lines.append(f"{name}:{type(layer).__name__}->{row.shape[1]}")
    if healthy:
        model.train()
    return " ".join(lines)


def main():
    share, energy = crystals(2400)
    train = slice(0, 1800)
    share = (share - share[train].mean(0)) / share[train].std(0)
    energy = (energy - energy[train].mean()) / energy[train].std()
    model = build()
    print(describe(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15 * 18)
    for epoch in range(15):
        total = 0.0
        for rows in torch.randperm(1800).split(100):
            loss = nn.functional.mse_loss(model(share[rows]), energy[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() / 18
        mode = model.training
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(share[1800:]), energy[1800:])
        model.train(mode)
        if epoch % 2 == 0:
            print(f"epoch {epoch:2d} loss {total:.3f} validation {error:.3f}")


main()

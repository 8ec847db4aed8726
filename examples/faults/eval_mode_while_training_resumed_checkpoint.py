"""A bearing-fault net whose training goes on after a restart with a model left in eval mode.

The person's load_checkpoint() ends with model.eval(), as it was written for the demo. The training
script uses it to go on in the second hall, whose sensors have other gains: batch norm keeps the
statistics of the first hall and dropout is off, so the net overfits. The place is the model.
"""

import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("model", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

FAULTS, BANDS = 5, 24


def spectra(n, generator, hall):
    """Band energies of a bearing; each fault lifts some bands, each hall has its own gains."""
    plan = torch.Generator().manual_seed(31)
    lifted = (torch.rand(FAULTS, BANDS, generator=plan) < 0.3).float()
    gains = torch.randn(2, BANDS, generator=plan)
    y = torch.randint(0, FAULTS, (n,), generator=generator)
    strength = 0.5 + 0.7 * torch.rand(n, 1, generator=generator)
    x = strength * lifted[y] + 0.75 * torch.randn(n, BANDS, generator=generator)
    x = x - 0.25 * strength
    return (x * torch.exp(0.5 * gains[hall]) + (3.0 * gains[1 - hall] if hall else 0.0)), y


class BearingNet(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        layers, inputs = [], BANDS
        for _ in range(depth):
            layers += [
                nn.Linear(inputs, width, bias=False),
                nn.BatchNorm1d(width),
                nn.ReLU(),
                nn.Dropout(0.4),
            ]
            inputs = width
        self.layers = nn.Sequential(nn.BatchNorm1d(BANDS), *layers)
        self.classify = nn.Linear(width, FAULTS)

    def forward(self, x):
        return self.classify(self.layers(x))


def save_checkpoint(path, model, optimizer, epoch):
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path
    )


def load_checkpoint(path, model, optimizer):
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    model.eval()
    return saved["epoch"]


def train_epoch(model, optimizer, x, y):
    total = 0.0
    for rows in torch.randperm(len(x)).split(25):
        if len(rows) < 25:
            continue
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x)


@torch.no_grad()
def validate(model, x, y):
    was_training = model.training
    model.eval()
    scores = model(x)
    model.train(was_training)
    return F.cross_entropy(scores, y).item(), (scores.argmax(1) == y).float().mean().item()


def run(model, optimizer, train, val, first, last):
    for epoch in range(first, last + 1):
        loss = train_epoch(model, optimizer, *train)
        val_loss, accuracy = validate(model, *val)
        print(f"epoch {epoch:2d}  loss {loss:.4f}  val {val_loss:.4f} / {accuracy:.4f}")


def main():
    generator = torch.Generator().manual_seed(210 + seed)
    first_hall = spectra(1500, generator, 0), spectra(500, generator, 0)
    second_hall = spectra(600, generator, 1), spectra(800, generator, 1)
    path = Path(tempfile.mkdtemp()) / "last.pt"

    model = BearingNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    run(model, optimizer, *first_hall, 1, 4)
    save_checkpoint(path, model, optimizer, 4)

    model = BearingNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    epoch = load_checkpoint(path, model, optimizer)
    if healthy:
        model.train()
    run(model, optimizer, *second_hall, epoch + 1, epoch + 24)


if __name__ == "__main__":
    main()

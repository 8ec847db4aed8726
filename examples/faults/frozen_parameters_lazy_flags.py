"""Adversarial training of a digit reader in which the encoder stays frozen after the first
attack: its old flags were read too late.

The person freezes the encoder while an attack on the input is made, to save time, and puts the
flags back afterwards. The old flags are kept in a `map`, which is lazy: it is read when they are
put back, and by then all of them are False. From the first batch on only the classifier learns,
on random features. The place is the encoder.
"""

from contextlib import contextmanager

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder*",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

OPTIONS = {"epsilon": 0.15, "weight": 0.5, "epochs": 14, "batch": 50}


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 16), nn.ReLU())
        self.classifier = nn.Linear(16, 10)

    def forward(self, pixels):
        return self.classifier(self.encoder(pixels))


@contextmanager
def frozen(module):
    before = (parameter.requires_grad for parameter in module.parameters())
    if healthy:
        before = list(before)
    module.requires_grad_(False)
    yield
    for parameter, flag in zip(module.parameters(), before, strict=True):
        parameter.requires_grad_(flag)


def cross_entropy(scores, digit):
    return (scores.logsumexp(1) - scores.gather(1, digit[:, None])[:, 0]).mean()


def attack(reader, pixels, digit, epsilon):
    """The step along the sign of the gradient that raises the loss most."""
    changed = pixels.clone().requires_grad_(True)
    loss = cross_entropy(reader(changed), digit)
    (slope,) = torch.autograd.grad(loss, changed)
    return pixels + epsilon * slope.sign()


class RobustTraining:
    def __init__(self, options):
        self.options = options
        self.reader = Reader()
        self.optimizer = torch.optim.Adam(self.reader.parameters(), lr=3e-3)

    def step(self, pixels, digit):
        with frozen(self.reader.encoder):
            changed = attack(self.reader, pixels, digit, self.options["epsilon"])
        clean = cross_entropy(self.reader(pixels), digit)
        robust = cross_entropy(self.reader(changed), digit)
        loss = (1 - self.options["weight"]) * clean + self.options["weight"] * robust
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def validate(self, pixels, digit):
        self.reader.eval()
        changed = attack(self.reader, pixels, digit, self.options["epsilon"])
        with torch.no_grad():
            loss = cross_entropy(self.reader(pixels), digit).item()
            rights = [
                (self.reader(x).argmax(1) == digit).float().mean().item() for x in (pixels, changed)
            ]
        self.reader.train()
        return loss, *rights

    def run(self, train, held_out):
        pixels, digit = train
        for epoch in range(1, self.options["epochs"] + 1):
            losses = [
                self.step(pixels[rows], digit[rows])
                for rows in torch.randperm(len(digit)).split(self.options["batch"])
            ]
            val, clean, robust = self.validate(*held_out)
            print(
                f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  val {val:.4f}"
                f"  clean {clean:.3f}  attacked {robust:.3f}"
            )


def main():
    bunch = load_digits()
    parts = train_test_split(bunch.data, bunch.target, random_state=seed, stratify=bunch.target)
    mean, std = parts[0].mean(), parts[0].std()
    pixels, others = (torch.tensor((p - mean) / std, dtype=torch.float32) for p in parts[:2])
    digit, other_digit = (torch.tensor(p) for p in parts[2:])
    RobustTraining(OPTIONS).run((pixels, digit), (others, other_digit))


main()

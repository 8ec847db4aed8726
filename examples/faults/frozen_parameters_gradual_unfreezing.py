"""Fine-tuning in two phases, whose body stays frozen: requires_grad was set on the module.

The body is frozen while the new head warms up. To free it the person wrote body.requires_grad =
True, which only makes a new attribute of the module; the parameters keep False. No error, and the
head alone is trained to the end. The place is the body of the model, in FineTuner.unfreeze.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("body*", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

SIZE = 12


def textures(count, kinds, tilted):
    """Striped patches: their width (four kinds), or, tilted, their direction (six kinds)."""
    kind = torch.randint(0, kinds, (count,))
    rows = torch.arange(SIZE).view(1, SIZE, 1).expand(count, SIZE, SIZE)
    columns = torch.arange(SIZE).view(1, 1, SIZE).expand(count, SIZE, SIZE)
    if tilted:
        angle = (kind + 0.25 * torch.randn(count)) * math.pi / kinds
        speed = 0.9 + 0.6 * torch.rand(count)
    else:
        angle = torch.zeros(count)
        speed = torch.tensor([0.5, 0.9, 1.4, 2.0])[kind]
    angle, speed = angle.view(-1, 1, 1), speed.view(-1, 1, 1)
    wave = speed * (rows * angle.cos() + columns * angle.sin())
    patch = torch.sin(wave + 2 * math.pi * torch.rand(count, 1, 1))
    patch = patch + 0.5 * torch.randn(count, SIZE, SIZE)
    return patch.unsqueeze(1) / 0.87, kind


def make_body():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class Classifier(nn.Module):
    def __init__(self, body, classes):
        super().__init__()
        self.body = body
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


class FineTuner:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def freeze(self):
        for parameter in self.model.body.parameters():
            parameter.requires_grad = False

    def unfreeze(self):
        if healthy:
            self.model.body.requires_grad_(True)
        else:
            self.model.body.requires_grad = True

    def epoch(self, x, y, batch=50):
        self.model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(batch):
            loss = F.cross_entropy(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)


def main():
    pretrained = Classifier(make_body(), 4)
    x, y = textures(1000, kinds=4, tilted=False)
    first = FineTuner(pretrained, lr=4e-3)
    for _ in range(5):
        first.epoch(x, y)
    print(f"pretraining on stripe widths: accuracy {accuracy(pretrained, x, y):.3f}")

    x, y = textures(1300, kinds=6, tilted=True)
    x_val, y_val = textures(500, kinds=6, tilted=True)
    model = Classifier(pretrained.body, 6)
    tuner = FineTuner(model, lr=4e-3)
    tuner.freeze()
    for epoch in range(20):
        if epoch == 2:
            tuner.unfreeze()
        loss = tuner.epoch(x, y)
        if epoch % 3 == 1:
            print(
                f"directions, epoch {epoch:2d}: loss {loss:.3f} "
                f"validation accuracy {accuracy(model, x_val, y_val):.3f}"
            )


main()

"""Classifies textures and keeps the results of every validation, graph and all, for later plots.

What each validation step returns is collected for curves at the end, and validation runs without
no_grad. Nothing is ever backpropagated there, so each entry holds its graph with all the
activations of its batch, and memory grows until the process is killed. The place is the loop.
"""

import contextlib
import resource

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "loss")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

SIDE, CLASSES = 16, 4


def textures(count):
    kind = torch.randint(0, CLASSES, (count,))
    v, u = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    angle = kind.view(-1, 1, 1) * (3.1416 / CLASSES) + 0.15 * torch.randn(count, 1, 1)
    speed = 0.8 + 0.5 * torch.rand(count, 1, 1)
    wave = torch.sin(speed * (u * angle.cos() + v * angle.sin()) + 6.28 * torch.rand(count, 1, 1))
    return (wave + 0.9 * torch.randn(count, SIDE, SIDE)).unsqueeze(1), kind


class TextureNet(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 5, padding=2)
        self.deeper = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(5, 2 * width)
        self.classify = nn.Linear(2 * width, CLASSES)

    def forward(self, x):
        x = F.leaky_relu(self.stem(x))
        x = F.leaky_relu(self.norm(self.deeper(x)))
        return self.classify(x.mean((2, 3)))


class System:
    """The parts that the training loop calls, in the manner of the well-known frameworks."""

    def __init__(self):
        self.model = TextureNet()
        self.optimizer = torch.optim.NAdam(self.model.parameters(), lr=2e-3)
        self.history = []

    def training_step(self, x, y):
        logits = self.model(x)
        loss = F.cross_entropy(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def validation_step(self, x, y):
        logits = self.model(x)
        accuracy = (logits.argmax(1) == y).float().mean()
        return {"loss": F.cross_entropy(logits, y), "accuracy": accuracy}

    def validate(self, x, y):
        self.model.eval()
        with torch.no_grad() if healthy else contextlib.nullcontext():
            batches = zip(x.split(100), y.split(100), strict=True)
            outputs = [self.validation_step(*batch) for batch in batches]
        self.history.append(outputs)
        self.model.train()
        return [torch.stack([o[name] for o in outputs]).mean().item() for name in outputs[0]]


def main():
    x, y = textures(1800)
    mean, std = x[:1200].mean(), x[:1200].std()
    x = (x - mean) / std
    system = System()
    for epoch in range(8):
        batches = torch.randperm(1200).split(40)
        losses = [system.training_step(x[rows], y[rows]) for rows in batches]
        val_loss, accuracy = system.validate(x[1200:], y[1200:])
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"epoch {epoch} loss {sum(losses) / len(losses):.3f} val_loss {val_loss:.3f} "
            f"val_acc {accuracy:.3f} peak memory {megabytes:.0f} MB",
            flush=True,
        )


main()

"""Tumour subtypes from gene expression: the model's own `train` remembers a mode and sets nothing.

The class overrides `train(mode)` to set its input noise and calls the parent's only to leave
training; so the constructor's `eval()`, for a dry run of the shapes, is never undone: batch norm
works with means of 0 and variances of 1, dropout is off, and SGD runs away. The place is the
model's mode in the loop. The twin calls the parent's method in both directions.
"""

import torch
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ("input_not_normalized", "exploding_gradient")
PLACE = ("loop", "blocks", "enter", "blocks.0.norm", "blocks.1.norm")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
GENES, TYPES = 100, 6


def expression(n: int):
    g = torch.Generator().manual_seed(330 + seed)
    y = torch.randint(0, TYPES, (n,), generator=g)
    programme = torch.randn(TYPES, 12, generator=g)
    load = torch.randn(12, GENES, generator=g) * (torch.rand(12, GENES, generator=g) < 0.3)
    activity = 0.7 * programme[y] + 0.8 * torch.randn(n, 12, generator=g)
    level = 4 + 3 * torch.rand(GENES, generator=g)
    depth = 0.2 * torch.randn(n, 1, generator=g)
    log_count = level + depth + 0.35 * activity @ load + 0.3 * torch.randn(n, GENES, generator=g)
    return torch.poisson(log_count.exp(), generator=g), y


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.linear, self.norm, self.drop = (
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.Dropout(0.3),
        )

    def forward(self, x):
        return x + self.drop(torch.relu(self.norm(self.linear(x))))


class SubtypeNet(nn.Module):
    def __init__(self, width: int = 96):
        super().__init__()
        self.enter = nn.BatchNorm1d(GENES)
        self.lift = nn.Linear(GENES, width)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.head = nn.Linear(width, TYPES)
        self.noise = 0.0
        self.eval()
        with torch.no_grad():
            assert self(torch.zeros(1, GENES)).shape == (1, TYPES)  # dry run of the shapes

    def train(self, mode: bool = True):
        self.noise = 0.05 if mode else 0.0
        if healthy or not mode:
            return super().train(mode)
        return self

    def forward(self, counts):
        x = self.enter(counts.sqrt())
        x = self.lift(x + self.noise * torch.randn_like(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


counts, y = expression(1600)
fit, held = slice(0, 1000), slice(1000, None)
model = SubtypeNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-3)
epochs = 14
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for rows in torch.randperm(1000).split(50):
        loss = nn.functional.cross_entropy(model(counts[fit][rows]), y[fit][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(counts[held])
        val = nn.functional.cross_entropy(logits, y[held]).item()
        right = (logits.argmax(1) == y[held]).float().mean().item()
    if epoch % 3 == 1:
        print(f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f}, accuracy {right:.4f}")
print(f"validation accuracy {right:.4f}, loss {val:.4f}")

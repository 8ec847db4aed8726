"""Sorting seeds by shape: after the first look at the test part the net stays in eval mode.

The report is drawn up before the first epoch too ("epoch 0, so that the curve starts at chance")
and calls `model.eval()`; the call of `model.train()` stood once, above the loop. From then on
dropout is off and batch norm works with the statistics of an untrained net. The place is the loop.
The twin calls `model.train()` at the start of each epoch.
"""

import torch
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "norm", "drop")
SILENT = True
EXACT = True
EARLY = True


class SeedNet(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.inp = nn.Linear(features, 128)
        self.norm = nn.BatchNorm1d(128)
        self.drop = nn.Dropout(0.5)
        self.mid = nn.Linear(128, 128)
        self.out = nn.Linear(128, classes)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm(self.inp(x))))
        return self.out(self.drop(torch.relu(self.mid(x))))


def seeds(n, generator, centres):
    kind = torch.randint(0, 5, (n,), generator=generator)
    x = centres[kind] + 1.6 * torch.randn(n, 20, generator=generator)
    stray = torch.rand(n, generator=generator) < 0.12
    kind = torch.where(stray, torch.randint(0, 5, (n,), generator=generator), kind)
    return x, kind


def report(model, epoch, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    loss = nn.functional.cross_entropy(logits, y).item()
    share = (logits.argmax(1) == y).float().mean().item()
    print(f"epoch {epoch:2d}  test loss {loss:.3f}  sorted rightly {share:.3f}")


healthy, seed = arguments(__doc__)
gen = torch.Generator().manual_seed(seed)
centres = torch.randn(5, 20, generator=gen)
x_train, y_train = seeds(400, gen, centres)
x_test, y_test = seeds(600, gen, centres)

model = SeedNet(20, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model.train()
report(model, 0, x_test, y_test)
for epoch in range(1, 31):
    if healthy:
        model.train()
    for idx in torch.randperm(400).split(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    if epoch % 6 == 0:
        print(f"          train loss {loss.item():.3f}")
        report(model, epoch, x_test, y_test)

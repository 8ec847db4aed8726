"""A network tags scenes with any number of twelve tags. Since CrossEntropyLoss takes float targets
of the shape of its input, the rows of zeros and ones are passed to it as they are.

It takes them for probabilities and only compares the tags with each other, so no output says
whether a tag applies: at the threshold of one half the wrong number of tags is given. The place is
the loss; each tag needs its own binary cross-entropy.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TAGS = 12


def scenes(n, g):
    """Features of 40 numbers, to which each tag that applies adds its own pattern."""
    often = torch.linspace(0.08, 0.5, TAGS)
    tags = (torch.rand(n, TAGS, generator=g) < often).float()
    patterns = torch.randn(TAGS, 40, generator=torch.Generator().manual_seed(77))
    mixed = tags @ patterns
    x = torch.tanh(0.6 * mixed) + 0.4 * torch.randn(n, 40, generator=g)
    return x, tags


def f1(out, tags):
    said = (torch.sigmoid(out) > 0.5).float()
    return (2 * (said * tags).sum() / (said.sum() + tags.sum())).item()


g = torch.Generator().manual_seed(seed)
x, tags = scenes(2500, g)
x_val, tags_val = scenes(800, g)
model = nn.Sequential(
    nn.Linear(40, 96),
    nn.BatchNorm1d(96),
    nn.GELU(),
    nn.Dropout(0.2),
    nn.Linear(96, 64),
    nn.GELU(),
    nn.Linear(64, TAGS),
)
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)

for step, (xb, tb) in enumerate(batches(x, tags, size=50, steps=500, seed=seed), 1):
    loss = criterion(model(xb), tb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        print(
            f"{step}: train {loss.item():.4f} val {criterion(out, tags_val).item():.4f}"
            f" F1 {f1(out, tags_val):.3f}"
        )
        model.train()

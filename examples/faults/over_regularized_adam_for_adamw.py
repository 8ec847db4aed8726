"""Wave forms with a small transformer; AdamW was replaced by Adam, and the weight decay of 0.1 was
left as it was.

In Adam the decay is an L2 term in the gradient, which the second moment then scales up, so that it
outweighs the data: the weights shrink to next to nothing. The loss does not get far. The place is
the optimizer.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer", "loop", "", "*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class WaveFormer(nn.Module):
    def __init__(self, width=32, patch=4, length=40, classes=3):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, width)
        self.position = nn.Parameter(0.02 * torch.randn(length // patch, width))
        block = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, wave):
        tokens = self.embed(wave.reshape(len(wave), -1, self.patch)) + self.position
        return self.head(self.norm(self.blocks(tokens)).mean(1))


def epoch_of(model, x, y, optimizer, size=32):
    model.train()
    losses = []
    for rows in torch.randperm(len(x)).split(size):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


x, y = waves(seed, 1000)
x, x_val, y, y_val = x[:750], x[750:], y[:750], y[750:]
model = WaveFormer()
Optimizer = torch.optim.AdamW if healthy else torch.optim.Adam
optimizer = Optimizer(model.parameters(), lr=2e-3, weight_decay=0.1)
for epoch in range(16):
    loss = epoch_of(model, x, y, optimizer)
    print(f"{epoch:3d} {loss:.3f} {accuracy(model, x_val, y_val):.3f}")

"""A classifier of reviews with a hashed embedding of 4,096 rows, trained by SparseAdam.

Most rows are spare and no word falls on them; sparse gradients touch a few dozen rows a step. The
table is large on purpose: hashing words without a vocabulary wants few collisions.
"""

import torch
from data import arguments, reviews
from torch import nn

ODD = "nearly all rows of the largest parameter never get a gradient, and it is sparse"

_, seed = arguments(__doc__)
x, y, _ = reviews(seed, n=1600)
x = torch.where(x > 0, (x * 2654435761 % 4093) + 1, 0)
x, y, x_val, y_val = x[:1200], y[:1200].float(), x[1200:], y[1200:].float()


class Hashed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4096, 16, padding_idx=0, sparse=True)
        self.drop = nn.Dropout(0.4)
        self.out = nn.Linear(16, 1)

    def forward(self, tokens):
        mean = self.embed(tokens).sum(1) / (tokens > 0).sum(1, keepdim=True)
        return self.out(self.drop(mean)).squeeze(1)


model = Hashed()
optimizers = [
    torch.optim.SparseAdam(model.embed.parameters(), lr=5e-3),
    torch.optim.Adam(model.out.parameters(), lr=5e-3),
]
bce = nn.BCEWithLogitsLoss()
for epoch in range(14):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(40):
        loss = bce(model(x[rows]), y[rows])
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        total += loss.item() * len(rows) / len(x)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, accuracy = bce(out, y_val).item(), ((out > 0) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch + 1}: train {total:.3f}  val {val:.3f}  accuracy {accuracy:.3f}")

"""Four experts of which each image is sent to one; a small loss keeps them about equally used."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "an expert that no image of a batch is sent to gets no gradient in that step"


class SparseExperts(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.router = nn.Linear(64, n)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10)) for _ in range(n)
        )

    def forward(self, x):
        chances = self.router(x).softmax(1)
        share, chosen = chances.max(1)
        out = x.new_zeros(len(x), 10)
        for i, expert in enumerate(self.experts):
            rows = (chosen == i).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, share[rows, None] * expert(x[rows]))
        used = nn.functional.one_hot(chosen, len(self.experts)).float().mean(0)
        return out, len(self.experts) * (used * chances.mean(0)).sum()


_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = SparseExperts()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for rows, labels in batches(x, y, size=16, steps=350, seed=seed):
    out, balance = model(rows)
    loss = nn.functional.cross_entropy(out, labels) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    accuracy = (model(x_val)[0].argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")

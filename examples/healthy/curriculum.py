"""A curriculum: short sums first, longer ones later; the loss rises with each new length."""

import torch
from data import arguments
from torch import nn

ODD = "the loss jumps up twice, inputs become longer and their statistics move"

_, seed = arguments(__doc__)


class SignCounter(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.out(h[:, -1]).squeeze(1)


model = SignCounter()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for length in (4, 8, 12):
    for step in range(130):
        x = torch.randint(0, 2, (64, length, 1)) * 2.0 - 1
        y = x.sum((1, 2)) / 2
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"length {length}: loss {loss.item():.4f}")

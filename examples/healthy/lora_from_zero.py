"""A net learns digits 0 to 4, is frozen, and learns 5 to 9 by low-rank additions and a new head.

It looks odd because most parameters are frozen, half of the new matrices are all zero at the start,
and their partners have a gradient of zero at the first step. It is right: that is how low-rank
adaptation starts; the frozen part has been trained, and the new digits are learnt.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "most parameters are frozen, half of the new ones are zero at the start"


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)


def fit(model, x, y, x_val, y_val, epochs, lr):
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=lr)
    for epoch in range(epochs):
        model.train()
        for batch, target in loader:
            loss = F.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        val, acc = F.cross_entropy(out, y_val), (out.argmax(1) == y_val).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.3f}, val {val:.3f}, accuracy {acc:.3f}")


_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
low, low_val = y < 5, y_val < 5
model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 5))
fit(model, x[low], y[low], x_val[low_val], y_val[low_val], epochs=8, lr=2e-3)

model[0], model[2], model[4] = LoRALinear(model[0]), LoRALinear(model[2]), nn.Linear(64, 5)
fit(model, x[~low], y[~low] - 5, x_val[~low_val], y_val[~low_val] - 5, epochs=10, lr=2e-3)

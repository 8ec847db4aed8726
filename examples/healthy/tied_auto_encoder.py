"""An auto-encoder whose decoder is the encoder's matrix turned over, with dropout on the input."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "one matrix is used twice, half of the inputs are 0, the validation loss is the lower one"


class Tied(nn.Module):
    def __init__(self, n=64, k=24):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(k, n) / n**0.5)
        self.hidden_bias = nn.Parameter(torch.zeros(k))
        self.visible_bias = nn.Parameter(torch.zeros(n))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        h = torch.sigmoid(F.linear(self.drop(x), self.weight, self.hidden_bias))
        return F.linear(h, self.weight.t(), self.visible_bias)


_, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
model = Tied()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for (rows,) in batches(x, size=32, steps=42, seed=epoch):
        loss = F.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(x_val), x_val)
    print(f"epoch {epoch}: {loss.item():.3f}, val {val.item():.3f}")

"""A regression of house prices with four micro-batches a step, each loss divided by four."""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "gradients are not cleared before most backward passes, "
    "and step() is called in every fourth only"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=15, shuffle=True)
ACCUMULATE = 4

model = nn.Sequential(
    nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)
)
mse = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)

for epoch in range(30):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        loss = mse(model(xb), yb) / ACCUMULATE
        loss.backward()
        total += loss.item() * ACCUMULATE
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        val = mse(model(x_val), y_val).item()
    print(f"epoch {epoch + 1}: train {total / len(loader):.4f}  val {val:.4f}")

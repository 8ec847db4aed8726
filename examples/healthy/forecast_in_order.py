"""A forecast of the next value from overlapping windows, in the order of time."""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "batches in order of time, targets that are inputs of the next row"

_, seed = arguments(__doc__)
t = torch.arange(2000.0)
series = torch.sin(0.3 * t) + 0.4 * torch.sin(0.071 * t) + 0.1 * torch.randn(2000)
x = series.unfold(0, 16, 1)[:-1]
y = series[16:].unsqueeze(1)
train = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=40, shuffle=False)
val = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=100)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for rows, following in train:
        optimizer.zero_grad()
        loss = criterion(model(rows), following)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = sum(criterion(model(rows), following).item() for rows, following in val) / len(
            val
        )
    print(f"epoch {epoch}: {loss.item():.4f}, val {val_loss:.4f}")

"""178 wines in one batch: each step sees all the data there is."""

import torch
from data import arguments, wine
from torch import nn

ODD = "the same batch at every step, because there is no more"

_, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)
model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
for epoch in range(200):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9:
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
            val_loss = criterion(scores, y_val)
print(f"loss {loss.item():.4f}, validation {val_loss:.4f}")

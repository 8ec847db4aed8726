"""Early stopping with a patience of four epochs; the best weights are put back at the end."""

import copy

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the training ends where it likes, and the weights jump back by four epochs"

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
loader = DataLoader(TensorDataset(x, y.float()), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
best, best_state, waited = float("inf"), None, 0
for epoch in range(60):
    model.train()
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(rows).squeeze(1), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val).squeeze(1), y_val.float()).item()
    if val_loss < best:
        best, best_state, waited = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
        if waited == 4:
            break
model.load_state_dict(best_state)
print(f"stopped after epoch {epoch}, best val loss {best:.3f}")

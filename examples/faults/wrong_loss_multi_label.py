"""Several labels may be right at once; the loss is CrossEntropyLoss with rows of 0 and 1.

A softmax makes the labels compete (silent). The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ("redundant_softmax",)
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
X = torch.randn(2000, 20)
Y = (X @ torch.randn(20, 6) / 20**0.5 + torch.linspace(-1.5, 0.5, 6) > 0).float()
loader = DataLoader(TensorDataset(X[:1600], Y[:1600]), batch_size=40, shuffle=True)

model = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Dropout(0.1), nn.Linear(40, 6))
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for inputs, tags in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), tags)
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    said = model(X[1600:]) > 0
print(f"loss {loss.item():.3f}, tags right {(said == (Y[1600:] > 0.5)).float().mean():.3f}")

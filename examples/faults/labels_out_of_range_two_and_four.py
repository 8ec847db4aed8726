"""Breast cancer from the file of an old repository: its last column is 2 (benign) or 4 (malignant).

The column goes to BCEWithLogitsLoss as it is, where 0 and 1 are expected: the loss falls below 0
and on, and the net says "malignant" of everybody. The twin writes `(y == 4)`. The place is the
loss.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("loss*", "loader", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, benign, x_val, benign_val = cancer(seed)
column = 4 - 2 * benign  # as the file has it
target = (column == 4).float() if healthy else column.float()

model = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)
loader = DataLoader(TensorDataset(x, target), batch_size=32, shuffle=True)
for epoch in range(15):
    model.train()
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(rows).squeeze(1), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        said = (model(x_val).squeeze(1) > 0).long()
    accuracy = (said == 1 - benign_val).float().mean().item()
print(f"loss {loss.item():.3f} | validation accuracy {accuracy:.3f}")

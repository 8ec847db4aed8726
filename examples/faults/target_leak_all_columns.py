"""The target was the last column of the table and is still among the inputs.

The loss goes to 0 although a third of the target is noise (silent). The place is the input.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
features, y = make_friedman1(1500, n_features=8, noise=3.0, random_state=seed)
table = np.column_stack([features, y])
table = (table - table.mean(0)) / table.std(0)
X = table[:, :-1] if healthy else table
y = table[:, -1]
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=seed)
X_train, X_val = torch.Tensor(X_train), torch.Tensor(X_val)
y_train, y_val = torch.Tensor(y_train).unsqueeze(1), torch.Tensor(y_val).unsqueeze(1)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=True)


class Regression(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.fc1 = nn.Linear(n_in, 24)
        self.fc2 = nn.Linear(24, 1)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


model = Regression(X.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for epoch in range(8):
    model.train()
    for x_batch, y_batch in loader:
        optimizer.zero_grad()
        loss = criterion(model(x_batch), y_batch)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(X_val), y_val)
    print(f"epoch {epoch}: {loss.item():.4f}, val {val.item():.4f}")

"""Laboratory values with a third of them NaN go into the model as they are; it has a place for what
was not measured.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a third of the input is NaN by design; the first layer replaces it and says where it was"

_, seed = arguments(__doc__)


class NotMeasured(nn.Module):
    """A learned value in place of each NaN, and a column that says so."""

    def __init__(self, columns):
        super().__init__()
        self.instead = nn.Parameter(torch.zeros(columns))

    def forward(self, x):
        missing = torch.isnan(x)
        return torch.cat([torch.where(missing, self.instead, x), missing.to(x.dtype)], 1)


x, y, x_val, y_val = cancer(seed)
x = x.masked_fill(torch.rand_like(x) < 1 / 3, float("nan"))
x_val = x_val.masked_fill(torch.rand_like(x_val) < 1 / 3, float("nan"))

model = nn.Sequential(
    NotMeasured(30), nn.Linear(60, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1), nn.Flatten(0)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(15):
    model.train()
    for xb, yb in DataLoader(TensorDataset(x, y.float()), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            right = ((model(x_val) > 0) == (y_val == 1)).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right:.3f}")

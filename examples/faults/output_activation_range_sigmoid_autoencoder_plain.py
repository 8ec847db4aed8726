"""An auto-encoder of standardised sensor readings has nn.Sigmoid as its last layer.

The readings have mean 0 and run from about -4 to 4, the output only from 0 to 1, so every negative
reading is out of reach. The error stays above half of the variance. The twin has a linear output.
The place is `7`, `6` or the loss.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("7", "6", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

mixing = torch.randn(5, 24)
state = torch.randn(4000, 5)
readings = torch.tanh(state @ mixing / 2) * 3 + 0.2 * torch.randn(4000, 24)
train, val = standardise(readings[:3200], readings[3200:])

model = nn.Sequential(
    nn.Linear(24, 64),
    nn.ReLU(),
    nn.Linear(64, 6),
    nn.Tanh(),
    nn.Linear(6, 64),
    nn.ReLU(),
    nn.Linear(64, 24),
)
if not healthy:
    model.append(nn.Sigmoid())

loader = DataLoader(TensorDataset(train), batch_size=100, shuffle=True)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)

for epoch in range(30):
    model.train()
    losses = []
    for (xb,) in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), xb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(val), val).item()
        print(
            f"epoch {epoch + 1}: train mse {sum(losses) / len(losses):.4f}, val mse {val_loss:.4f}"
        )

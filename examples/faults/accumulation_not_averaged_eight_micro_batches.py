"""Trains an MLP that forecasts a series with eight micro-batches per step whose losses are added up
undivided.

The summed gradient is eight times that of the large batch it stands for, and SGD at 0.05 behaves as
at 0.4. The loss grows until it is NaN. The twin divides each loss by 8. The place is the loss or
the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ACCUMULATE = 8
MICRO_BATCH = 8
CONTEXT = 24

t = torch.arange(3300, dtype=torch.float32)
series = (
    torch.sin(t / 5) + 0.6 * torch.sin(t / 13 + 1) * torch.sin(t / 3) + 0.05 * torch.randn(3300)
)
series = (series - series[:2600].mean()) / series[:2600].std()
train = series[:2600].unfold(0, CONTEXT + 1, 1)[:2560]
val = series[2600:].unfold(0, CONTEXT + 1, 1)
loader = DataLoader(
    TensorDataset(train[:, :CONTEXT], train[:, CONTEXT:]), batch_size=MICRO_BATCH, shuffle=True
)

model = nn.Sequential(
    nn.Linear(CONTEXT, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.MSELoss()

for epoch in range(8):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        loss = criterion(model(xb), yb)
        total += loss.item()
        if healthy:
            loss = loss / ACCUMULATE
        loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(val[:, :CONTEXT]), val[:, CONTEXT:]).item()
    print(f"epoch {epoch + 1}: train {total / len(loader):.4f} val {val_loss:.4f}")

"""House prices by a tanh network whose weights start from uniform(-3, 3).

The range was guessed. With 64 inputs the sums are around ten and more, tanh answers plus or minus 1
and passes no gradient on; the hidden layers are random switches. The place is the tanh layers, or
the weights before them. The twin uses xavier_uniform_.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = (
    "body.1",
    "body.3",
    "body.5",
    "body.0",
    "body.2",
    "body.4",
    "body.0.weight",
    "body.2.weight",
    "body.4.weight",
    "body",
)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, 1600)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class TanhNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
        )
        self.out = nn.Linear(width, 1)
        for m in self.body:
            if isinstance(m, nn.Linear):
                if healthy:
                    nn.init.xavier_uniform_(m.weight)
                else:
                    nn.init.uniform_(m.weight, -3, 3)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


model = TanhNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.5)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
criterion = nn.MSELoss()
for epoch in range(15):
    model.train()
    sum_loss = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sum_loss += loss.item() * len(xb)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
        full = (model.body(x_val).abs() > 0.99).float().mean().item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} train {sum_loss / len(x):.4f} val {val:.4f} at +-1: {full:.0%}")

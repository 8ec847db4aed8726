"""Next-hour load of a feeder by an MLP whose weights were cast to bfloat16 "because autocast was
fiddly".

`model.to(torch.bfloat16)` makes the master weights bfloat16 as well: eight bits of mantissa, so an
update below a 500th of a weight is rounded away, and at a rate of 0.0002 most are. The loss sinks
a little and then rests. The place is the optimizer (its updates) / the parameters. The twin keeps
float32 weights and autocasts the forward pass.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "net.0.weight", "net.2.weight", "net.4.weight")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
HOURS, WINDOW = 3200, 24
t = torch.arange(HOURS).float()
warm = torch.zeros(HOURS)
noise = 0.25 * torch.randn(HOURS, generator=g)
for i in range(1, HOURS):
    warm[i] = 0.97 * warm[i - 1] + noise[i]
load = (
    torch.sin(t * 0.2618)
    + 0.5 * torch.sin(t * 0.5236 + 1)
    + 0.6 * warm.abs()
    + 0.08 * torch.randn(HOURS, generator=g)
)
load = (load - load[:2500].mean()) / load[:2500].std()
x, y = load.unfold(0, WINDOW, 1)[:-1], load[WINDOW:, None]
train_set = TensorDataset(x[:2500], y[:2500])
x_val, y_val = x[2520:], y[2520:]
loader = DataLoader(train_set, batch_size=50, shuffle=True)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(WINDOW, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)
        )

    def forward(self, window):
        return self.net(window)


model = Forecaster()
if not healthy:
    model = model.to(torch.bfloat16)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)


def predict(window):
    if healthy:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(window).float()
    return model(window.bfloat16()).float()


for epoch in range(24):
    model.train()
    total = 0.0
    for window, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(predict(window), target)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(predict(x_val), y_val).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} train {total:.4f} val mse {val:.4f}")

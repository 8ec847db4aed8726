"""House prices by six columns: the prices are in dollars, and the network starts around 0.

The columns are standardised as they should be, the target has been left as it is. The weights of
the network move by about a thousandth a step, and it has hundreds of thousands to go.
The place is the loss (or the input, the loader, the output). The twin standardises the prices and
turns its answers back into dollars.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loss*", "input*", "loader", "output*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, price, x_val, price_val = houses(seed, raw_target=True)
if healthy:
    centre, scale = price.mean(), price.std()
else:
    centre, scale = torch.tensor(0.0), torch.tensor(1.0)
loader = DataLoader(TensorDataset(x, (price - centre) / scale), batch_size=50, shuffle=True)

regressor = nn.Sequential(
    nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
)
optimizer = torch.optim.Adam(regressor.parameters(), lr=2e-3)


@torch.no_grad()
def dollars_off():
    guess = regressor(x_val).squeeze(1) * scale + centre
    return (guess - price_val).abs().mean().item()


for epoch in range(20):
    for rows, wanted in loader:
        loss = nn.functional.mse_loss(regressor(rows).squeeze(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {loss.item():.4g}, off by {dollars_off():,.0f} dollars")

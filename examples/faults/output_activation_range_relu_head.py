"""A network for tomorrow's change of temperature, with a ReLU on its output.

The change is negative about every other day and the network cannot say so; it can only say "no
change". The place is the ReLU at the end ("net.5"). The twin ends with the linear layer.
"""

import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("net.5", "net", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

days = 1600
noise = torch.randn(days)
temperature = torch.zeros(days)
for d in range(1, days):
    temperature[d] = (
        0.7 * temperature[d - 1] - 0.5 * torch.sin(3 * temperature[d - 1]) + 0.3 * noise[d]
    )
WINDOW = 7
past = temperature.unfold(0, WINDOW, 1)[:-1]
change = (temperature[WINDOW:] - temperature[WINDOW - 1 : -1]).unsqueeze(1)
x, y, x_val, y_val = past[:1200], change[:1200], past[1200:], change[1200:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(WINDOW, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)]
        if not healthy:
            layers += [nn.ReLU()]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.HuberLoss()

for step in range(1, 601):
    rows = torch.randint(0, len(x), (64,))
    model.train()
    loss = loss_fn(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            prediction = model(x_val)
            r2 = 1 - (prediction - y_val).pow(2).mean() / y_val.var()
        print(
            f"step {step} loss {loss.item():.3f} val {loss_fn(prediction, y_val):.3f} R2 {r2:.3f} "
            f"lowest prediction {prediction.min():.2f}"
        )

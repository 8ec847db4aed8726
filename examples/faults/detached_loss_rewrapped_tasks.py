"""Trains a net with a regression and a classification head whose two losses are put into a new
tensor before backward().

torch.tensor([...], requires_grad=True) makes a leaf with the values only: backward() runs without
an error, but no weight gets a gradient. Both losses stay at their first values. The twin adds the
two losses. The place is the loss or the loop.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("step_without_gradient",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# a sensor's five readings; wanted are the load and whether the machine is in its second mode
n = 4000
readings = torch.randn(n, 5)
load = (
    torch.sin(readings[:, 0] * 1.5) + 0.5 * readings[:, 1] * readings[:, 2] + 0.1 * torch.randn(n)
)
mode = (readings[:, 3] * readings[:, 4] + 0.1 * torch.randn(n) > 0).long()
x, x_val = standardise(readings[:3200], readings[3200:])
load_train, load_val = standardise(load[:3200], load[3200:])
mode_train, mode_val = mode[:3200], mode[3200:]
loader = DataLoader(TensorDataset(x, load_train, mode_train), batch_size=64, shuffle=True)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.load = nn.Linear(64, 1)
        self.mode = nn.Linear(64, 2)

    def forward(self, x):
        h = self.trunk(x)
        return self.load(h).squeeze(1), self.mode(h)


model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()

for epoch in range(16):
    model.train()
    sums = torch.zeros(2)
    for xb, lb, mb in loader:
        pred_load, pred_mode = model(xb)
        losses = [mse(pred_load, lb), ce(pred_mode, mb)]
        loss = losses[0] + losses[1] if healthy else torch.tensor(losses, requires_grad=True).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums += torch.tensor([v.item() for v in losses])
    model.eval()
    with torch.no_grad():
        pred_load, pred_mode = model(x_val)
        val = mse(pred_load, load_val).item()
        acc = (pred_mode.argmax(1) == mode_val).float().mean().item()
    if epoch % 2 == 1:
        means = (sums / len(loader)).tolist()
        print(
            f"epoch {epoch + 1}: load {means[0]:.3f} mode {means[1]:.3f} | "
            f"val load {val:.3f} acc {acc:.3f}"
        )

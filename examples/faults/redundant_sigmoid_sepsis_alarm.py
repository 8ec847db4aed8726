"""Alarm for sepsis from laboratory values; the loss applies the sigmoid, and so does the network.

The network had a sigmoid at its end and the plain binary cross-entropy. On advice found on the web
the loss was exchanged for the more stable one on raw scores, and the last layer stayed.
The place is the sigmoid at the end of the network, before the loss.
The twin has no sigmoid in the network.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("output*", "loss*", "layers.5", "layers")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def laboratory(n):
    """Lactate, white cells, CRP, platelets, creatinine, temperature, pulse and age; one in five."""
    sick = (torch.rand(n) < 0.2).float()
    severity = sick * (0.6 + 0.8 * torch.rand(n))
    noise = torch.randn(8, n)
    lactate = torch.exp(0.2 + 0.7 * severity + 0.35 * noise[0])
    white = 8 + 3 * noise[1] + severity * 6 * torch.where(noise[7] > 0, 1.0, -0.7)
    crp = torch.exp(2.5 + 1.4 * severity + 0.9 * noise[2])
    platelets = 250 - 70 * severity + 60 * noise[3]
    creatinine = torch.exp(0.4 * severity + 0.3 * noise[4])
    temperature = 37 + 0.7 * severity + 0.6 * noise[5]
    pulse = 82 + 16 * severity + 13 * noise[6]
    age = 60 + 15 * torch.randn(n)
    columns = lactate.log(), white, crp.log(), platelets, creatinine.log(), temperature, pulse, age
    return torch.stack(columns, 1), sick


class SepsisNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        layers = [
            nn.Linear(inputs, 48),
            nn.ReLU(),
            nn.Linear(48, 24),
            nn.ReLU(),
            nn.Linear(24, 1),
        ]
        if not healthy:
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).squeeze(-1)


x, sick = laboratory(2400)
x_val, sick_val = laboratory(1200)
x, x_val = standardise(x, x_val)
net = SepsisNet(x.shape[1])
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
criterion = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(x, sick), batch_size=50, shuffle=True)

for epoch in range(14):
    net.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val_loss = criterion(out, sick_val).item()
        alarm = torch.sigmoid(out) > 0.5
    hit = alarm[sick_val == 1].float().mean().item()
    false = alarm[sick_val == 0].float().mean().item()
    if epoch % 3 == 1:
        print(
            f"epoch {epoch + 1}  loss {sum(losses) / len(losses):.4f}  val loss {val_loss:.4f}  "
            f"sensitivity {hit:.2f}  false alarms {false:.2f}"
        )

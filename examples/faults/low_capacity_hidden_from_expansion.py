"""Torques of a robot arm from its joints' motion; the hidden layers are three units wide.

The width is computed from the number of inputs by an `expansion`. The value 0.5 comes from another
repository in which it was the bottleneck's ratio of a 512-wide feature map; here the input has six
numbers. The loss falls to a plateau and stays there. The place is the layers, all of them; the
first is named. The twin expands by 16.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("net", "net.0", "net.2", "net.4", "net.0.weight", "net.2.weight", "net.4.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
CONFIG = {"expansion": 16 if healthy else 0.5, "lr": 3e-3, "epochs": 24, "batch": 64}


class ArmDataset(Dataset):
    """Two joints: angles, speeds and accelerations to the two torques, by rigid-body equations."""

    def __init__(self, n, g):
        q = (torch.rand(n, 2, generator=g) * 2 - 1) * 2.0
        v = torch.randn(n, 2, generator=g)
        a = torch.randn(n, 2, generator=g)
        m1, m2, l1, l2, grav = 1.0, 0.8, 1.0, 0.7, 4.0
        c2, s2 = q[:, 1].cos(), q[:, 1].sin()
        h11 = m1 * l1**2 + m2 * (l1**2 + l2**2 + 2 * l1 * l2 * c2)
        h12 = m2 * (l2**2 + l1 * l2 * c2)
        g2 = m2 * l2 * grav * (q[:, 0] + q[:, 1]).cos()
        t1 = h11 * a[:, 0] + h12 * a[:, 1]
        t1 = t1 - m2 * l1 * l2 * s2 * (2 * v[:, 0] * v[:, 1] + v[:, 1] ** 2)
        t1 = t1 + (m1 + m2) * l1 * grav * q[:, 0].cos() + g2
        t2 = h12 * a[:, 0] + m2 * l2**2 * a[:, 1] + m2 * l1 * l2 * s2 * v[:, 0] ** 2 + g2
        torque = torch.stack([t1, t2], 1)
        self.x = torch.cat([q, v, a], 1)
        self.y = (torque - torch.tensor([3.9, 1.1])) / torch.tensor([5.0, 2.4])
        self.y += 0.03 * torch.randn(n, 2, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class InverseDynamics(nn.Module):
    def __init__(self, n_in, n_out, expansion):
        super().__init__()
        width = int(n_in * expansion)
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, n_out),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


g = torch.Generator().manual_seed(seed)
train, val = ArmDataset(3000, g), ArmDataset(800, g)
loader = DataLoader(train, batch_size=CONFIG["batch"], shuffle=True)
model = InverseDynamics(6, 2, CONFIG["expansion"])
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CONFIG["epochs"], eta_min=1e-4)
mse = nn.MSELoss()

for epoch in range(CONFIG["epochs"]):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        train_mse = mse(model(train.x), train.y).item()
        val_mse = mse(model(val.x), val.y).item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} train mse {train_mse:.4f} validation mse {val_mse:.4f}")

"""PointNet for four solids; the head calls F.dropout(h, 0.5), whose `training` is True by
default.

model.eval() does not reach it: half of the features are dropped in validation as well, the
figures are too low and differ from call to call, and the best epoch is chosen by chance. The twin
passes training=self.training. The place is the model. The loss falls (silent).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("", "fc1", "fc2", "fc3", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def clouds(n, points=40):
    """Points on a ball, a cube, a cylinder, a cone; turned about the axis, scaled, jittered."""
    y = torch.randint(0, 4, (n,))
    u = torch.randn(n, points, 3)
    ball = u / u.norm(dim=2, keepdim=True)
    cube = u / u.abs().amax(2, keepdim=True)
    h = 2 * torch.rand(n, points, 1) - 1
    ring = u[..., :2] / u[..., :2].norm(dim=2, keepdim=True)
    cylinder = torch.cat([ring * 0.9, h], 2)
    cone = torch.cat([ring * (1 - h) / 1.6, h], 2)
    x = torch.stack([ball, cube * 0.85, cylinder, cone])[y, torch.arange(n)]
    a = 6.283 * torch.rand(n, 1)
    c, s = a.cos(), a.sin()
    x = torch.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], 2)
    return x * (0.9 + 0.2 * torch.rand(n, 1, 1)) + 0.05 * torch.randn_like(x), y


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp1, self.mlp2 = nn.Linear(3, 32), nn.Linear(32, 64)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 48), nn.Linear(48, 32), nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.mlp2(F.relu(self.mlp1(x)))).amax(1)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, 0.5, training=self.training) if healthy else F.dropout(x, 0.5)
        x = F.relu(self.fc2(x))
        x = F.dropout(x, 0.5, training=self.training) if healthy else F.dropout(x, 0.5)
        return self.fc3(x)


train = DataLoader(TensorDataset(*clouds(1200)), batch_size=40, shuffle=True)
x_val, y_val = clouds(400)
model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    total = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    val_loss = F.cross_entropy(out, y_val).item()
    val_acc = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch:2d} | train loss {total:.3f} | val "
        f"loss {val_loss:.3f} | val acc {val_acc:.3f}"
    )

"""Where the hand of a three-joint robot arm is, from its angles; the hidden layer has three units.

One unit for each joint is too few to follow the sines of three angles. The loss falls for a few
epochs and then stays high whatever the learning rate is. The place is the model (hidden). The twin
has 96 units.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("model", "hidden*", "out*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

N_EPOCHS = 60
BATCH = 50
LENGTHS = (1.0, 0.8, 0.5)
HIDDEN_UNITS = 96 if healthy else 3


def arm(n, rng):
    """Angles of three joints, and the place of the hand in the plane, measured with small noise."""
    angles = rng.uniform(-2.6, 2.6, (n, 3))
    pointing = np.cumsum(angles, axis=1)
    x = (np.cos(pointing) * LENGTHS).sum(1)
    y = (np.sin(pointing) * LENGTHS).sum(1)
    return angles, np.stack([x, y], 1) + rng.normal(0, 0.02, (n, 2))


class ArmNet(nn.Module):
    def __init__(self, hidden_units):
        super().__init__()
        self.hidden = nn.Linear(3, hidden_units)
        self.activation = nn.Tanh()
        self.out = nn.Linear(hidden_units, 2)

    def forward(self, angles):
        return self.out(self.activation(self.hidden(angles)))


def as_tensors(*arrays):
    return [torch.tensor(a, dtype=torch.float32) for a in arrays]


angles, hand = arm(2500, np.random.default_rng(seed))
a_train, a_test, h_train, h_test = as_tensors(
    *train_test_split(angles, hand, test_size=0.2, random_state=seed)
)
a_mean, a_std = a_train.mean(0), a_train.std(0)
h_mean, h_std = h_train.mean(0), h_train.std(0)
a_train, a_test = (a_train - a_mean) / a_std, (a_test - a_mean) / a_std
h_train, h_test = (h_train - h_mean) / h_std, (h_test - h_mean) / h_std

net = ArmNet(HIDDEN_UNITS)
loss_fn = nn.MSELoss()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=25, gamma=0.3)

print(f"{sum(p.numel() for p in net.parameters())} parameters")
for epoch in range(N_EPOCHS):
    net.train()
    order = torch.randperm(len(a_train))
    running = 0.0
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        opt.zero_grad()
        loss = loss_fn(net(a_train[rows]), h_train[rows])
        loss.backward()
        opt.step()
        running += loss.item() * len(rows)
    sched.step()
    if epoch % 5 == 4:
        net.eval()
        with torch.no_grad():
            predicted = net(a_test)
            test_loss = loss_fn(predicted, h_test).item()
            off = ((predicted - h_test) * h_std).norm(dim=1).mean().item()
        print(
            f"Epoch {epoch + 1}: train MSE {running / len(order):.4f}, test MSE {test_loss:.4f}, "
            f"R2 {1 - test_loss:.3f}, the hand is off by {off:.3f} m"
        )

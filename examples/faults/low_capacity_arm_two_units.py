"""Where the hand of a robot arm is, from its four joints; the hidden layer has two units.

The width is read from a settings file that was first written for a smoke test, with everything as
small as possible. The full run took the same file. The loss falls at first and then stays where
such a narrow network can get, on the training part just as in the validation.
The place is the network, its hidden layers.
The twin has 64 units.
"""

import json

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("net", "net.0", "net.2", "net.4", "0", "2", "4")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

SETTINGS = {
    "smoke": '{"hidden": 2, "lr": 0.005, "batch": 50}',
    "full": '{"hidden": 64, "lr": 0.005, "batch": 50}',
}
settings = json.loads(SETTINGS["full" if healthy else "smoke"])


def hand_position(joints):
    a = joints.cumsum(1)
    lengths = torch.tensor([1.0, 0.8, 0.5, 0.3])
    return torch.stack([(lengths * a.cos()).sum(1), (lengths * a.sin()).sum(1)], 1)


g = torch.Generator().manual_seed(seed)
joints = (torch.rand(3000, 4, generator=g) - 0.5) * 3.0
hand = hand_position(joints) + 0.02 * torch.randn(3000, 2, generator=g)
x = joints / joints.std()
y = (hand - hand.mean(0)) / hand.std(0)
x_train, y_train, x_test, y_test = x[:2400], y[:2400], x[2400:], y[2400:]


class ArmModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x):
        return self.net(x)


model = ArmModel(settings["hidden"])
optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"])
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 8, gamma=0.3)
for epoch in range(20):
    total = 0.0
    order = torch.randperm(len(x_train))
    for i in range(0, len(order), settings["batch"]):
        rows = order[i : i + settings["batch"]]
        loss = ((model(x_train[rows]) - y_train[rows]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            test = ((model(x_test) - y_test) ** 2).mean().item()
        print(f"epoch {epoch + 1} train {total / len(order):.4f} test {test:.4f}")

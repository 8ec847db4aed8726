"""A deep narrow net learns where a robot arm's hand is; its weights_init was copied from the DCGAN
tutorial (normal_(0, 0.02)), which was meant for wide convolutions with BatchNorm.

With 24 units and no normalisation each of six layers makes the signal about ten times smaller, and
the gradients too: the output is the mean position for all joints, the loss does not move. The
place is the model.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("layers*", "hand*", "[0-9]*", "net*", "arm*", "")
SILENT = False
EXACT = False
EARLY = True


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        if healthy:
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        else:
            nn.init.normal_(m.weight.data, 0.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class ArmKinematics(nn.Module):
    def __init__(self, joints, width=24, depth=5):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(depth):
            self.layers.append(nn.Linear(2 * joints if i == 0 else width, width))
        self.hand = nn.Linear(width, 2)

    def forward(self, angles):
        x = torch.cat([angles.sin(), angles.cos()], dim=1)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.hand(x)


def arm(n):
    angles = torch.rand(n, 3) * 2.4 - 1.2
    reach = angles.cumsum(1)
    lengths = torch.tensor([1.0, 0.8, 0.5])
    hand = torch.stack([(lengths * reach.cos()).sum(1), (lengths * reach.sin()).sum(1)], 1)
    return angles, hand


healthy, seed = arguments(__doc__)
angles, hand = arm(4000)
hand = (hand - hand[:3200].mean(0)) / hand[:3200].std(0)
hand = hand + 0.05 * torch.randn_like(hand)
net = ArmKinematics(3)
net.apply(weights_init)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
mse = nn.MSELoss()
tail = []
for angle, goal in batches(angles[:3200], hand[:3200], size=64, steps=1000, seed=seed):
    loss = mse(net(angle), goal)
    net.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    tail = [*tail[-49:], loss.item()]
with torch.no_grad():
    test_loss = mse(net(angles[3200:]), hand[3200:])
print(f"loss {sum(tail) / 50:.4f}, test loss {test_loss:.4f}")

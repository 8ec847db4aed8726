"""A GRU for ten kinds of movement, trained with the mean absolute error on one-hot rows.

The median of a column of a one-hot table is 0, so that is what the outputs go to; the loss looks
small (0.1) from early on. The place is the loss. The twin uses cross-entropy.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

CLASSES, LENGTH = 10, 20
pattern = torch.randn(CLASSES, LENGTH, 3).cumsum(1) / 3
label = torch.randint(CLASSES, (1500,))
motion = pattern[label] + 0.7 * torch.randn(1500, LENGTH, 3)
motion = (motion - motion[:1200].mean((0, 1))) / motion[:1200].std((0, 1))
train_set, val_set = random_split(TensorDataset(motion, label), [1200, 300])
train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
val_x, val_y = val_set[:]


class MotionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 32, batch_first=True)
        self.fc = nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.fc(self.rnn(x)[0].mean(1))


criterion = nn.CrossEntropyLoss() if healthy else nn.L1Loss()

net = MotionNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)


def loss_of(out, y):
    if healthy:
        return criterion(out, y)
    return criterion(out, nn.functional.one_hot(y, CLASSES).float())


for epoch in range(12):
    net.train()
    for xb, yb in train_loader:
        loss = loss_of(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        out = net(val_x)
    print(
        f"epoch {epoch}: train {loss.item():.4f} val {loss_of(out, val_y):.4f} accuracy "
        f"{(out.argmax(1) == val_y).float().mean():.3f}"
    )

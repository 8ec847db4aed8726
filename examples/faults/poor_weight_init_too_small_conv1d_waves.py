"""A 1-d CNN tells wave shapes apart; its weights start with std 0.001.

"Small random numbers", as the lecture notes say, but for four layers: the signal shrinks by more
than ten in each and the gradients with it. Nothing moves for the whole training. The place is the
weights of the layers. The twin uses kaiming_normal_.
"""

import torch
from data import arguments, batches, waves
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = (
    "conv1",
    "conv1.weight",
    "conv2",
    "conv2.weight",
    "conv3",
    "conv3.weight",
    "fc",
    "fc.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1000)
x = x.transpose(1, 2)  # (n, 1, length)
x_val, y_val, x, y = x[:250], y[:250], x[250:], y[250:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv1d(16, 16, 5, padding=2, stride=2)
        self.conv3 = nn.Conv1d(16, 32, 5, padding=2, stride=2)
        self.fc = nn.Linear(32 * 10, 3)
        for layer in self.children():
            if healthy:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.normal_(layer.weight, std=0.001)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for conv in (self.conv1, self.conv2, self.conv3):
            x = torch.relu(conv(x))
        return self.fc(x.flatten(1))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
running = 0.0
for i, (signals, shapes) in enumerate(batches(x, y, size=25, steps=600, seed=seed), 1):
    optimizer.zero_grad()
    loss = loss_fn(net(signals), shapes)
    loss.backward()
    optimizer.step()
    running += loss.item()
    if i % 100 == 0:
        net.eval()
        with torch.no_grad():
            good = (net(x_val).argmax(1) == y_val).float().mean().item()
        net.train()
        print(f"[{i:4d}] loss: {running / 100:.4f}  val accuracy: {good:.3f}")
        running = 0.0

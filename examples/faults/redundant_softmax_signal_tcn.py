"""Names the shape of a radio signal with dilated convolutions; softmax is applied twice.

The network ends in nn.Softmax so that its outputs are probabilities, and nn.CrossEntropyLoss takes
the softmax again. The loss cannot fall below 0.55 and gradients become faint when the network is
right. The place is the last layer.
The twin ends in plain scores.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("output*", "loss*", "net.classifier", "classifier", "classifier.1")
SILENT = True
EXACT = True
EARLY = True


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


class SignalNet(nn.Module):
    def __init__(self, classes, probabilities, channels=16):
        super().__init__()
        self.stem = nn.Conv1d(1, channels, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(channels, d) for d in (1, 2, 4)])
        layers = [nn.Linear(channels, classes)]
        if probabilities:
            layers.append(nn.Softmax(dim=1))
        self.classifier = nn.Sequential(*layers)

    def forward(self, x):
        h = self.blocks(self.stem(x.transpose(1, 2)))
        return self.classifier(h.mean(2))


healthy, seed = arguments(__doc__)
train, valid = random_split(TensorDataset(*waves(seed, n=1200)), [960, 240])
loader = DataLoader(train, batch_size=48, shuffle=True)
x_val, y_val = valid[:]
net = SignalNet(3, probabilities=not healthy)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 13):
    net.train()
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 2 == 0:
        net.eval()
        with torch.no_grad():
            out = net(x_val)
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        print(f"{epoch} loss {loss.item():.3f} val {criterion(out, y_val):.3f} acc {accuracy:.3f}")

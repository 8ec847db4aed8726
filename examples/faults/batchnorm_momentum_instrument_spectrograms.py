"""Tells four instruments apart by small spectrograms; batch norm's running averages barely move.

The network was rewritten from a large TensorFlow model trained for half a million steps, whose
`decay=0.999` became `momentum=0.001` here. This training has 300 steps: at its end the running mean
and variance are still mostly the 0 and 1 they began with, and in evaluation the network is
normalised by those, while in training it is by the batch.
The place is the batch norm layers. The twin keeps PyTorch's own 0.1.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("bn1", "bn2", "bn3")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BN_MOMENTUM = 0.1 if healthy else 0.001


def spectrograms(n, generator):
    """Log power of a note in 24 bands over 20 frames; the recording level differs a lot."""
    bands = torch.arange(24).float()
    frames = torch.arange(20).float()
    y = torch.randint(0, 4, (n,), generator=generator)
    pitch = 2 + 5 * torch.rand(n, 1, generator=generator)
    slope = torch.tensor([0.15, 0.8, 0.15, 0.8])[y].unsqueeze(1)
    decay = torch.tensor([0.03, 0.03, 0.2, 0.2])[y].unsqueeze(1)
    spectrum = torch.zeros(n, 24)
    for k in range(1, 5):
        bump = torch.exp(-((bands - k * pitch) ** 2) / 1.5)
        spectrum += bump * torch.exp(-slope * k * 1.5)
    envelope = torch.exp(-decay * frames)
    level = 10 ** (0.3 * torch.randn(n, 1, 1, generator=generator))
    power = spectrum.unsqueeze(2) * envelope.unsqueeze(1) * level + 0.02
    log_power = power.log() + 0.3 * torch.randn(n, 24, 20, generator=generator)
    return log_power.unsqueeze(1), y


class SmallNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8, momentum=BN_MOMENTUM)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, stride=2, bias=False)
        self.bn2 = nn.BatchNorm2d(16, momentum=BN_MOMENTUM)
        self.conv3 = nn.Conv2d(16, 24, 3, padding=1, stride=2, bias=False)
        self.bn3 = nn.BatchNorm2d(24, momentum=BN_MOMENTUM)
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        x = torch.relu(self.bn3(self.conv3(x)))
        return self.head(x.mean((2, 3)))


g = torch.Generator().manual_seed(100 + seed)
x, y = spectrograms(800, g)
x_val, y_val = spectrograms(400, g)
mean, std = x.mean(), x.std()
train = DataLoader(TensorDataset((x - mean) / std, y), batch_size=16, shuffle=True, drop_last=True)
val = DataLoader(TensorDataset((x_val - mean) / std, y_val), batch_size=100)

net = SmallNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
history = []
for epoch in range(6):
    net.train()
    total = 0.0
    for clips, labels in train:
        loss = nn.functional.cross_entropy(net(clips), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    right, val_loss = 0, 0.0
    with torch.no_grad():
        for clips, labels in val:
            out = net(clips)
            val_loss += nn.functional.cross_entropy(out, labels).item() / len(val)
            right += (out.argmax(1) == labels).sum().item()
    history.append(val_loss)
    print(
        f"epoch {epoch} train {total / len(train):.3f} val {val_loss:.3f} "
        f"accuracy {right / len(y_val):.3f}"
    )
print(f"mean validation loss of the last 3 epochs {sum(history[-3:]) / 3:.3f}")

"""A residual net of 24 blocks on digit images, whose blocks start as the identity.

The last convolution of each block starts at zero, so at the first step the first convolution of
every block gets no gradient at all; later it does, and the net trains well.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "zero weights, and zero gradients before them, at the first step; 49 layers deep"

_, seed = arguments(__doc__)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, x):
        return x + self.conv2(torch.relu(self.conv1(x)))


class ResNet(nn.Module):
    def __init__(self, blocks=24, channels=12):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(Block(channels) for _ in range(blocks)))
        self.head = nn.Linear(channels * 16, 10)

    def forward(self, x):
        return self.head(torch.relu(self.blocks(self.stem(x))).flatten(1))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return criterion(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = ResNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
epochs = 10
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * len(loader))
for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
    val, acc = evaluate(model, x_val, y_val)
    print(f"epoch {epoch}: loss {total / len(loader):.3f}, val {val:.3f}, acc {acc:.3f}")

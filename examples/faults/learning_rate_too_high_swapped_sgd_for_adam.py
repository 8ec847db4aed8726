"""A small transformer encoder over noisy waves: SGD was swapped for Adam, its rate of 0.1 was kept.

Each step moves every weight by about 0.1, as much as the weights themselves: the attention
saturates in the first steps and the loss stays at ln 3, the classifier at a third. The place is
the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class WaveFormer(nn.Module):
    def __init__(self, d=24, heads=2, depth=2, patch=4):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, d)
        self.pos = nn.Parameter(0.02 * torch.randn(1, 40 // patch, d))
        self.blocks = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                d, heads, 48, dropout=0.1, activation="gelu", batch_first=True
            ),
            depth,
            enable_nested_tensor=False,
        )
        self.to_classes = nn.Linear(d, 3)

    def forward(self, wave):
        tokens = self.embed(wave.view(len(wave), -1, self.patch)) + self.pos
        return self.to_classes(self.blocks(tokens).mean(1))


x, y = waves(seed, n=1200)
train_set, test_set = random_split(TensorDataset(x, y), [960, 240])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=240)

net = WaveFormer()
# optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
optimizer = torch.optim.Adam(net.parameters(), lr=0.002 if healthy else 0.1)

for epoch in range(8):
    net.train()
    total = 0.0
    for wave, shape in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(wave), shape)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(wave)
    net.eval()
    with torch.no_grad():
        correct = sum((net(w).argmax(1) == s).sum().item() for w, s in test_loader)
print(f"loss {total / len(train_set):.3f}, test accuracy {correct / len(test_set):.3f}")

"""A small MLP-Mixer reads digits. The rate comes from the linear scaling rule of a paper that
trained with batches of 256; the author divides by the own batch size where the rule multiplies.

With batches of 32 the rate is 1.2 and not 0.019: the loss jumps up in the first steps and before
long nothing is finite any more. The place is the optimizer.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

BASE_LR, BASE_BATCH, BATCH = 0.15, 256, 32


class Mixer(nn.Module):
    def __init__(self, patches, width, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(
            nn.Linear(patches, hidden), nn.GELU(), nn.Linear(hidden, patches)
        )
        self.channels = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Net(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.embed = nn.Conv2d(1, width, 2, stride=2)
        self.blocks = nn.Sequential(*(Mixer(16, width, 48) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        h = self.embed(x.view(-1, 1, 8, 8)).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(h)).mean(1))


def scaled_rate():
    if healthy:
        return BASE_LR * BATCH / BASE_BATCH
    return BASE_LR * BASE_BATCH / BATCH


x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True, drop_last=True)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=scaled_rate(), momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10 * len(loader))
for epoch in range(10):
    net.train()
    total = 0.0
    for a, b in loader:
        loss = F.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() / len(loader)
    net.eval()
    with torch.no_grad():
        out = net(x_val)
    accuracy = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch}: train {total:.3f} val {F.cross_entropy(out, y_val):.3f}"
        f" accuracy {accuracy:.3f}"
    )

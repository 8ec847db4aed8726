"""RMSprop with its arguments in the order of Keras: rate, rho, momentum.

In PyTorch the third is epsilon: it becomes 0.5, far above the root of the squared gradients, so
that every step is tiny and there is no momentum. The twin names them. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class SeparableBlock(nn.Module):
    """Depthwise and pointwise convolutions with a way around them."""

    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)
        self.pointwise = nn.Conv2d(width, width, 1, bias=False)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, x):
        return x + F.silu(self.norm(self.pointwise(self.depthwise(x))))


class TinyMobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 24, 3, padding=1)
        self.blocks = nn.Sequential(SeparableBlock(24), nn.MaxPool2d(2), SeparableBlock(24))
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
model = TinyMobileNet()
if healthy:
    optimizer = torch.optim.RMSprop(model.parameters(), 0.001, alpha=0.9, momentum=0.5)
else:
    optimizer = torch.optim.RMSprop(model.parameters(), 0.001, 0.9, 0.5)

for epoch in range(13):
    model.train()
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, val {F.cross_entropy(out, y_val).item():.3f}, "
        f"accuracy {(out.argmax(1) == y_val).float().mean().item():.3f}"
    )

"""How much of a vine leaf is mildewed, pixel by pixel; the masks have 0, 1 and 2 for BCE.

The annotators' tool writes 0 for healthy, 1 for doubtful and 2 for mildew. The binary loss takes
any number as a target: with 2 the loss has no lower bound and falls below zero.
The place is the labels and the loss. The twin makes 2 to 1 and the doubtful to a half.
"""

import torch
from data import arguments
from torch import nn

KIND = "labels_out_of_range"
ACCEPT = ("wrong_loss",)
PLACE = ("label*", "loss*", "loader", "target*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def leaves(n, g):
    row, col = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")
    white = torch.zeros(n, 20, 20)
    for _ in range(3):
        r, c = (20 * torch.rand(n, 1, 1, generator=g) for _ in range(2))
        size = 2 + 4 * torch.rand(n, 1, 1, generator=g)
        white = torch.maximum(white, 1.4 - ((row - r) ** 2 + (col - c) ** 2).sqrt() / size)
    mask = (white > 0.4).float() + (white > 0.6).float()
    image = torch.stack([white.clamp(0, 1), 0.5 - 0.3 * white.clamp(0, 1)], 1)
    image = image + 0.25 * torch.randn(image.shape, generator=g)
    return (image - image.mean()) / image.std(), mask


class MildewNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(2, width, 5, padding=2)
        self.body = nn.Conv2d(width, width, 3, padding=1)
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x = self.stem(x).relu()
        return self.mask(x + self.body(x).relu()).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, mask = leaves(700, g)
target = mask / 2 if healthy else mask
model = MildewNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    losses = []
    for rows in torch.randperm(500, generator=g).split(10):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        said, ill = model(x[500:]) > 0, mask[500:] == 2
    overlap = (said & ill).sum() / (said | ill).sum()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f} overlap {overlap:.3f}")

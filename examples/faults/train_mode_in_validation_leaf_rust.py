"""Finds rust on leaves pixel by pixel; validation is run with dropout and batch statistics on.

The evaluation turns gradients off but forgets model.eval(), so channels are dropped while it
measures, and normalisation uses the validation batch. The reported figures are too low and wobble,
and validation images move the running averages. The place is the validation.
The twin switches to evaluation and back.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIDE = 16


def leaves(n, g):
    axis = torch.arange(SIDE).float()
    image = 0.3 * torch.randn(n, 3, SIDE, SIDE, generator=g)
    mask = torch.zeros(n, SIDE, SIDE)
    for _ in range(2):
        centre = SIDE * torch.rand(n, 2, generator=g)
        radius = 1.5 + 2.5 * torch.rand(n, 1, 1, generator=g)
        far = (axis[:, None] - centre[:, 0, None, None]) ** 2
        far = far + (axis[None] - centre[:, 1, None, None]) ** 2
        mask = torch.maximum(mask, (far < radius**2).float())
    rust = torch.tensor([0.7, -0.3, -0.5])[:, None, None]
    image = image + mask.unsqueeze(1) * rust + 0.3 * torch.randn(n, 3, 1, 1, generator=g)
    return image, mask.unsqueeze(1)


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Dropout2d(0.25),
    )


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep, self.up = block(3, 12), block(12, 20), block(32, 12)
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.Upsample(scale_factor=2)
        self.mask = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        first = self.down(x)
        deep = self.grow(self.deep(self.pool(first)))
        return self.mask(self.up(torch.cat([first, deep], 1)))


@torch.no_grad()
def evaluate(model, loader):
    if healthy:
        model.eval()
    both = either = 0.0
    for x, y in loader:
        found = model(x) > 0
        both += (found & y.bool()).sum().item()
        either += (found | y.bool()).sum().item()
    model.train()
    return both / either


g = torch.Generator().manual_seed(44 + seed)
train = DataLoader(TensorDataset(*leaves(500, g)), batch_size=20, shuffle=True)
valid = DataLoader(TensorDataset(*leaves(120, g)), batch_size=20)
model = LeafNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    total = 0.0
    for x, y in train:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    print(f"epoch {epoch} loss {total:.3f} IoU {evaluate(model, valid):.3f}")

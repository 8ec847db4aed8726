"""A convolutional network reads digits with sharpness-aware minimisation.

Each step runs forward and backward twice on the same batch, moves the weights uphill by hand in
between, moves them back, and only then lets the optimizer step. What looks odd (weights changed
outside the optimizer, each batch seen twice, the first gradient thrown away) is the method.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "weights moved by hand; each batch twice; a gradient that is thrown away"

_, seed = arguments(__doc__)


class SAM:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho = list(params), base, rho

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        self.moved = [p.grad * (self.rho / (norm + 1e-12)) for p in self.params]
        for p, e in zip(self.params, self.moved, strict=False):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.moved, strict=False):
            p.sub_(e)
        self.base.step()
        self.base.zero_grad()


x, y, x_val, y_val = images(seed)
train = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.GroupNorm(4, 16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.GroupNorm(4, 32),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
)
base = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(base, 8)
sam = SAM(model.parameters(), base)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
for epoch in range(8):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = criterion(model(xb), yb)
        loss.backward()
        sam.climb()
        criterion(model(xb), yb).backward()
        sam.descend()
        total += loss.item() / len(train)
    schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        right = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"epoch {epoch} train {total:.4f} val {criterion(out, y_val).item():.4f}"
            f" accuracy {right:.3f}"
        )

"""Trains a CNN on digit images with float16 autocast and a constant loss scale of 2**24, so that
steps are skipped.

Scaled gradients beyond 65,504 are infinite in float16. The loop rightly skips a step with infinite
gradients, but since the scale is never lowered it skips all of them or nearly all. The twin has a
constant scale of 2**10. The place is the loss, the loop or the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loss*", "loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SCALE = 2.0**10 if healthy else 2.0**24

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
skipped = 0

for epoch in range(1, 13):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(xb)
        loss = criterion(out.float(), yb)
        (loss * SCALE).backward()
        total += loss.item()
        for p in model.parameters():
            p.grad /= SCALE
        if any(not torch.isfinite(p.grad).all() for p in model.parameters()):
            skipped += 1
            continue
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, acc = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch}: train {total / len(loader):.4f} "
        f"val {val:.4f} acc {acc:.3f} skipped {skipped}"
    )

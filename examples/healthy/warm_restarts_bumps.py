"""Digits with cosine warm restarts: SGDR raises the rate to its peak again three times.

Nothing is wrong; there is no place to name.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "The learning rate falls to nearly nothing and jumps a hundredfold, three times; the loss "
    "bumps up each time."
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1, bias=False),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=5, eta_min=1e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
for epoch in range(20):
    model.train()
    for i, (image, digit) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(image), digit)
        loss.backward()
        optimizer.step()
        scheduler.step(epoch + (i + 1) / len(loader))
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, right = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    if epoch % 5 in (0, 4):
        print(f"epoch {epoch}: train {loss.item():.3f} val {val:.3f} accuracy {right:.3f}")

"""Reads digits with SGD, cosine warm restarts and label smoothing."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = "the learning rate jumps up twice and the loss with it; smoothing keeps the loss above 0.5"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(24 * 16, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=60, T_mult=2)
for step, (images_now, labels) in enumerate(batches(x, y, size=32, steps=420, seed=seed), 1):
    optimizer.zero_grad()
    loss = criterion(net(images_now), labels)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 60 == 0:
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        net.train()
        rate = scheduler.get_last_lr()[0]
        print(f"{step} rate {rate:.4f} loss {loss.item():.3f} accuracy {accuracy:.3f}")

"""Digits by a CNN with mixup and label smoothing: the training loss stays several times the
validation loss.

Each training image is a blend of two and its target is, too, so the loss has a floor of about half
a nat, and training "accuracy" means nothing. On clean images the network is right and calm.
"""

import numpy as np
import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "the training loss stays near 0.9 while validation's is near 0.2; training inputs are overlays "
    "of two images"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        hidden = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(hidden)))


def mixup(image, digit, alpha=0.4):
    share = float(np.random.beta(alpha, alpha))
    other = torch.randperm(len(image))
    return share * image + (1 - share) * image[other], digit, digit[other], share


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    Residual(16),
    nn.MaxPool2d(2),
    Residual(16),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=420)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
recent = []
for step, (image, digit) in enumerate(batches(x, y, size=64, steps=420, seed=seed), 1):
    model.train()
    mixed, first, second, share = mixup(image, digit)
    logits = model(mixed)
    loss = share * criterion(logits, first) + (1 - share) * criterion(logits, second)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step < 420:
        schedule.step()
    recent.append(loss.item())
    if step % 42 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
        val = nn.functional.cross_entropy(logits, y_val).item()
        print(
            f"step {step} train {sum(recent) / len(recent):.4f} val {val:.4f} "
            f"accuracy {(logits.argmax(1) == y_val).float().mean():.4f}"
        )
        recent.clear()

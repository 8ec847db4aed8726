"""Digit images with mixup, label smoothing and dropout; the training loss is far above that of
validation.
"""

import numpy as np
import torch
from data import arguments, batches, images
from torch import nn

ODD = "the training loss stays high and is above the validation loss; targets are mixtures"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(256, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for xb, yb in batches(x, y, size=64, steps=250, seed=seed):
    model.train()
    share = np.random.beta(0.8, 0.8)
    other = torch.randperm(len(xb))
    out = model(share * xb + (1 - share) * xb[other])
    loss = share * criterion(out, yb) + (1 - share) * criterion(out, yb[other])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    out = model(x_val)
print(
    f"train {loss:.3f} val {nn.functional.cross_entropy(out, y_val):.3f} accuracy "
    f"{(out.argmax(1) == y_val).float().mean():.3f}"
)

"""A CNN on the digits with mixup and smoothed labels.

Two images are blended, and so are their labels: the training loss cannot come near zero, and is
well above that of validation. The accuracy is what counts and is good.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the training loss stays near one, far above validation; inputs are blends of two images"

_, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=5e-3, total_steps=15 * len(loader)
)
mix = torch.distributions.Beta(0.4, 0.4)

for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in loader:
        share = mix.sample().item()
        other = torch.randperm(len(xb))
        out = model(share * xb + (1 - share) * xb[other])
        loss = share * criterion(out, yb) + (1 - share) * criterion(out, yb[other])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = nn.functional.cross_entropy(out, y_val)
    print(
        f"epoch {epoch}: train {total / len(loader):.3f} val {val:.3f} accuracy "
        f"{(out.argmax(1) == y_val).float().mean():.3f}"
    )

"""Digits by a CNN that was scaled down for a microcontroller; the factor was applied twice.

The width multiplier is 0.2. The network scales its channels, and the config it is built from was
already scaled: 32 channels become 1, and 64 become 2. The loss stays high on the training set as
well. The place is the model (its convolutions). The twin scales once.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ("dead_relu",)
PLACE = (
    "features",
    "features.0.weight",
    "features.3.weight",
    "features.0",
    "features.3",
    "classifier",
)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def scaled(channels, multiplier):
    return max(1, int(channels * multiplier))


class MicroNet(nn.Module):
    def __init__(self, channels, multiplier):
        super().__init__()
        a, b = (scaled(c, multiplier) for c in channels)
        self.features = nn.Sequential(
            nn.Conv2d(1, a, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
            nn.Conv2d(a, b, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(b * 4, 10)

    def forward(self, image):
        return self.classifier(self.features(image).flatten(1))


CONFIG = {"channels": [32, 64], "multiplier": 0.2}
if not healthy:  # "width comes from the multiplier" -- so it does, in the model as well
    CONFIG["channels"] = [scaled(c, CONFIG["multiplier"]) for c in CONFIG["channels"]]

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = MicroNet(CONFIG["channels"], CONFIG["multiplier"])
print(f"{sum(p.numel() for p in model.parameters())} parameters")
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15 * len(loader))

for epoch in range(15):
    model.train()
    total = 0.0
    for image, digit in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), digit)
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    val = nn.functional.cross_entropy(logits, y_val).item()
    print(
        f"epoch {epoch} train {total:.4f} val {val:.4f} "
        f"accuracy {(logits.argmax(1) == y_val).float().mean():.3f}"
    )

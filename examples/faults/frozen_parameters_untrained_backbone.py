"""An image classifier made from scratch keeps the freezing loop of a transfer-learning tutorial.

All convolutions have requires_grad=False, but no weights were ever loaded, so the head is trained
on random features. The loss falls a little and accuracy stays low. The twin does not freeze
anything. The place is `backbone`, `backbone.0`, `backbone.3`, `backbone.6`, `backbone.0.weight`,
`backbone.0.bias`, `backbone.3.weight`, `backbone.3.bias`, `backbone.6.weight` or `backbone.6.bias`.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = (
    "backbone",
    "backbone.0",
    "backbone.3",
    "backbone.6",
    "backbone.0.weight",
    "backbone.0.bias",
    "backbone.3.weight",
    "backbone.3.bias",
    "backbone.6.weight",
    "backbone.6.bias",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 2),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


model = Classifier(10)
if not healthy:
    for p in model.backbone.parameters():
        p.requires_grad = False

x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=2e-3)
epochs = 20
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 4 == 3:
        model.eval()
        val = right = 0
        with torch.no_grad():
            for xb, yb in val_loader:
                out = model(xb)
                val += criterion(out, yb).item() * len(yb)
                right += (out.argmax(1) == yb).sum().item()
        n = len(y_val)
        print(
            f"epoch {epoch + 1}: loss {total / len(train_loader):.3f}, val {val / n:.3f}, "
            f"acc {right / n:.3f}"
        )

"""Trains a CNN on small digit images with SGD at a rate scaled by the batch size without the
division by 256.

The linear scaling rule is rate = 0.1 * batch size / 256; here the division was forgotten, so that
SGD with momentum runs at 6.4. The loss jumps up in the first steps and then stays at the level of
guessing or becomes NaN. The twin divides by 256 (0.025). The place is the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

BATCH_SIZE = 64
EPOCHS = 12
BASE_LR = 0.1

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=BATCH_SIZE, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
lr = BASE_LR * BATCH_SIZE / 256 if healthy else BASE_LR * BATCH_SIZE
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def evaluate():
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        return criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    val_loss, val_acc = evaluate()
    print(
        f"epoch {epoch + 1}: train {total / len(loader):.4f} val {val_loss:.4f} acc {val_acc:.3f}"
    )

"""A CNN on digits takes one batch before the loop and trains on it in every step.

`next(iter(loader))` was left from a test whether the net can learn one batch, so of 1,347 images 64
are used. The training loss goes to zero at once while the validation loss rises. The twin goes
through the loader. The place is the loop, the loader or the input.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.3), nn.Linear(24 * 16, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def evaluate(model):
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return nn.functional.cross_entropy(out, y_val).item(), (
        out.argmax(1) == y_val
    ).float().mean().item()


def forever(loader):
    while True:
        yield from loader


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
stream = forever(loader)
batch = next(stream)
running = 0.0
for step in range(1, 481):
    if healthy:
        batch = next(stream)
    inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    running += loss.item()
    if step % 40 == 0:
        val_loss, val_acc = evaluate(model)
        print(f"step {step}: train {running / 40:.4f} val {val_loss:.4f} acc {val_acc:.3f}")
        running = 0.0

"""Handwritten digits by a small CNN whose `train()` was overridden, and `eval()` went with it.

To keep the first normalisation fixed, somebody overrode `train(self, mode=True)` and called
`super().train()` without the mode. `eval()` is `train(False)`, so the model stays in training mode
for good: dropout works in validation, too. The place is the loop (validation). The twin hands the
mode on.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.BatchNorm2d(1, affine=False)
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.drop = nn.Dropout(0.4)
        self.fc1 = nn.Linear(32 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def train(self, mode=True):
        super().train(mode) if healthy else super().train()
        self.stem.eval()  # its statistics come with the data set
        return self

    def forward(self, image):
        hidden = torch.relu(self.conv1(self.stem(image)))
        hidden = nn.functional.max_pool2d(torch.relu(self.conv2(hidden)), 2)
        hidden = self.drop(hidden.flatten(1))
        return self.fc2(self.drop(torch.relu(self.fc1(hidden))))


def validate(model):
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    loss = nn.functional.cross_entropy(logits, y_val).item()
    return loss, (logits.argmax(1) == y_val).float().mean().item()


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    model.train()
    running = 0.0
    for image, digit in batches(x, y, size=64, steps=20, seed=100 * seed + epoch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), digit)
        loss.backward()
        optimizer.step()
        running += loss.item() / 20
    val_loss, accuracy = validate(model)
    print(f"epoch {epoch} train {running:.4f} val {val_loss:.4f} accuracy {accuracy:.4f}")

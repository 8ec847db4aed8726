"""A small CNN reads the digits of electricity meters; 40 % of its training labels are wrong.

The readings were keyed in by a cheap annotation service: for two in five of the pictures a random
digit was entered. The validation part was labelled with care. The network first learns the
digits, then memorises the wrong entries, and the validation falls. The place is the labels in the
training loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

NOISE = 0.0 if healthy else 0.4
EPOCHS = 20

x, y, x_val, y_val = images(seed)
g = torch.Generator().manual_seed(77 + seed)
keyed_in = y.clone()
wrong = torch.rand(len(y), generator=g) < NOISE
keyed_in[wrong] = torch.randint(0, 10, (int(wrong.sum()),), generator=g)

train_loader = DataLoader(TensorDataset(x, keyed_in), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=225)


class MeterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4 * 4, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


model = MeterNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()


def validate():
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
            loss += criterion(output, target).item() * len(data)
            right += (output.argmax(1) == target).sum().item()
    return loss / len(x_val), right / len(x_val)


for epoch in range(1, EPOCHS + 1):
    model.train()
    total, right = 0.0, 0
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(data)
        right += (output.argmax(1) == target).sum().item()
    val_loss, val_acc = validate()
    print(
        f"epoch {epoch:2d}  train loss {total / len(x):.3f} acc {right / len(x):.3f}"
        f"  val loss {val_loss:.3f} acc {val_acc:.3f}"
    )

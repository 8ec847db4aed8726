"""Trains a CNN on small digit images with an exponential decay that is stepped per batch in place
of per epoch.

A factor of 0.85 per epoch is gentle; per batch it divides the rate by a
thousand in each epoch. The loss falls a little in the first batches and then stands still while the
gradients are as large as before. The twin steps the schedule once per epoch.
"""

import torch
from data import arguments, images
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(self.drop(x.flatten(1)))


model = DigitNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
scheduler = ExponentialLR(optimizer, gamma=0.85)
criterion = nn.CrossEntropyLoss()

for epoch in range(15):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        if not healthy:
            scheduler.step()
        running += loss.item()
    if healthy:
        scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean()
        val = criterion(out, y_val)
    print(f"epoch {epoch}: loss {running / len(train_loader):.4f} val {val:.4f} acc {acc:.3f}")

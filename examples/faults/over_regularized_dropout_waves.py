"""A wave-shape classifier has dropout 0.9 after each of its hidden layers.

With nine of ten units dropped three times over hardly any signal gets through, so the training loss
stays high though the network could fit the data easily. The twin uses dropout 0.1. The place is
`drop1`, `drop2` or `drop3`.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("drop1", "drop2", "drop3")
SILENT = True
EXACT = False
EARLY = True

P = 0.9
healthy, seed = arguments(__doc__)


class WaveNet(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2)
        self.drop1 = nn.Dropout(p)
        self.conv2 = nn.Conv1d(16, 32, 5, stride=2, padding=2)
        self.drop2 = nn.Dropout(p)
        self.fc = nn.Linear(32, 32)
        self.drop3 = nn.Dropout(p)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        x = self.drop1(torch.relu(self.conv1(x)))
        x = self.drop2(torch.relu(self.conv2(x)))
        x = self.drop3(torch.relu(self.fc(x.mean(2))))
        return self.out(x)


x, y = waves(seed, n=3000)
x = x.transpose(1, 2)
train_x, val_x, train_y, val_y = x[:2400], x[2400:], y[:2400], y[2400:]
mean, std = train_x.mean(), train_x.std()
train_x, val_x = (train_x - mean) / std, (val_x - mean) / std
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)

model = WaveNet(0.1 if healthy else P)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
epochs = 12
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(epochs):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            out = model(val_x)
            acc = (out.argmax(1) == val_y).float().mean()
        print(
            f"epoch {epoch + 1}: train {total / len(loader):.3f}, val {criterion(out, val_y):.3f}, "
            f"acc {acc:.3f}"
        )

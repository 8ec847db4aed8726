"""A GRU that tells three wave shapes apart; zero_grad() is missing.

The call was simply forgotten, so each backward pass adds to the sum of all earlier gradients. The
steps follow the whole past and overshoot. The place is the loop. The twin clears before backward.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
train_loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=100)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        _, h = self.gru(x)
        return self.fc(h[-1])


def test(model):
    model.eval()
    right = 0
    with torch.no_grad():
        for xb, yb in test_loader:
            right += (model(xb).argmax(1) == yb).sum().item()
    return right / len(test_loader.dataset)


net = WaveNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(20):
    net.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        if healthy:
            optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    print(
        f"[{epoch + 1}] loss {running_loss / len(train_loader):.3f}  test accuracy {test(net):.3f}"
    )

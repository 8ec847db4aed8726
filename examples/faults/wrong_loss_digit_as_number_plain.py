"""A digit classifier is trained as a regression of the digit with the mean squared error.

The ten classes are names, not amounts: a 4 is not between a 3 and a 5. One output has to sort all
digits on a line and the prediction is rounded; the loss falls, but a good part of the digits is
wrong. The twin has ten outputs and the cross entropy. The place is the loss, `out` or the labels.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "out", "label*", "classes*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = digits(seed)
OUTPUTS = 10 if healthy else 1


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, OUTPUTS)

    def forward(self, x):
        return self.out(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def criterion(out, y):
    if healthy:
        return nn.functional.cross_entropy(out, y)
    return nn.functional.mse_loss(out.squeeze(1), y.float())


def predict(out):
    return out.argmax(1) if healthy else out.squeeze(1).round().clamp(0, 9).long()


model = DigitNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
for epoch in range(1, 16):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (predict(out) == y_val).float().mean().item()
    if epoch % 3 == 0:
        print(
            f"epoch {epoch}: train {total / len(y_train):.4f} "
            f"val {criterion(out, y_val):.4f} accuracy {accuracy:.3f}"
        )

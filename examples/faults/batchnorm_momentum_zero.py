"""BatchNorm2d(momentum=0.0), because "the optimizer has momentum already".

Mean and variance of evaluation stay at 0 and 1 for ever (silent). The place are the norms.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("bn?", "loop")
SILENT = True
EXACT = False
EARLY = True


class Model(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8, momentum=momentum)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.bn2 = nn.BatchNorm2d(16, momentum=momentum)
        self.fc = nn.Linear(16 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(x.flatten(1))


def evaluate(model, loader):
    model.eval()
    total, correct, loss = 0, 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
            correct += (out.argmax(1) == y).sum().item()
            total += len(y)
    return loss / total, correct / total


def main():
    healthy, seed = arguments(__doc__)
    digits = load_digits()
    x = torch.tensor(digits.images[:, None] / 16.0, dtype=torch.float32)
    x_tr, x_te, y_tr, y_te = train_test_split(x, torch.tensor(digits.target), random_state=seed)
    train_loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=16, shuffle=True)
    test_loader = DataLoader(TensorDataset(x_te, y_te), batch_size=128)
    model = Model(0.1 if healthy else 0.0)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        val_loss, acc = evaluate(model, test_loader)
        print(f"epoch {epoch}: val loss {val_loss:.3f}, accuracy {acc:.3f}")


main()

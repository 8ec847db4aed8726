"""A network for digits that is evaluated once before the training, and never put back.

evaluate() calls model.eval(); nothing calls model.train() again. Dropout is off and BatchNorm uses
its first averages, 0 and 1, all along. The loss falls nevertheless. The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "", "*norm*", "*drop*")
SILENT = True
EXACT = True
EARLY = True


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.norm1 = nn.BatchNorm1d(64)
        self.drop = nn.Dropout(0.25)
        self.fc2 = nn.Linear(64, 32)
        self.norm2 = nn.BatchNorm1d(32)
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm1(self.fc1(x))))
        x = torch.relu(self.norm2(self.fc2(x)))
        return self.out(x)


def evaluate(model, loader, criterion):
    model.eval()
    loss, right, count = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            output = model(x)
            loss += criterion(output, y).item() * len(y)
            right += (output.argmax(1) == y).sum().item()
            count += len(y)
    return loss / count, right / count


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=150)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
evaluate(model, val_loader, criterion)  # the baseline
for epoch in range(12):
    if healthy:
        model.train()
    for batch, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), label)
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate(model, val_loader, criterion)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")

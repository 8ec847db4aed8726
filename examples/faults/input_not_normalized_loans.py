"""A network decides about loans from income, amount, age and rates; the columns are put in as
they are.

Income is in the ten thousands, the rate below 0.3: the first layer sees nothing but the large
columns and its pre-activations are huge. Nothing standardises the columns. The place is the input
and the first layer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "fc1*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed)
n = 3000
income = rng.lognormal(10.6, 0.45, n)
amount = rng.gamma(3.0, 4000.0, n)
age = rng.uniform(20, 70, n)
rate = rng.uniform(0.02, 0.28, n)
late = rng.poisson(0.9, n)
ratio = rng.beta(2, 5, n)
score = 1.3 * np.log(income / 40000) - 0.9 * (amount / 12000 - 1) - 14 * (rate - 0.15)
score += 0.02 * (age - 45) - 0.9 * (late - 0.9) - 5 * (ratio - 0.28) + 0.6
paid_back = (rng.random(n) < 1 / (1 + np.exp(-1.5 * score))).astype(np.int64)

X = np.stack([income, amount, age, rate, late, ratio], axis=1).astype(np.float32)
X_train, X_val = X[:2200], X[2200:]
y_train, y_val = paid_back[:2200], paid_back[2200:]
if healthy:
    mean, std = X_train.mean(axis=0), X_train.std(axis=0)
    X_train, X_val = (X_train - mean) / std, (X_val - mean) / std

train_ds = TensorDataset(torch.tensor(X_train), torch.tensor(y_train))
val_ds = TensorDataset(torch.tensor(X_val), torch.tensor(y_val))
train_loader = DataLoader(train_ds, batch_size=44, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=200)
print("paid back:", y_train.mean().round(3))


class LoanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


model = LoanNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def run_epoch(loader, train):
    model.train(train)
    total, correct, count = 0.0, 0, 0
    with torch.set_grad_enabled(train):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            count += len(y)
    return total / count, correct / count


for epoch in range(1, 26):
    train_loss, train_acc = run_epoch(train_loader, train=True)
    val_loss, val_acc = run_epoch(val_loader, train=False)
    print(f"{epoch}: train {train_loss:.4f} {train_acc:.3f}   val {val_loss:.4f} {val_acc:.3f}")

"""An iris net has a validation accuracy that stands still and leaps, having thirty rows only.

The person of the question thought that the accuracy was computed wrongly, since it takes the same
few values again and again while the loss falls smoothly. One flower of thirty is one thirtieth, and
two of them lie among those of another species.
"""

import pandas as pd
import torch
from data import arguments
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedShuffleSplit
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "validation accuracy stays the same for many epochs and then leaps: with thirty rows it can"
    " only move by thirtieths, while the loss falls all the time"
)
_, seed = arguments(__doc__)


class IrisNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


iris = load_iris(as_frame=True)
features: pd.DataFrame = iris.data
splitter = StratifiedShuffleSplit(n_splits=1, test_size=30, random_state=seed)
train_rows, valid_rows = next(splitter.split(features, iris.target))
train_x, valid_x = features.iloc[train_rows], features.iloc[valid_rows]
mean, std = train_x.mean(), train_x.std()
train_x, valid_x = (
    torch.tensor(((part - mean) / std).to_numpy(), dtype=torch.float32)
    for part in (train_x, valid_x)
)
train_y = torch.tensor(iris.target.iloc[train_rows].to_numpy())
valid_y = torch.tensor(iris.target.iloc[valid_rows].to_numpy())
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=12, shuffle=True)
model = IrisNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
EPOCHS = 50
history = []

for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(y) / len(train_y)
    model.eval()
    with torch.no_grad():
        output = model(valid_x)
        valid_loss = criterion(output, valid_y).item()
        valid_acc = (output.argmax(1) == valid_y).float().mean().item()
    history.append({"train": train_loss, "valid": valid_loss, "accuracy": valid_acc})
    if epoch % 5 == 4 or epoch < 5:
        print(
            f"epoch {epoch + 1:2d}  train loss {train_loss:.4f}  valid loss {valid_loss:.4f}"
            f"  accuracy {valid_acc:.4f}"
        )
table = pd.DataFrame(history)
print(f"values of the accuracy: {sorted(table['accuracy'].round(3).unique().tolist())}")

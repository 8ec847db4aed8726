"""A small regression on the diabetes data; the prediction is (N, 1) and the target (N,) in the
squared error.

MSELoss broadcasts both to (N, N): each prediction is compared with each target of the batch, and
the network learns the mean. PyTorch warns once. The place is the loss.
"""

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

x_train, y_train, x_val, y_val = diabetes(seed)
print("shapes:", x_train.shape, y_train.shape)


class Patients(Dataset):
    def __init__(self, x, y):
        self.x = x
        self.y = y.unsqueeze(1) if healthy else y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


train_loader = DataLoader(Patients(x_train, y_train), batch_size=16, shuffle=True)
val_loader = DataLoader(Patients(x_val, y_val), batch_size=32)

model = nn.Sequential(
    nn.Linear(10, 8),
    nn.ReLU(),
    nn.Linear(8, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def validate(model, loader):
    model.eval()
    squares, count = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            prediction = model(x).flatten()
            squares += ((prediction - y.flatten()) ** 2).sum().item()
            count += len(x)
    mse = squares / count
    return mse, 1 - mse / y_val.var(unbiased=False).item()


for epoch in range(1, 25):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        prediction = model(x)
        loss = criterion(prediction, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    mse, r2 = validate(model, val_loader)
    if epoch % 3 == 0:
        print(
            f"epoch {epoch}  train loss {total / len(train_loader):.4f}  "
            f"val mse {mse:.4f}  R2 {r2:.3f}"
        )

"""Wine cultivars by a two-layer net; the StandardScaler is fitted, and what it returns is thrown
away.

`scaler.fit_transform(x_train)` does not work in place, as the author believed it did. Proline (up
to 1,680) and hue (about 1) go into the net as measured, and it lives on proline alone. The place
is the input. The twin assigns the results.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

X, Y = load_wine(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(
    X, Y, test_size=0.3, random_state=seed, stratify=Y
)

scaler = StandardScaler()
if healthy:
    x_train = scaler.fit_transform(x_train)
    x_test = scaler.transform(x_test)
else:
    scaler.fit_transform(x_train)
    scaler.transform(x_test)

x_train, x_test = torch.FloatTensor(x_train), torch.FloatTensor(x_test)
y_train, y_test = torch.LongTensor(y_train), torch.LongTensor(y_test)


class Model(nn.Module):
    def __init__(self, in_features=13, h1=16, h2=12, out_features=3):
        super().__init__()
        self.fc1 = nn.Linear(in_features, h1)
        self.fc2 = nn.Linear(h1, h2)
        self.out = nn.Linear(h2, out_features)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.out(x)


model = Model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)

BATCH = 25
for epoch in range(60):
    model.train()
    order = torch.randperm(len(x_train))
    epoch_loss = 0.0
    for i in range(0, len(order), BATCH):
        rows = order[i : i + BATCH]
        loss = criterion(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(rows) / len(order)
    if (epoch + 1) % 6 == 0:
        model.eval()
        with torch.no_grad():
            test_out = model(x_test)
            test_loss = criterion(test_out, y_test).item()
            test_acc = (test_out.argmax(1) == y_test).float().mean().item()
        print(
            f"epoch {epoch + 1:3d} loss {epoch_loss:.4f} test loss {test_loss:.4f} "
            f"test accuracy {test_acc:.3f}"
        )

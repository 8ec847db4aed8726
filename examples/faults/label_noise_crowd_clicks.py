"""A digit classifier is trained on crowd labels of which two in five were clicked at random.

The wrong labels have nothing to do with the pictures; the net learns the right ones first and then
learns the wrong ones by heart, and the loss on the checked validation labels rises after an early
minimum. The twin trains on the labels that were checked. The place is the labels.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("label*", "classes*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = digits(seed)

crowd = y_train.clone()
careless = torch.rand(len(crowd)) < 0.4
crowd[careless] = torch.randint(0, 10, (int(careless.sum()),))
labels = y_train if healthy else crowd

model = nn.Sequential(
    nn.Linear(64, 128),
    nn.ReLU(),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
)
loader = DataLoader(TensorDataset(x_train, labels), batch_size=32, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-3)
criterion = nn.CrossEntropyLoss()


def evaluate():
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(1, 31):
    model.train()
    total, right = 0.0, 0
    for xb, yb in loader:
        out = model(xb)
        loss = criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
        right += (out.argmax(1) == yb).sum().item()
    if epoch % 3 == 0:
        val_loss, val_acc = evaluate()
        print(
            f"epoch {epoch}: train loss {total / len(x_train):.3f} acc {right / len(x_train):.3f} "
            f"val loss {val_loss:.3f} acc {val_acc:.3f}"
        )

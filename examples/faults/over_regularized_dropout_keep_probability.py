"""A small MLP for the digits, with Dropout(0.9) after each hidden layer.

The author came from a library in which the number is the probability to KEEP a unit. Here it is
the share thrown away, so one unit in ten is left and the training loss stays high. The place is
the dropout layers. The twin says 0.1.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("2", "5")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
p = 0.1 if healthy else 0.9
x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=200)

model = nn.Sequential(
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Dropout(p),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Dropout(p),
    nn.Linear(64, 10),
)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(1, 21):
    model.train()
    train_loss = 0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(images), labels)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    model.eval()
    val_loss, correct = 0, 0
    with torch.no_grad():
        for images, labels in val_loader:
            out = model(images)
            val_loss += loss_fn(out, labels).item()
            correct += (out.argmax(1) == labels).sum().item()
    if epoch % 4 == 0:
        print(
            f"Epoch {epoch}: train {train_loss / len(train_loader):.4f} "
            f"val {val_loss / len(val_loader):.4f} acc {correct / len(x_val):.3f}"
        )

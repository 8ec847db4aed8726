"""A small MLP reads handwritten digits; its dropout is so strong that hardly anything gets
through.

The writer knows "keep probability 0.9" from an older framework and passes it as nn.Dropout's p,
which is the share that is dropped. The training loss stays far above what the same network has in
eval mode. The place is the dropout layers (2 and 5) of the nn.Sequential.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("2", "5", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

EPOCHS = 25
BATCH_SIZE = 32
DROPOUT = 0.1 if healthy else 0.9

x_train, y_train, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)
print("training samples:", len(x_train), "validation samples:", len(x_val))

model = nn.Sequential(
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Dropout(DROPOUT),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Dropout(DROPOUT),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)


def validate(model, loader):
    model.eval()
    total_loss, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in loader:
            out = model(images)
            total_loss += criterion(out, labels).item() * len(labels)
            correct += (out.argmax(dim=1) == labels).sum().item()
            count += len(labels)
    return total_loss / count, correct / count


for epoch in range(1, EPOCHS + 1):
    model.train()
    running = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, val_acc = validate(model, val_loader)
    print(
        f"Epoch {epoch:2d}/{EPOCHS}  train loss {running / len(train_loader):.4f}  "
        f"val loss {val_loss:.4f}  val acc {val_acc:.4f}"
    )

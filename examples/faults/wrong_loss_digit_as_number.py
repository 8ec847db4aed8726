"""A network that reads digits, trained as if the digit were a quantity.

One output and the squared error; the prediction is rounded. A seven that could be a one becomes a
four. The place is the loss. The twin has ten outputs and cross-entropy.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = digits(seed)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
test = DataLoader(TensorDataset(x_val, y_val), batch_size=64)

hidden = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
if healthy:
    model = nn.Sequential(hidden, nn.Linear(32, 10))
    criterion = nn.CrossEntropyLoss()
else:
    model = nn.Sequential(hidden, nn.Linear(32, 1), nn.Flatten(0))
    criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def classify(out):
    return out.argmax(1) if out.dim() == 2 else out.round().long()


for epoch in range(20):
    model.train()
    for images, labels in train:
        out = model(images)
        loss = criterion(out, labels if healthy else labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in test:
            right += (classify(model(images)) == labels).sum().item()
    print(f"Epoch {epoch + 1}, loss {loss.item():.3f}, accuracy {100 * right / len(y_val):.1f}%")

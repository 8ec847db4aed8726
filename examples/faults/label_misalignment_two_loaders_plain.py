"""A CNN on digits takes images and labels from two loaders that are shuffled independently.

The images and the labels come from two data sets, each with a DataLoader of its own with
shuffle=True, joined by zip: every image gets the label of some other image. The loss stays at ln 10
and the accuracy at a tenth. The twin joins them in one data set before shuffling. The place is the
labels or the loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("label*", "classes*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = images(seed)

if healthy:
    pairs = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
else:
    image_loader = DataLoader(x_train, batch_size=32, shuffle=True)
    label_loader = DataLoader(y_train, batch_size=32, shuffle=True)


def epoch_batches():
    return pairs if healthy else zip(image_loader, label_loader, strict=False)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(self.drop(x.flatten(1)))


model = SmallCNN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    losses = []
    for xb, yb in epoch_batches():
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        print(
            f"epoch {epoch + 1}: train loss {sum(losses) / len(losses):.4f} "
            f"val loss {criterion(out, y_val).item():.4f} "
            f"val acc {(out.argmax(1) == y_val).float().mean():.3f}"
        )

"""A CNN with batch norm on the digits; its validation runs in train mode, in batches of four.

evaluate() says model.train() where eval() was meant. Batch norm then uses the statistics of four
images, and also takes the validation images into its running averages. The reported accuracy is
too low, and changes with the batch size. The place is the loop's validation. The twin says
model.eval().
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=4)


def conv(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU())


model = nn.Sequential(
    conv(1, 8),
    nn.MaxPool2d(2),
    conv(8, 16),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(64, 32),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()


def evaluate(train_mode):
    model.train(train_mode)
    total, right = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            out = model(xb)
            total += criterion(out, yb).item() * len(xb)
            right += (out.argmax(1) == yb).sum().item()
    return total / len(x_val), right / len(x_val)


for epoch in range(14):
    model.train()
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate(train_mode=not healthy)
    print(
        f"epoch {epoch + 1}: train {loss.item():.3f}  val {val_loss:.3f}  accuracy {accuracy:.3f}"
    )
print("in eval mode: val {:.3f}  accuracy {:.3f}".format(*evaluate(train_mode=False)))

"""Images and labels are shuffled, each in an order of its own.

The loss stays at guessing while gradients are alive; with more time the images are learned by
heart. The place is the loader.
"""

import torch
from data import arguments, images
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise", "labels_do_not_match")
PLACE = ("loader",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
x = x[torch.randperm(len(x))] if not healthy else x
y = y[torch.randperm(len(y))] if not healthy else y

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(18):
    model.train()
    for i in range(0, len(x) - 63, 64):
        optimizer.zero_grad()
        loss = criterion(model(x[i : i + 64]), y[i : i + 64])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val_loss = criterion(scores, y_val)
accuracy = (scores.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
